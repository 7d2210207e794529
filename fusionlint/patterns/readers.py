"""The compiled side: what the kernels that read a barrier's value do with it first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.lazily import regex

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_BOUNDS = regex(r"\[(\d+):(\d+)")


def value_of(barrier: Barrier, module: hlo.Module) -> hlo.Instruction:
    """The instruction whose result crosses memory."""
    return module.computations[barrier.computation].instructions[barrier.value]


def writer_of(barrier: Barrier, module: hlo.Module) -> hlo.Instruction:
    return module.computations[barrier.computation].instructions[barrier.writer]


def first_uses(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The instructions that the value goes into: of a fusion those that use what has the value's shape."""
    shape = value_of(barrier, module).shape
    for name in barrier.readers:
        reader = next(c.instructions[name] for c in module.computations.values() if name in c.instructions)
        if reader.opcode != "fusion":
            yield reader
            continue
        body = module.computations[reader.called[0]]
        for parameter in body.parameters:
            if parameter.shape.dims == shape.dims and parameter.shape.dtype == shape.dtype:
                yield from (body.instructions[user] for user in parameter.users)


def sliced_to(barrier: Barrier, module: hlo.Module) -> int | None:
    """To how many elements at an end of the one axis that they cut the readers cut the value; None where one does
    else, or takes more than half of them."""
    before = value_of(barrier, module).shape.dims
    lengths = set()
    for use in first_uses(barrier, module):
        after = use.shape.dims
        cut = [axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
        if use.opcode != "slice" or len(cut) != 1 or not _is_an_end(use, cut[0], before[cut[0]]):
            return None
        lengths.add(after[cut[0]])
    return lengths.pop() if len(lengths) == 1 else None


def _is_an_end(cut: hlo.Instruction, axis: int, length: int) -> bool:
    """Whether a slice takes the first or the last of `length` elements, half of them at most."""
    begin, end = _BOUNDS.findall(cut.attributes["slice"])[axis]
    return (int(begin) == 0 or int(end) == length) and 2 * (int(end) - int(begin)) <= length
