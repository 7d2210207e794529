"""What it means that one side has no program of a function of which the other has one."""

from __future__ import annotations

from typing import Literal

from fusionlint.diff.names import kind_of
from fusionlint.diff.side import Function, Program, Side

Missing = Literal["gone", "left out", "no report"]


def why_missing(name: str, program: Program, function: Function | None, side: Side, other: Side) -> Missing:
    """Why `side`, where the function of this name is `function` (None: it does not know it), has no such program as
    `other` has."""
    if function is None:
        return why_unknown(name, side, other)
    if kind_of(name, side.failed or {}) not in (None, "absent"):
        return "no report"
    # Without --all a run has reports on the user's functions alone, and on one signature of each.
    known = any(one.same_as(program.arguments) for one in function.signatures)
    if all(one.hardware != program.hardware for one in function.programs):
        return "left out" if known and program.target in side.targets and not side.errors else "no report"
    if known or _is_asked(side, other):
        return "left out"
    return "no report" if side.ended_early(other) else "gone"


def why_unknown(name: str, side: Side, other: Side) -> Missing:
    """Why `side` does not know a function that `other` knows. What could not be compiled is not gone, what is not there
    to be compiled is, and what nobody asked for is neither; a run lists its functions, whether or not there is a report
    on them, as far as it came."""
    kind = kind_of(name, side.failed or {})
    if kind == "absent":
        return "gone"
    not_told = side.failed is None and bool(side.errors) and side.eager is None
    if kind is not None or not_told or side.ended_early(other):
        return "no report"
    return "left out" if _is_asked(side, other) else "gone"


def _is_asked(side: Side, other: Side) -> bool:
    """Whether `side` was asked for some functions alone: so is `explain`, and no run is."""
    return side.is_asked or (side.eager is None and other.eager is not None)
