"""One write in place of several at one place: `x.at[s].mul(a)`, `x.at[s].add(b)` is `x.at[s].set(x[s] * a + b)`.

In: writes that are all at one place. Out: words of advice, the code itself where it is short.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, place_of
from fusionlint.patterns.code.calls import as_operand, brief
from fusionlint.patterns.writes.axis import is_called_a_slice
from fusionlint.patterns.writes.between import is_rebound, reads_back
from fusionlint.patterns.writes.words import FIRST
from fusionlint.source.tree import Source

_OPERATORS = {"add": "+", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/"}
# By the name of libcst's class, which nothing asks for when this is imported.
_SIGNS = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/"}
# What can stand before a sign, and behind it, without parentheses: "" is a name, a call and the like.
_BEFORE = {"+": ("", *"+-*/"), "-": ("", *"+-*/"), "*": ("", *"*/"), "/": ("", *"*/")}
_BEHIND = {"+": ("", *"*/"), "-": ("", *"*/"), "*": ("",), "/": ("",)}
# Longer code says less than its outline.
_LONG = 100


def written_once(writes: Sequence[Write], array: str, source: Source) -> str:
    """What one write has to say to do what all of `writes` do, one after the other, to the array that is called so."""
    place = place_of(writes[0], source)
    there = f"{array}[{place}]"
    first = FIRST if _are_rebound(writes, source) else ""
    made = None if first or reads_back(writes, source) else _made(writes, there, source)
    once = f"{array}.at[{place}].set({made})" if made is not None else ""
    shown = brief(once, _LONG, "") or f"one `.set` of what the writes make of {brief(there, _LONG, f'{array}[...]')}"
    # What is multiplied at a place that is named twice is multiplied twice; set, once.
    is_sure = writes[-1].method == "set" or all(map(_is_once, writes[0].index))
    return f"{first}{shown}" if is_sure else f"{first}{shown}, where the index names no place twice"


def once(writes: Sequence[Write], array: str, source: Source) -> str | None:
    """The one write as code, where that can be said and no place is named twice."""
    place = place_of(writes[0], source)
    if _are_rebound(writes, source) or reads_back(writes, source):
        return None
    made = _made(writes, f"{array}[{place}]", source)
    is_sure = writes[-1].method == "set" or all(map(_is_once, writes[0].index))
    return f"{array}.at[{place}].set({made})" if made is not None and is_sure else None


def _are_rebound(writes: Sequence[Write], source: Source) -> bool:
    """Whether what stays of the writes is said by names that mean something else at one than at another: what is set
    leaves nothing of those before."""
    last = max((i for i, write in enumerate(writes) if write.method == "set"), default=0)
    return is_rebound(writes[last:], source)


def _made(writes: Sequence[Write], there: str, source: Source) -> str | None:
    """The value as one expression of what stood there; None where that cannot be said."""
    made, made_by = there, ""
    for write in writes:
        value, sign = write.value, _OPERATORS.get(write.method)
        if value is None:
            return None
        text, by = source.code(value), _operator(value)
        if write.method == "set":
            made, made_by = text, by
        elif sign is not None:
            left = made if made_by in _BEFORE[sign] else f"({made})"
            right = text if by in _BEHIND[sign] else f"({text})"
            made, made_by = f"{left} {sign} {right}", sign
        else:
            return None
    return made


def _operator(value: cst.BaseExpression) -> str:
    """The sign of a sum or a product, "" for what needs no parentheses, "?" for anything else."""
    match value:
        case cst.BinaryOperation(operator=operator):
            return _SIGNS.get(type(operator).__name__, "?")
    return "" if as_operand(value, "") == "" else "?"


def _is_once(part: Part) -> bool:
    """Whether a part of an index is seen to name no place twice: a slice, a number, or what is called a slice."""
    match part:
        case cst.Slice() | cst.Ellipsis():
            return True
    return is_called_a_slice(part) or constant(part) is not None
