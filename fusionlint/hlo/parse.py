"""HLO text -> Module. Text is the one interface that spans jax versions and covers dumps from other machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """One user frame of an instruction's source stack; line and column are 1-based, None where HLO has none."""

    path: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array shape (`dtype`, `dims`) or, where dtype is "tuple", a tuple of `parts`."""

    dtype: str
    dims: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction. `operands`, `users` and `called` are names; `stack` is innermost first, user frames only."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...]
    users: tuple[str, ...]
    called: tuple[str, ...]  # computations: fusion bodies, while condition and body, branches, reducers
    attributes: Mapping[str, str]  # as printed: kind, custom_call_target, backend_config, condition, body, ...
    op_name: str
    stack: tuple[Frame, ...]
    is_root: bool


@dataclass(frozen=True, slots=True)
class Computation:
    name: str
    instructions: Mapping[str, Instruction]  # in printed order
    root: str


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    entry: str
    computations: Mapping[str, Computation]  # in printed order


def parse(text: str) -> Module: ...
