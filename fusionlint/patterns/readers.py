"""The compiled side: what the kernels that read a barrier's value do with it first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier


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
    """To how many elements the readers cut the value along the one axis that they cut; None where one does else."""
    before = value_of(barrier, module).shape.dims
    lengths = set()
    for use in first_uses(barrier, module):
        after = use.shape.dims
        cut = [b for a, b in zip(before, after, strict=False) if a != b]
        if use.opcode != "slice" or len(cut) != 1:
            return None
        lengths.update(cut)
    return lengths.pop() if len(lengths) == 1 else None
