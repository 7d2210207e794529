"""A place of an array, and the code of what goes there, with the shape and the dtype that a write gives it.

In: a write along one axis. Out: its value as a part of a join; `jnp.full_like` of what it is written over, unless it is
seen to have its shape and dtype.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, is_literal, number_in
from fusionlint.patterns.code.broken import in_one_line
from fusionlint.patterns.code.calls import as_argument, as_operand
from fusionlint.patterns.code.layout import Called
from fusionlint.patterns.code.layout import Part as Code
from fusionlint.patterns.values.annotations import is_said_to_be_a_list
from fusionlint.patterns.values.floats import is_known_number
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.plain_parts import (
    cut_alike,
    has_its_shape,
    is_of_its_dtype,
    keeps_its_dtype,
    lies_alike,
)
from fusionlint.source.tree import Source


class Place(NamedTuple):
    """A place of the array, and what goes there."""

    array: str
    first: cst.BaseExpression  # what it is called before all writes
    write: Write
    part: Part
    jnp: str
    source: Source

    @property
    def is_one(self) -> bool:
        return not isinstance(self.part, cst.Slice)

    def at(self, part: str) -> str:
        """That part of the axis."""
        return f"[{self._around(part)}]"

    def slice(self, part: str) -> str:
        return f"{self.array}{self.at(part)}"

    def _plain(self, cut: str) -> str | None:
        """What goes there as it is, where its shape and its dtype are seen."""
        if (own := cut_alike(self.write, self.part, self.array, self.source)) is not None:
            return own
        is_plain = lies_alike(self.write, self.part) and is_of_its_dtype(self.write, self.source)
        return in_one_line(self.source.code(self.write.value)) if is_plain and not cut and self.write.value else None

    def filled(self, cut: str) -> Code:
        """What goes there, with the axis that a single place lacks."""
        part = self.source.code(self.part)
        if (plain := self._plain(cut)) is not None:
            return plain
        if not self.is_one:
            return self._full(part, self.at(cut) if cut else "")
        if self._is_first_axis() or _is_number(self.write.value, self.source):
            at = constant(self.part)
            end = f"{part} + 1" if at is None else "" if at == -1 else f"{at + 1}"
            is_alike = self.write.method == "set" and self._fits()
            return self._full(part, "[None]") if is_alike else self._full(f"{'' if at == 0 else part}:{end}")
        return self._full(part, self.at("None"))

    def column(self) -> Code:
        return self._full(self.source.code(self.part))

    def _fits(self) -> bool:
        """Whether what goes there is seen to have the shape and the dtype of its place: it is worked out of that."""
        if self.write.value is None or _is_a_list(self.write.value, self.source):
            return False
        is_alike = self.write.method == "add" or has_its_shape(self.write, self.part, self.first, self.source)
        return is_alike and keeps_its_dtype(self.write, self.first, self.source)

    def _full(self, part: str, behind: str = "") -> Code:
        value = self.write.value
        assert value is not None
        text, there = as_argument(value, self.source), self.slice(part)
        if _is_a_list(value, self.source):
            text = f"{self.jnp}.array({text})"
        if self.write.method == "add":
            text = f"{there} + {as_operand(value, text)}"
        if self._fits():
            is_sum = self.write.method == "add"
            return f"{f'({text})' if is_sum else as_operand(value, text)}{behind}" if behind else text
        return Called(f"{self.jnp}.full_like", [there, text], behind=behind)

    def _around(self, part: str) -> str:
        here = number_in(self.write.index, self.part)
        before, after = self.write.index[:here], self.write.index[here + 1 :]
        is_open = any(isinstance(each, cst.Ellipsis) for each in before)
        return ", ".join([*map(self.source.code, before), part, *(map(self.source.code, after) if is_open else ())])

    def _is_first_axis(self) -> bool:
        return self.write.index[0] is self.part


def _is_number(value: cst.BaseExpression | None, source: Source) -> bool:
    inner = value.expression if isinstance(value, cst.UnaryOperation) else value
    is_constant = is_known_number(inner, source)
    is_written = is_literal(value) and not isinstance(value, cst.List | cst.Tuple)
    return is_constant or is_written or is_a_number(value, source)


def _is_a_list(value: cst.BaseExpression, source: Source) -> bool:
    if isinstance(source.meant(value), cst.List | cst.Tuple | cst.ListComp):
        return True
    return isinstance(value, cst.Name) and is_said_to_be_a_list(value, source)
