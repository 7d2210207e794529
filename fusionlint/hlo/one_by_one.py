"""Loops that XLA makes of one operation: what a TPU gathers or scatters in no better way it does place after place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

_PLACE_AFTER_PLACE = ("gather", "scatter")


def operation_of(loop: hlo.Instruction) -> str:
    """The operation that the loop, a `while`, was: it is called like that. "" where somebody wrote a loop."""
    name = loop.op_name.rpartition("/")[2]
    return name if name.startswith(_PLACE_AFTER_PLACE) else ""
