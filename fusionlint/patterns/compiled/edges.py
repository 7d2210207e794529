"""The compiled side: edges of an array, its first or last rows or columns, that `.at[...]` sets one after the other.

In: a Barrier between two of the writes. XLA makes an update in place of each, at a place that is written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.behind import Made, steps_in
from fusionlint.patterns.compiled.links import is_set, is_write
from fusionlint.patterns.compiled.readers import kernels_around, value_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# An array no longer than this has columns, of which some happen to be the first and the last.
_COLUMNS = 16
# An edge is no more than this part of its axis.
_THIN = 4

Edge = tuple[int, bool]  # the axis, and whether it is its end


def are_edges(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the kernels around the value set edges of the array that it is, two at least, and neither they nor what
    made the array set another piece of it: pieces that are all of it are to be joined."""
    here, whole = module.computations[barrier.computation], value_of(barrier, module).shape.dims
    writes = [
        write
        for kernel in kernels_around(barrier, module)
        for write in steps_in(kernel, here, module, "dynamic-update-slice")
        if write.step.shape.dims == whole and is_set(write.step)
    ]
    edges = {_edge(one, module) for write in writes for one in _and_before(write, module)}
    return len(edges) > 1 and None not in edges


def _and_before(write: Made, module: hlo.Module) -> Iterator[Made]:
    """A write, and those that the array went through before."""
    while is_write(write.step):
        yield write
        write = write.operand(0, module)


def _edge(write: Made, module: hlo.Module) -> Edge | None:
    """The edge that is written; None of any other piece."""
    if write.step.opcode != "dynamic-update-slice":
        return None
    inside = (module.body(write.kernel) or write.computation).instructions
    whole, piece = write.step.shape.dims, inside[write.step.operands[1]].shape.dims
    cut = [axis for axis, size in enumerate(piece) if size != whole[axis]]
    if len(cut) != 1:
        return None
    (axis,) = cut
    begin, width, length = inside[write.step.operands[2 + axis]], piece[axis], whole[axis]
    if begin.opcode != "constant" or length <= max(_COLUMNS, _THIN * width):
        return None
    return {0: (axis, False), length - width: (axis, True)}.get(int(begin.literal))
