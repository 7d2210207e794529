"""Module -> [Kernel]: what is launched, in order, and how often."""

from __future__ import annotations

from dataclasses import dataclass

from fusionlint.hlo import parse as hlo


@dataclass(frozen=True, slots=True)
class Loop:
    """A while instruction. `trip_count` is None where the program does not tell it; then everything inside is counted
    per iteration. `parent` is the enclosing Loop's name."""

    name: str
    computation: str
    trip_count: int | None
    parent: str | None
    frame: hlo.Frame | None
    launches_per_iteration: int
    copies_per_iteration: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One working instruction outside fusion bodies. `kind` is XLA's fusion kind (loop, input, output, custom) or
    "library call", "custom call", "copy", "collective", or the opcode of an unfused instruction."""

    name: str
    computation: str
    kind: str
    opcodes: tuple[str, ...]  # the distinct work inside, in order: what the kernel does
    launches: int  # product of the known trip counts of the loops around it
    loop: str | None  # the innermost enclosing Loop's name
    per_iteration: bool  # some enclosing trip count is unknown, so `launches` is per iteration of that loop
    bytes_read: int  # per launch
    bytes_written: int
    stack: tuple[hlo.Frame, ...]
