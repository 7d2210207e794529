"""Reading `lax.cond(pred, f, g, *operands)` and `lax.switch(index, [f, g], *operands)`, and what their branches do.

A conditional is a program of its own for each branch: nothing fuses into it or out of it, and what a branch hands on
unchanged is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import at_write, inside, is_none, listed
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.functions import Function, function_named, result_of
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_COND, _SWITCH = "jax.lax.cond", "jax.lax.switch"
# What sensors look for.
CONDITIONALS = (_COND, _SWITCH)

# A helper of a branch is seldom further away than this.
DEPTH = 3


class Branch(NamedTuple):
    """A function that a conditional may run, and what it returns."""

    function: Function
    result: cst.BaseExpression


class Conditional(NamedTuple):
    """A `cond` or `switch` all of whose branches are seen."""

    call: cst.Call
    test: cst.BaseExpression
    branches: tuple[Branch, ...]
    operands: tuple[cst.Arg, ...]
    is_switch: bool


def conditional(node: cst.CSTNode, source: Source) -> Conditional | None:
    """The conditional that `node` is; None for anything else, or where a branch is not seen."""
    if not isinstance(node, cst.Call) or not source.calls(node, *CONDITIONALS):
        return None
    is_switch = source.calls(node, _SWITCH)
    if is_switch:
        test = argument(node, 0, "index")
        given: list[cst.BaseExpression | None] = [*(listed(source.meant(argument(node, 1, "branches"))) or ())]
        operands = node.args[2:]
    else:
        test = argument(node, 0, "pred")
        given = [argument(node, 1, "true_fun"), argument(node, 2, "false_fun")]
        operands = node.args[3:]
    branches = [_branch(one, source) for one in given if one is not None]
    seen = tuple(branch for branch in branches if branch is not None)
    if test is None or len(seen) < 2 or len(seen) != len(given):
        return None
    rest = tuple(a for a in operands if a.keyword is None or a.keyword.value in ("operand", "operands"))
    return Conditional(node, test, seen, rest, is_switch)


def _branch(node: cst.BaseExpression, source: Source) -> Branch | None:
    function = function_named(node, source)
    result = result_of(function, source) if function else None
    return Branch(function, result) if function and result is not None else None


def is_unchanged(branch: Branch) -> bool:
    """Whether a branch hands on what it is given and does nothing: `lambda x: x`, `lambda: (state.a, b)`."""
    if isinstance(branch.function, cst.FunctionDef) and not only_returns(branch.function):
        return False
    return is_handed_on(branch.result)


def is_nothing(branch: Branch) -> bool:
    """Whether a branch returns nothing: it was called for what it prints."""
    return is_none(branch.result)


def only_returns(function: cst.FunctionDef) -> bool:
    """Whether a def does no more than to return something."""
    statements = [
        part
        for line in function.body.body
        for part in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
        if not (isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString))
    ]
    return len(statements) == 1 and isinstance(statements[0], cst.Return)


def is_handed_on(node: cst.BaseExpression) -> bool:
    """Whether this is a value that is there, or several: no constant, nothing computed."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(name)):
            # FALSE and True are constants, which take part in the choice like anything computed.
            return name not in ("True", "False", "None") and not is_called_constant(name) and bool(dotted(node))
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return bool(elements) and all(is_handed_on(element.value) for element in elements)
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
            return True
    return False


def writes(branch: Branch, source: Source, depth: int = DEPTH) -> Iterator[cst.BaseExpression]:
    """The arrays that a branch writes a part of: `x.at[i].set(v)`, `dynamic_update_slice(x, ...)`."""
    yield from written_by(branch.function, source, depth)


def written_by(function: Function, source: Source, depth: int) -> Iterator[cst.BaseExpression]:
    """The same of any function, and of those that it calls, `depth` of them deep, itself the first."""
    for part in inside(function.body) if depth else ():
        if write := at_write(part):
            yield write.array
        elif isinstance(part, cst.Call):
            name = source.qualified_name(part.func) or ""
            if name.startswith("jax.lax.dynamic_update") and part.args:
                yield part.args[0].value
            elif helper := function_named(part.func, source):
                yield from written_by(helper, source, depth - 1)


@lru_cache(maxsize=4)
def branch_functions(source: Source) -> dict[Function, Conditional]:
    """The functions of a file that its conditionals run."""
    found = (conditional(call, source) for call in source.calls_of(CONDITIONALS))
    return {branch.function: one for one in found if one is not None for branch in one.branches}
