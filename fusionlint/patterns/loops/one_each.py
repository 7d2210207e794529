"""Whether a value is one number in each turn of a loop: worked out, number by number, of what counts the turns, of what
arrays hold there, `a[i]`, and of numbers that all turns have. With an array for the counter it is one of all turns.

In: a value in the body of a loop, and what is known of that loop. Unknown is no number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import constant, elements
from fusionlint.patterns.code.elementwise import operands
from fusionlint.source.tree import Source


class Turn(NamedTuple):
    """What counts the turns of a loop, whether something is the same in all of them, whether what is the same is one
    number, and whether it is an array that takes so many places."""

    counter: str
    is_the_same: Callable[[cst.BaseExpression], bool]
    is_a_number: Callable[[cst.BaseExpression], bool]
    is_an_array: Callable[[cst.BaseExpression, int], bool]


def is_one_each_turn(value: cst.BaseExpression, turn: Turn, source: Source) -> bool:
    """Whether `value` is one number in each turn."""
    if turn.is_the_same(value):
        return turn.is_a_number(value)
    match value:
        case cst.Name(value=name):
            return name == turn.counter
        case cst.Subscript(value=table, slice=slices):
            parts = elements(slices)
            is_looked_up = turn.is_the_same(table) and turn.is_an_array(table, len(parts))
            return is_looked_up and all(
                isinstance(part, cst.BaseExpression)
                and (constant(part) is not None or is_one_each_turn(part, turn, source))
                for part in parts
            )
    several = operands(value, source)
    return several is not None and all(is_one_each_turn(one, turn, source) for one in several)
