"""How a step of a scan over rows brings its row and what it carries together: by products of small matrices, by
looking up.

In: a Step of a Source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import elements, inside, names_read
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.loops.step import Step, helper_called
from fusionlint.patterns.operations.products import is_product
from fusionlint.source.tree import Source

# What stands behind the products of networks, which are large.
_ACTIVATION = regex(
    r"^(jax\.nn|flax\.(linen|nnx))\.(?!logsumexp|one_hot|(log_)?softmax)|^jax\.(numpy|lax)\.(tanh|logistic|erf)$"
)
# What the matrix of a layer is called.
_OF_A_LAYER = regex(r"^w$|weight|param|layer|kernel", re.I)
# What weights are divided by that are to add up to one, or what is taken off their logarithms.
_ADD_UP = ("jax.numpy.sum", "jax.numpy.max", "jax.nn.logsumexp", "jax.scipy.special.logsumexp")
_ADDING = frozenset(("sum", "max"))
_DEPTH = 2


def has_small_products(step: Step, source: Source) -> bool:
    """Whether what a step multiplies is seen to be small: a matrix of its row, of which there are as many as steps, or
    one that moves weights on that are kept adding up, as a filter's are; no network's. What is multiplied without what
    is carried, and only added to that, is as large as all of the data may be."""
    calls = list(_calls(step.body, source, _DEPTH))
    if any(_ACTIVATION.match(source.qualified_name(call.func) or "") for call in calls):
        return False
    if any(_adds_up(call, source) for call in calls):
        carried = made_of(step.carry, step.body)
        return any(_reads(factor, carried) for factors in _factors(step.body, source) for factor in factors)
    return _multiplies_by_its_row(step, source)


def looks_up_by_carry(step: Step) -> bool:
    """Whether a step looks up by what it carries, `row[state]`: steps together look up by what they looked up."""
    carried = made_of(step.carry, step.body)
    return any(
        isinstance(node, cst.Subscript) and any(_reads(part, carried) for part in elements(node.slice))
        for node in inside(step.body.body)
    )


def _calls(body: Function, source: Source, depth: int) -> Iterator[cst.Call]:
    """The calls of a function, and of those of the file that it calls."""
    for call in inside(body.body, cst.Call):
        yield call
        helper = helper_called(call, source) if depth else None
        if helper is not None:
            yield from _calls(helper, source, depth - 1)


def _adds_up(call: cst.Call, source: Source) -> bool:
    match call.func:
        case cst.Attribute(attr=cst.Name(value=method)) if method in _ADDING:
            return True
    return source.calls(call, *_ADD_UP)


def _multiplies_by_its_row(step: Step, source: Source) -> bool:
    """Whether what is made of the row alone multiplies what is made of the carry, here or in a function called."""
    carried = made_of(step.carry, step.body)
    of_row = {name for name in made_of(step.row, step.body) - carried if not _OF_A_LAYER.search(name)}
    for factors in _factors(step.body, source):
        is_by_row = any(_reads(factor, of_row) and not _reads(factor, carried) for factor in factors)
        if is_by_row and any(_reads(factor, carried) for factor in factors):
            return True
    return False


def _factors(body: Function, source: Source) -> Iterator[list[cst.BaseExpression]]:
    """What each product of a step multiplies; what it hands to a function that multiplies."""
    for node in inside(body.body):
        match node:
            case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
                yield [left, right]
            case cst.Call(args=args) if is_product(node, source) or _has_products(node, source):
                yield [arg.value for arg in args]


def _has_products(call: cst.Call, source: Source) -> bool:
    helper = helper_called(call, source)
    return helper is not None and any(is_product(node, source) for node in inside(helper.body))


def made_of(parameter: cst.Name, body: Function) -> frozenset[str]:
    """The names that stand for what is made of a parameter, it among them."""
    found = {parameter.value}
    for node in inside(body.body):
        match node:
            case cst.Assign(targets=targets, value=value) if _reads(value, found):
                found.update(name.value for target in targets for name in names_read(target.target))
    return frozenset(found)


def _reads(node: cst.CSTNode, names: Collection[str]) -> bool:
    return any(name.value in names for name in names_read(node))
