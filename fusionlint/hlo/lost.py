"""The line of what XLA rewrote without one: a cumulative sum, which becomes several sums over windows, for one.

The program before optimization has the work of that kind at its lines. Where they are several, the one that takes what
is made at a line which is known is meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.frames import Stack

# Arithmetic and moves are made by every rewrite; these are of the kind that was written.
_KINDS = frozenset(("reduce-window", "sort", "fft", "cholesky", "triangular-solve", "scatter", "select-and-scatter"))
_MANY = 1000  # ways to call a function: the lines of more are not looked for


@dataclass(frozen=True, slots=True)
class _Site:
    """Where work was written, and where what it takes was made; () where that is not known."""

    stack: Stack
    fed: tuple[Stack, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """The sites of work by its opcode."""

    sites: Mapping[str, Sequence[_Site]] = field(default_factory=dict)

    def stack(self, opcodes: Iterable[str], fed: Stack) -> Stack:
        """Where the first of `opcodes` that is of a kind was written, which takes what was made at `fed`; () where
        nothing says so, or it may have been in several places."""
        sites = next((self.sites[opcode] for opcode in opcodes if opcode in self.sites), ())
        every = {site.stack for site in sites}
        fitting = {site.stack for site in sites if fed and fed in site.fed} if len(every) > 1 else every
        return fitting.pop() if len(fitting) == 1 else ()


def lost(before: hlo.Module) -> Lost:
    """What the program `before` optimization tells."""
    found: defaultdict[str, list[_Site]] = defaultdict(list)
    for name, part in before.computations.items():
        for step in part.instructions.values():
            if step.opcode in _KINDS:
                found[step.opcode].extend(islice(_sites(before, name, step.stack, step.operands), _MANY))
    return Lost(found)


def _sites(before: hlo.Module, name: str, stack: Stack, operands: Sequence[str]) -> Iterator[_Site]:
    """The sites of a step in the computation `name`, seen from the program's entry: one for each way to come there."""
    steps = before.computations[name].instructions
    taken = [steps[operand] for operand in operands]
    callers = before.callers(name)
    if not callers:
        yield _Site(stack, tuple(step.stack for step in taken))
    for caller, item in callers:
        if item.opcode != "call":  # the steps of a loop, or of a branch, have its whole stack
            yield from _sites(before, caller, stack, ())
            continue
        outer = tuple(frame for frame, _ in groupby((*stack, *item.stack)))
        given = [item.operands[int(step.literal)] for step in taken if step.opcode == "parameter"]
        yield from _sites(before, caller, outer, given)
