"""The compiled side: words for bytes and places, in what a rule says of a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo


def in_bytes(count: int) -> str:
    """`84.2 MB`, `1.5 kB`, `12 bytes`."""
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def line_of(step: hlo.Instruction) -> str:
    """`solver.py:12`, of a step that has a line."""
    return f"{Path(step.stack[0].path).name}:{step.stack[0].line}"
