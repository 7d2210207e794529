"""The turns of a Python loop said at once: `jnp.arange(n)` for what counts them, `1:n` for the places that it counts.

What is written of them is simplified: `:n` and not `1 - 1:n + 1 - 1`.

In: a loop of a Source, and a place in an index that its counter says. Out: the place of all turns, None where two turns
may have one.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, constant, holds, inside, reads
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


class Turns(NamedTuple):
    """The turns of a loop: the name that counts them, and the numbers as `arange` and a slice say them; `at_least_one`
    where the code shows that there is a turn."""

    counter: str
    numbers: str
    begin: str
    end: str
    step: str
    at_least_one: bool


class Rows(NamedTuple):
    """Places that follow one another, the first and the one behind the last, as code."""

    begin: str
    end: str


def turns_of(loop: cst.For, source: Source) -> Turns | None:
    """The numbers that a loop counts: of `range`, or of `enumerate`."""
    match loop.target, loop.iter:
        case cst.Name(value=counter), cst.Call(args=args) if source.calls(loop.iter, "range"):
            if any(arg.star or arg.keyword for arg in args) or not 1 <= len(args) <= 3:
                return None
            given = [source.code(arg.value) for arg in args]
            if any("\n" in code for code in given):
                return None
            begin, end, step = (["0", given[0], "1"] if len(given) == 1 else [*given, "1"])[:3]
            return Turns(counter, ", ".join(given), begin, end, step, _is_some(args[-1 if len(args) < 3 else 1].value))
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=counter)), _]), cst.Call(args=[cst.Arg(value=over)]):
            if not source.calls(loop.iter, "enumerate") or not isinstance(over, cst.Name | cst.Attribute):
                return None
            count = f"len({source.code(over)})"
            return Turns(counter, count, "0", count, "1", True)
    return None


def _is_some(end: cst.BaseExpression) -> bool:
    """Whether what a loop counts to is seen to be no nothing: a number that is written out, the length of something."""
    number = constant(end)
    if number is not None:
        return number > 0
    return any(
        (isinstance(node, cst.Attribute) and node.attr.value in ("shape", "size")) or dotted_call(node) == "len"
        for node in inside(end)
    )


def dotted_call(node: cst.CSTNode) -> str:
    """What a call is of."""
    return dotted(node.func) if isinstance(node, cst.Call) else ""


def rows_of(part: Part, turns: Turns) -> Rows | None:
    """The places that `i`, `i + 1` takes in turns that count up one by one; None of other places."""
    by = _added_to(turns.counter, part) if turns.step == "1" else None
    return Rows(plus(turns.begin, by), plus(turns.end, by)) if by is not None else None


def _added_to(counter: str, part: Part) -> int | None:
    """The number that a place adds to what counts the turns."""
    match part:
        case cst.Name(value=name) if name == counter:
            return 0
        case cst.BinaryOperation(left=cst.Name(value=name), operator=cst.Add(), right=cst.Integer() as more):
            return more.evaluated_value if name == counter else None
        case cst.BinaryOperation(left=cst.Name(value=name), operator=cst.Subtract(), right=cst.Integer() as less):
            return -less.evaluated_value if name == counter else None
        case cst.BinaryOperation(left=cst.Integer() as more, operator=cst.Add(), right=cst.Name(value=name)):
            return more.evaluated_value if name == counter else None
    return None


def plus(code: str, by: int) -> str:
    """`n + 1` for `n` and 1, `n` for `n - 1`, `3` for `2`."""
    match ast.parse(code.strip(), mode="eval").body:
        case ast.Constant(value=int(number)):
            return str(number + by)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return str(by - number)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=int(number))):
            code, by = ast.unparse(left), by + (number if isinstance(sign, ast.Add) else -number)
        case ast.BoolOp() | ast.IfExp() | ast.Compare() | ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.LShift()):
            code = f"({code})"
    return f"{code} {'+' if by > 0 else '-'} {abs(by)}" if by else code


def is_equal(one: str, other: str) -> bool:
    """Whether two pieces of code say the same, with a 1 added and taken away too."""
    return _dumped(plus(one, 0)) == _dumped(plus(other, 0))


def _dumped(code: str) -> str:
    return ast.dump(ast.parse(code.strip(), mode="eval"))


def place_of_all(part: Part, turns: Turns, jnp: str, *, is_only: bool, source: Source) -> str | None:
    """A place as all turns have it: `1:n` of what is counted itself, `2 * jnp.arange(n)` of what is made of it by
    arithmetic that gives each turn its own."""
    if not isinstance(part, cst.BaseExpression) or "\n" in source.code(part):
        return None
    rows = rows_of(part, turns)
    if rows is not None:
        is_sure = rows.begin.isdigit() or isinstance(part, cst.Name)  # that no place is counted from the end
        if is_only and is_sure and not rows.begin.startswith("-") and not rows.end.startswith("-"):
            return f"{'' if rows.begin == '0' else rows.begin}:{rows.end}"
        if is_only and isinstance(part, cst.Name):
            return None
        return f"{jnp}.arange({'' if rows.begin == '0' else f'{rows.begin}, '}{rows.end})"
    if not is_one_each(part, turns.counter, source):
        return None
    count = f"{jnp}.arange({turns.numbers})"
    return re.sub(rf"(?<![\w.]){re.escape(turns.counter)}(?!\w)", lambda _: count, source.code(part))


def is_one_each(part: cst.BaseExpression, counter: str, source: Source) -> bool:
    """Whether no two turns have the same: the counter, what is added to it or it is taken from, its multiples."""
    match part:
        case cst.Name(value=name):
            return name == counter
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return is_one_each(inner, counter, source)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            sides = [reads(left, counter), reads(right, counter)]
            if sides.count(True) != 1:
                return False
            own, other = (left, right) if sides[0] else (right, left)
            if not is_one_each(own, counter, source) or holds(other, cst.Call):
                return False
            if isinstance(operator, cst.Add | cst.Subtract):
                return is_one_for_sure(other, source)  # several places for each turn would lie across
            number = constant(other)
            return isinstance(operator, cst.Multiply) and number is not None and number > 0
    return False
