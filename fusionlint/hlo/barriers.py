"""Module -> [Barrier]: where a value crosses memory between two kernels, and why."""

from __future__ import annotations

from dataclasses import dataclass

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Barrier:
    """A value that one kernel writes to memory and others read back."""

    value: str  # the instruction whose result crosses memory
    computation: str
    writer: str  # kernel name
    readers: tuple[str, ...]  # kernel names; empty where the program's own result is the only reader
    bytes: int  # of the value, per crossing
    crossings: int  # how often: trip counts multiplied
    cause: str
    detail: str  # the custom call's target, the library, ...; "" where the cause says it all
    opcodes: tuple[str, ...]  # the work that made the value
    verdict: Verdict | None
    stack: tuple[hlo.Frame, ...]  # call path to the line, innermost first
