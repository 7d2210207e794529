"""The compiled side: columns and blocks of an array that `.at[...]` writes, one kernel after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.behind import behind, is_number
from fusionlint.patterns.compiled.links import CUTS, SAME, Dims, chain_of, is_set, is_write
from fusionlint.patterns.compiled.readers import first_uses, value_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# More columns than these nobody stacks.
_COLUMNS = 16
_LONG = 64


def written(name: str, whole: Dims, computation: hlo.Computation, module: hlo.Module) -> list[Dims]:
    """The sizes of the pieces that the kernel writes into an array of the size `whole`."""
    item = computation.instructions.get(name)  # a loop's condition, or a branch, has its own
    if item is None:
        return []
    body = (module.body(item) or computation).instructions
    return [
        body[step.operands[1 if step.opcode == "dynamic-update-slice" else 0]].shape.dims
        for step in module.work_of(item)
        if step.shape.dims == whole and is_write(step)
    ]


def written_on(barrier: Barrier, module: hlo.Module) -> list[Dims] | None:
    """The sizes of the pieces that the kernels around the value write, where all that is done with it is to write the
    next piece; None where it is more. What is cut out of it has to be as large as a piece."""
    if barrier.writer in barrier.readers:
        return None  # one write in each step of a loop
    whole, here = value_of(barrier, module).shape.dims, module.computations[barrier.computation]
    pieces: list[Dims] = []
    for name in (barrier.writer, *barrier.readers):
        some = written(name, whole, here, module)
        if not some:
            return None
        pieces += some
    uses = [*first_uses(barrier, module)]
    cut = {use.shape.dims for use in uses if use.opcode in CUTS}
    is_only_written = bool(uses) and all(use.opcode in CUTS or is_set(use) for use in uses)
    return pieces if is_only_written and cut <= {*pieces} else None


def are_columns(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether one column is written after the other, or one entry of every matrix, and the value is the array in
    between, or a part of a write."""
    whole, pieces = value_of(barrier, module).shape.dims, written_on(barrier, module)
    if pieces is not None:
        return all(_is_column(piece, whole) for piece in pieces)
    place = chain_of(barrier, module) if barrier.cause == "in-place update" else None
    return place is not None and not place.method and _is_column(place.piece, place.whole)


def _is_column(piece: Dims, whole: Dims) -> bool:
    inner = [size for size, all_of_it in zip(piece, whole, strict=True) if size != all_of_it]
    rows = len(whole) - len(inner)
    columns = 1
    for size in whole[rows:]:
        columns *= size
    is_inner = piece[:rows] == whole[:rows] and rows > 0
    return is_inner and bool(inner) and all(size == 1 for size in inner) and columns <= _COLUMNS < whole[0]


def are_blocks(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether blocks are put side by side in a new array: at least one of the pieces is a part of an axis, neither all
    of it nor a single row."""
    whole, pieces = value_of(barrier, module).shape.dims, written_on(barrier, module)
    if pieces is None or not any(_is_block(piece, whole) for piece in pieces):
        return False
    axes = {number for piece in pieces for number, size in enumerate(piece) if size != whole[number]}
    if len(whole) > 2 and axes == {len(whole) - 1}:
        return False  # along the last of three axes joining costs a CPU more, and a GPU as much
    return _is_new(barrier.writer, module.computations[barrier.computation], module)


def _is_block(piece: Dims, whole: Dims) -> bool:
    return any(1 < size < all_of_it for size, all_of_it in zip(piece, whole, strict=True))


def _is_new(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether the array that a kernel writes to began as zeros, or another number."""
    for _ in range(_LONG):
        item = computation.instructions[name]
        body = module.body(item)
        inside = body or computation
        step = inside.instructions[inside.root] if body else item
        while step.opcode in SAME and step.operands and body:
            step = inside.instructions[step.operands[0]]
        if step.opcode in ("pad", "broadcast"):
            return is_number(behind(step.operands[-1], item, computation, module), module)
        if step.opcode == "dynamic-update-slice":
            if is_number(behind(step.operands[0], item, computation, module), module):
                return True
            step = inside.instructions[step.operands[0]]
        if body and step.opcode == "parameter":
            name = item.operands[int(step.literal)]
        elif not body and step.opcode in SAME and step.operands:
            name = step.operands[0]
        else:
            return False
    return False
