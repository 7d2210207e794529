"""Reading one-hots: `jax.nn.one_hot(i, n)`, `jnp.eye(n)[i]` and `i[:, None] == jnp.arange(n)`; and einsums of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

import libcst as cst

from fusionlint.patterns.code.at import constant, elements, is_none, is_whole
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.values.matrices import IDENTITIES, PRODUCTS
from fusionlint.source.tree import Source

ONE_HOTS = ("jax.nn.one_hot", "flax.linen.one_hot", "flax.nnx.one_hot", "haiku.one_hot")
EINSUM = "jax.numpy.einsum"
_ARANGE = "jax.numpy.arange"
MAKERS = (*ONE_HOTS, *IDENTITIES, _ARANGE)
# A one-hot with fewer classes costs little, and a product with it may be the best there is.
_MANY = 128


@dataclass(frozen=True, slots=True)
class OneHot:
    """A one-hot of `index`, with its classes on the last axis; how many, None where that is not written."""

    index: cst.BaseExpression
    classes: cst.BaseExpression | None


def making_one_hots(source: Source) -> Iterator[str]:
    """The scopes that make what may be a one-hot, where traced code can see it: asked of the facts."""
    scopes = {place.scope for name in MAKERS for place, _ in source.called(name)}
    if "" in scopes:  # the functions of the file may use it
        yield from source.facts.raw.functions
    yield from (scope for scope in scopes if not scope or source.runs(scope, "traced"))


def one_hot(node: cst.BaseExpression, source: Source) -> OneHot | None:
    """The one-hot that `node` is or is a name for; None for anything else, or with its classes on another axis."""
    node = source.meant(node)
    match node:
        case cst.Call() if source.calls(node, *ONE_HOTS):
            index = argument(node, 0, "x") or argument(node, 0, "indices")
            if index is None or not has_only(node, 3, "x", "indices", "num_classes", "dtype"):
                return None
            return OneHot(index, argument(node, 1, "num_classes"))
        case cst.Call(func=cst.Attribute(value=cst.Comparison() as compared, attr=cst.Name("astype"))):
            return _compared(compared, source)
        case cst.Comparison():
            return _compared(node, source)
        case cst.Subscript(value=cst.Call() as eye) if source.calls(eye, *IDENTITIES) and has_only(eye, 1, "dtype"):
            return _row_of(node, eye)
    return None


def _row_of(node: cst.Subscript, eye: cst.Call) -> OneHot | None:
    """`jnp.eye(n)[i]`: not with a number or a slice for i, which is known before the program runs."""
    match elements(node.slice):
        case [cst.Name() | cst.Attribute() | cst.Call() | cst.BinaryOperation() as index]:
            return OneHot(index, eye.args[0].value)
    return None


def _compared(node: cst.Comparison, source: Source) -> OneHot | None:
    """`i[:, None] == jnp.arange(n)`, either way round."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
            for index, classes in ((left, right), (right, left)):
                if not isinstance(index, cst.Subscript) or not _adds_last_axis(index, source):
                    continue
                if source.calls(classes, _ARANGE) and len(classes.args) == 1:
                    return OneHot(index.value, classes.args[0].value)
    return None


def _adds_last_axis(node: cst.Subscript, source: Source) -> bool:
    """`[:, None]` and `[..., None]`."""
    *before, last = elements(node.slice)
    is_new = is_none(last)
    is_new = is_new or (isinstance(last, cst.Attribute) and source.qualified_name(last) == "jax.numpy.newaxis")
    return is_new and bool(before) and all(map(is_whole, before))


def has_many_classes(found: OneHot, source: Source) -> bool:
    """Whether the classes are seen to be many: a large number, or the positions along an axis of some array."""
    classes = found.classes
    classes = source.meant(classes)
    match classes:
        case cst.Integer():
            return classes.evaluated_value >= _MANY
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape")), slice=slices):
            # The last axis has features or classes, the others examples and positions.
            return len(slices) == 1 and (constant(elements(slices)[0]) or 0) >= 0
        case cst.Call(func=cst.Name("len")):
            return True
    return False


def factors(
    node: cst.BinaryOperation | cst.Call, source: Source
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The two sides of `a @ b`, `jnp.matmul(a, b)` and `jnp.dot(a, b)`."""
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right) if isinstance(node.operator, cst.MatrixMultiply) else None
    if not source.calls(node, *PRODUCTS):
        return None
    left, right = argument(node, 0, "a"), argument(node, 1, "b")
    return (left, right) if left is not None and right is not None else None


def is_einsum(node: cst.BinaryOperation | cst.Call, source: Source) -> TypeGuard[cst.Call]:
    """Whether `node` is an einsum that says no more than its axes and how exact it is."""
    if not source.calls(node, EINSUM):
        return False
    return has_only(node, 3, "precision", "preferred_element_type", "optimize")


def factors_of_einsum(call: cst.Call) -> Iterator[tuple[cst.BaseExpression, str, cst.BaseExpression, str, str]]:
    """Each operand of two and its axes, the other one and its axes, and those of the result: one character each, "."
    for an ellipsis."""
    axes_of = _letters(call)
    operands = [arg.value for arg in call.args[1:] if arg.keyword is None]
    if axes_of is not None and len(operands) == 2:
        (first, second), result = axes_of
        yield operands[0], first, operands[1], second, result
        yield operands[1], second, operands[0], first, result


def _letters(call: cst.Call) -> tuple[tuple[str, str], str] | None:
    spec = argument(call, 0, "subscripts")
    if not isinstance(spec, cst.SimpleString) or not isinstance(spec.evaluated_value, str):
        return None
    before, arrow, result = spec.evaluated_value.replace(" ", "").replace("...", ".").partition("->")
    operands = before.split(",")
    return ((operands[0], operands[1]), result) if arrow and len(operands) == 2 else None
