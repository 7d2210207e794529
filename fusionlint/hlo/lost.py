"""The line of what XLA rewrote without one: a cumulative sum, which becomes several sums over windows, for one.

Where the program before optimization has all work of one kind at one line, what is left of that kind is of that line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier
from fusionlint.hlo.frames import Stack
from fusionlint.hlo.kernels import Kernel

# Arithmetic and moves are made by every rewrite; these are of the kind that was written.
_KINDS = frozenset(("reduce-window", "sort", "fft", "cholesky", "triangular-solve", "scatter", "select-and-scatter"))


def with_lines(found: Sequence[Barrier], before: hlo.Module, every: Mapping[str, Kernel]) -> tuple[Barrier, ...]:
    """The barriers, those without a line at that of the one work `before` optimization that their kernels can be."""
    if all(barrier.stack for barrier in found):
        return tuple(found)
    lines = _lines(before)
    return tuple(
        barrier if barrier.stack else replace(barrier, stack=_stack(barrier, lines, every)) for barrier in found
    )


def _stack(barrier: Barrier, lines: Mapping[str, set[Stack]], every: Mapping[str, Kernel]) -> Stack:
    """Of the value itself, else of the kernels that write and read it."""
    kernels = [opcode for name in (barrier.writer, *barrier.readers) for opcode in every[name].opcodes]
    for opcodes in (barrier.opcodes, kernels):
        stacks = [lines[opcode] for opcode in opcodes if opcode in lines]
        if stacks:
            one = set.union(*stacks)
            return next(iter(one)) if len(one) == 1 else ()
    return ()


def _lines(before: hlo.Module) -> dict[str, set[Stack]]:
    """Where each kind of work is; () of one without a line, too."""
    found: dict[str, set[Stack]] = {}
    for part in before.computations.values():
        for item in part.instructions.values():
            if item.opcode in _KINDS:
                found.setdefault(item.opcode, set()).add(item.stack)
    return found
