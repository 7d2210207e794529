"""Reading `lax.cond(pred, f, g, *operands)` and `lax.switch(index, [f, g], *operands)`, and what their branches do;
also a cond as it was written once, with something for each branch, `lax.cond(pred, a, f, b, g)`.

A conditional is a program of its own for each branch: nothing fuses into it or out of it, and what a branch hands on
unchanged is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.patterns.code.at import at_write, inside, is_none, listed, named_axes_written
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.functions import Function, function_named, result_of
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_COND, _SWITCH = "jax.lax.cond", "jax.lax.switch"
# What sensors look for.
CONDITIONALS = (_COND, _SWITCH)

# How a branch is named, if it is, and what it is handed.
_Given: TypeAlias = "tuple[cst.BaseExpression | None, tuple[cst.Arg, ...]]"
# A helper of a branch is seldom further away than this.
DEPTH = 3


class Branch(NamedTuple):
    """A function that a conditional may run, what it returns, and what it is handed; `given` is how that names it."""

    function: Function
    result: cst.BaseExpression
    given: cst.BaseExpression
    operands: tuple[cst.Arg, ...]


class Conditional(NamedTuple):
    """A `cond` or `switch` all of whose branches are seen."""

    call: cst.Call
    test: cst.BaseExpression
    branches: tuple[Branch, ...]
    is_switch: bool


def conditional(node: cst.CSTNode, source: Source) -> Conditional | None:
    """The conditional that `node` is; None for anything else, or where a branch is not seen."""
    if not source.calls(node, *CONDITIONALS):
        return None
    is_switch = source.calls(node, _SWITCH)
    test = argument(node, 0, "index" if is_switch else "pred")
    given = _of_switch(node, source) if is_switch else _of_cond(node, source)
    branches = [_branch(one, operands, source) for one, operands in given if one is not None]
    seen = tuple(branch for branch in branches if branch is not None)
    if test is None or len(seen) < 2 or len(seen) != len(given):
        return None
    return Conditional(node, test, seen, is_switch)


def _of_switch(node: cst.Call, source: Source) -> list[_Given]:
    """What the branches are called, and what each of them is handed."""
    branches = listed(source.meant(argument(node, 1, "branches"))) or ()
    return [(branch, _operands(node.args[2:])) for branch in branches]


def _of_cond(node: cst.Call, source: Source) -> list[_Given]:
    match node.args:
        case [_, a, cst.Arg(value=one, keyword=None), b, cst.Arg(value=other, keyword=None)] if _is_no_function(
            a, source
        ) and _is_no_function(b, source):
            return [(one, (a,)), (other, (b,))]
    branches = argument(node, 1, "true_fun"), argument(node, 2, "false_fun")
    return [(branch, _operands(node.args[3:])) for branch in branches]


def _is_no_function(arg: cst.Arg, source: Source) -> bool:
    return arg.keyword is None and not arg.star and function_named(arg.value, source) is None


def _operands(args: Iterable[cst.Arg]) -> tuple[cst.Arg, ...]:
    return tuple(a for a in args if a.keyword is None or a.keyword.value in ("operand", "operands"))


def _branch(node: cst.BaseExpression, operands: tuple[cst.Arg, ...], source: Source) -> Branch | None:
    function = function_named(node, source)
    result = result_of(function, source) if function else None
    return Branch(function, result, node, operands) if function and result is not None else None


def is_unchanged(branch: Branch) -> bool:
    """Whether a branch hands on what it is given and does nothing: `lambda x: x`, `lambda: (state.a, b)`."""
    if isinstance(branch.function, cst.FunctionDef) and not only_returns(branch.function):
        return False
    return is_handed_on(branch.result)


def is_nothing(branch: Branch) -> bool:
    """Whether a branch returns nothing: it was called for what it prints."""
    return is_none(branch.result)


def only_returns(function: cst.FunctionDef) -> bool:
    """Whether a def does no more than to return something; what it says of itself, and `del unused`, is nothing."""
    statements = [
        part
        for line in function.body.body
        for part in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
        if not (isinstance(part, cst.Del) or (isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString)))
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
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            return isinstance(place, cst.Integer | cst.SimpleString) or _is_a_key(place)
    return False


def _is_a_key(node: cst.BaseExpression) -> bool:
    """`states[detector.name]`: what is there by name is handed on as it is."""
    return isinstance(node, cst.Attribute) and node.attr.value in ("name", "key")


def writes(branch: Branch, source: Source, depth: int = DEPTH) -> Iterator[cst.BaseExpression]:
    """The arrays that a branch writes a part of: `x.at[i].set(v)`, `dynamic_update_slice(x, ...)`."""
    yield from written_by(branch.function, source, depth)


def written_by(function: Function, source: Source, depth: int) -> Iterator[cst.BaseExpression]:
    """The same of any function, and of those that it calls, `depth` of them deep, itself the first."""
    for part in inside(function.body) if depth else ():
        if write := at_write(part):
            yield write.array
        elif (array := named_axes_written(part)) is not None:
            yield array
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
