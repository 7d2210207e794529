"""What it means that one side has no program of a function of which the other has one."""

from __future__ import annotations

from typing import Literal

from fusionlint.diff.names import kind_of
from fusionlint.diff.side import Function, Program, Side

Missing = Literal["gone", "no report"]


def why_missing(name: str, program: Program, function: Function | None, side: Side, other: Side) -> Missing:
    """Why `side`, where the function of this name is `function` (None: it does not know it), has no such program as
    `other` has."""
    if function is not None:
        there = any(one.target == program.target for one in function.programs)
        return "gone" if there and not side.ended_early(other) else "no report"
    return why_unknown(name, side, other)


def why_unknown(name: str, side: Side, other: Side) -> Missing:
    """Why `side` does not know a function that `other` knows. What could not be compiled is not gone, what is not there
    to be compiled is; a run lists its functions, whether or not there is a report on them, as far as it came."""
    if side.failed is None:
        failed = bool(side.errors) and side.eager is None
    else:
        failed = kind_of(name, side.failed) not in (None, "absent")
    return "no report" if failed or side.ended_early(other) else "gone"
