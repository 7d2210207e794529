"""The compiled side: a line that does the same for one row of an array after the other, each written into the program.

In: a Barrier. What a module does so is found once: a line cuts single rows out of an array, at places that are written
out, and the work there, or in what is called there, is in the program as often, none of it of what another one made.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import Place, bounds, made_and_taken, place_of, results_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_FEWEST = 4
# Bytes: of what is larger a launch more is nothing, and all at once is much to hold.
_MOST = 1 << 20
# They move elements, or are numbers: no work.
_CUTS = frozenset(("constant", "get-tuple-element", "iota", "parameter", "slice", "tuple"))
_MOVES = _CUTS | frozenset(
    ("broadcast", "concatenate", "copy", "copy-done", "copy-start", "dynamic-slice", "dynamic-update-slice", "gather",
     "pad")
)  # fmt: skip


class Rows(NamedTuple):
    """How many rows a line goes over, or, of pairs of rows of two arrays, how many of each, and how often its work is
    in the program."""

    lengths: tuple[int, ...]
    times: int

    @property
    def are_pairs(self) -> bool:
        return len(self.lengths) > 1 and self.times > max(self.lengths)


def row_after_row(barrier: Barrier, module: hlo.Module) -> Rows | None:
    """Of the line that the value is made or read by the rows that it goes over so."""
    known = _known(OfModule(module))
    if not known:
        return None
    steps = (step for step in made_and_taken(barrier, module) if step.opcode not in _MOVES)
    return next((known[place] for step in steps if (place := place_of(step)) in known), None)


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> dict[Place, Rows]:
    """By the line of the work."""
    rows = _rows(of.module)
    found: dict[Place, Rows] = {}
    needing: set[Place] = set()
    for part in _running(of.module) if rows else ():
        for work, values in _alike(part, of.module).items():
            line = next((work.place[k:] for k in range(len(work.place)) if work.place[k:] in rows), None)
            if line is None or len(values) < _FEWEST:
                continue
            if not _are_apart(values, part, of.module):
                needing.add(line)
            elif work.opcode not in _MOVES:
                found[work.place] = max(found.get(work.place, Rows((), 0)), Rows(rows[line], len(values)))
    return {place: one for place, one in found.items() if not any(place[k:] in needing for k in range(len(place)))}


def _rows(module: hlo.Module) -> dict[Place, tuple[int, ...]]:
    """By line, of each array how many rows are cut out of it there, one by one; a loop that takes several at once, as
    it is unrolled, cuts them apart at its own line."""
    loops = {place_of(loop) for loop in module.every("while")}
    cut: defaultdict[tuple[Place, tuple[int, ...], int], set[int]] = defaultdict(set)
    for part in module.computations.values():
        for step in part.instructions.values():
            if step.opcode != "slice" or not step.stack or is_of_jax(step):
                continue
            whole = part.instructions[step.operands[0]].shape.dims
            axes = [axis for axis, (a, b) in enumerate(zip(whole, step.shape.dims, strict=True)) if a != b]
            if len(axes) == 1 and step.shape.dims[axes[0]] == 1 and len(whole) > 1:
                cut[place_of(step), whole, axes[0]].add(bounds(step)[axes[0]][0])
    found: defaultdict[Place, list[int]] = defaultdict(list)
    for (place, _, _), places in cut.items():
        if len(places) >= _FEWEST and place not in loops:
            found[place].append(len(places))
    return {place: tuple(lengths) for place, lengths in found.items()}


def _running(module: hlo.Module) -> Iterator[hlo.Computation]:
    """The computations that kernels stand in."""
    yield from (
        part
        for part in module.computations.values()
        if part.name == module.entry
        or any(item.opcode in ("while", "conditional", "call") for _, item in module.callers(part.name))
    )


class _Work(NamedTuple):
    """What makes a value: which operation of which line, of what size."""

    opcode: str
    op_name: str
    place: Place
    shape: hlo.Shape


# The kernel that makes a value, and the value in it, "" of what is no fusion.
_Value = tuple[str, str]


def _alike(part: hlo.Computation, module: hlo.Module) -> dict[_Work, list[_Value]]:
    """The small results of kernels by the work that made them; what is joined is none."""
    found: defaultdict[_Work, list[_Value]] = defaultdict(list)
    for item in part.instructions.values():
        body = module.body(item)
        for name in results_of(item, module):
            at = made_at(At(name, item if body else None, part), module)
            step = at.step(module)
            is_here = at.kernel is item or (at.kernel is None and at.name == item.name)
            is_join = step.opcode in _CUTS or step.op_name.endswith(("/stack", "/concatenate"))
            if is_here and step.stack and not is_join and step.shape.nbytes <= _MOST:
                work = _Work(step.opcode, step.op_name, place_of(step), step.shape)
                found[work].append((item.name, at.name if body else ""))
    return found


def _are_apart(group: Collection[_Value], part: hlo.Computation, module: hlo.Module) -> bool:
    """Whether none of the values is made of another one."""
    kernels = {kernel for kernel, _ in group}
    if _needs_another(kernels, part):
        return False
    for kernel in kernels:
        body = module.body(part.instructions[kernel])
        if body is not None and _needs_another({value for one, value in group if one == kernel}, body):
            return False
    return True


def _needs_another(names: Collection[str], part: hlo.Computation) -> bool:
    behind: set[str] = set()
    for name, item in part.instructions.items():  # what an instruction needs is printed before it
        if any(one in behind or one in names for one in item.operands):
            if name in names:
                return True
            behind.add(name)
    return False
