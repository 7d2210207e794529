"""The compiled side: edges of an array, its first or last rows or columns, that `.at[...]` sets one after the other.

In: a Barrier between two of the writes. XLA makes an update in place of each, at a place that is written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.links import is_set
from fusionlint.patterns.compiled.readers import value_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# An array no longer than this has columns, of which some happen to be the first and the last.
_COLUMNS = 16
# An edge is no more than this part of its axis.
_THIN = 4

Edge = tuple[int, bool]  # the axis, and whether it is its end


def are_edges(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the kernels around the value set edges of the array that it is, two at least, and no other piece."""
    here, whole = module.computations[barrier.computation], value_of(barrier, module).shape.dims
    found: set[Edge | None] = set()
    for name in (barrier.writer, *barrier.readers):
        item = here.instructions.get(name)  # a loop's condition, or a branch, has its own
        if item is not None:
            inside = module.body(item) or here
            steps = (step for step in module.work_of(item) if step.shape.dims == whole and is_set(step))
            found |= {_edge(step, inside) for step in steps}
    return len(found) > 1 and None not in found


def _edge(write: hlo.Instruction, inside: hlo.Computation) -> Edge | None:
    """The edge that is written; None of any other piece."""
    whole, piece = write.shape.dims, inside.instructions[write.operands[1]].shape.dims
    cut = [axis for axis, size in enumerate(piece) if size != whole[axis]]
    if len(cut) != 1:
        return None
    (axis,) = cut
    begin, width, length = inside.instructions[write.operands[2 + axis]], piece[axis], whole[axis]
    if begin.opcode != "constant" or length <= max(_COLUMNS, _THIN * width):
        return None
    return {0: (axis, False), length - width: (axis, True)}.get(int(begin.literal))
