"""The turns of a Python loop said at once: `jnp.arange(n)` for what counts them, `1:n` for the places that it counts.

In: a loop of a Source, and a place in an index that its counter says. Out: the place of all turns, None where two turns
may have one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, constant, inside, names_read
from fusionlint.patterns.writes.masked import is_one_for_sure
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


def turns_of(loop: cst.For, source: Source) -> Turns | None:
    """The numbers that a loop counts: of `range`, or of `enumerate`."""
    match loop.target, loop.iter:
        case cst.Name(value=counter), cst.Call(args=args) if source.calls(loop.iter, "range"):
            if any(arg.star or arg.keyword for arg in args) or not 1 <= len(args) <= 3:
                return None
            given = [source.code(arg.value) for arg in args]
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


def place_of_all(part: Part, turns: Turns, jnp: str, *, is_only: bool, source: Source) -> str | None:
    """A place as all turns have it: `1:n` of what is counted itself, `2 * jnp.arange(n)` of what is made of it by
    arithmetic that gives each turn its own."""
    if not isinstance(part, cst.BaseExpression) or "\n" in source.code(part):
        return None
    if isinstance(part, cst.Name) and part.value == turns.counter and is_only and turns.step == "1":
        begin = "" if turns.begin == "0" else turns.begin
        return f"{begin}:{turns.end}" if not turns.begin.startswith("-") and not turns.end.startswith("-") else None
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
            if not is_one_each(own, counter, source) or any(isinstance(n, cst.Call) for n in inside(other)):
                return False
            if isinstance(operator, cst.Add | cst.Subtract):
                return is_one_for_sure(other, source)  # several places for each turn would lie across
            number = constant(other)
            return isinstance(operator, cst.Multiply) and number is not None and number > 0
    return False


def reads(node: cst.CSTNode, name: str) -> bool:
    return any(read.value == name for read in names_read(node))
