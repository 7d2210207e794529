"""Which measured pair of chained-at-set shows what comes of the writes of a loop, and on which targets.

In: the writes of a loop of a Source. Out: the number of a pair on the rule's page.

On a GPU 12 rows of a new array, handed out as they are or read by a product of matrices, are measured as a kernel each,
and as one for all where elementwise work or a sum reads them; columns of a matrix are one each whatever does. Of an
elementwise recurrence of 16 rows of 4096 with several readers the writes are 6 kernels, a stack 20, and a scan 74.
Three numbers of a vector that are summed are as many kernels as a list of them on a CPU (9) and a GPU (5), and 7 for 4
on a TPU; nine that are picked out again, `v[0]`, are as many on a GPU (8).
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import Write, at_write, constant, elements, holds, is_about, is_whole, names_in
from fusionlint.patterns.code.elementwise import is_elementwise, worked_on
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.values.array_sizes import is_vector
from fusionlint.patterns.writes.axis import leaves
from fusionlint.patterns.writes.fused import is_worked_on_alone
from fusionlint.patterns.writes.loop import Piecewise, counted_by
from fusionlint.patterns.writes.loop_turns import goes_over_an_array, needs_the_one_before
from fusionlint.patterns.writes.places import are_rows_of_a_new_one, is_fresh_before
from fusionlint.patterns.writes.told import FUSED, LOOP, RECURRENT
from fusionlint.source.tree import Source

_SUMS = tuple(f"jax.numpy.{name}" for name in ("sum", "max", "min", "mean", "prod"))


def pair(found: Piecewise, loop: cst.For, source: Source) -> int:
    """The measured pair that shows what comes of it. On a GPU XLA makes one kernel of rows of a new array and of the
    elementwise work that reads them, as long as the program does not hand out the array as it is; and of what each turn
    makes of the turn before, of which a stack computes the turns before anew for each reader."""
    if not all(_goes_to_a_new_array(write, loop, source) for write in found.writes):
        return LOOP
    if any(needs_the_one_before(write, found, loop, source) for write in found.writes):
        return RECURRENT if _is_elementwise(loop, source) else LOOP
    are_rows = all(are_rows_of_a_new_one(write, loop, source) for write in found.writes)
    return FUSED if are_rows and all(_is_fused(write, loop, source) for write in found.writes) else LOOP


def are_numbers(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether a loop leaves numbers in new vectors that are only picked out again, `v[0]`, or summed: a write is then
    no kernel of its own."""
    return not goes_over_an_array(loop, source) and all(
        write.method == "set"
        and len(write.index) == 1
        and all(name.value in counted_by(loop) for name in names_in(write.index[0]))
        and is_fresh_before(write, loop, source)
        and _is_number_read_back(write, loop, source)
        for write in found.writes
    )


def _goes_to_a_new_array(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether each turn sets what it counts in an array that is new when the loop begins, and that no program hands out
    as it is."""
    is_known = write.method == "set" and is_counted(write, loop) and not goes_over_an_array(loop, source)
    return is_known and is_fresh_before(write, loop, source) and not leaves(write.call, source)


def _is_fused(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether elementwise work alone reads the rows, or each of those who do picks out one, `rows[0]`."""
    reads = _behind(write, loop, source)
    return is_worked_on_alone(write.call, source, loop) or (bool(reads) and all(_is_picked(r, source) for r in reads))


def _is_number_read_back(write: Write, loop: cst.For, source: Source) -> bool:
    array, reads = source.assigned_name(write.call), _behind(write, loop, source)
    if array is None or not reads or not is_vector(array, source):
        return False
    return all(_is_picked(read, source) or _is_summed(read, source) for read in reads)


def _behind(write: Write, loop: cst.For, source: Source) -> list[cst.Name]:
    """The reads of the array behind the loop, of the same function."""
    name = source.assigned_name(write.call)
    reads = source.reads(name) if name is not None else []
    return [read for read in reads if loop not in source.ancestors(read) and not is_about(read, source)]


def _is_picked(read: cst.Name, source: Source) -> bool:
    """`v[0]`, at a place that is written out."""
    match source.parent(read):
        case cst.Subscript(value=value, slice=slices) if value is read:
            places = elements(slices)
            return all(constant(place) is not None or is_whole(place) for place in places)
    return False


def _is_summed(read: cst.Name, source: Source) -> bool:
    """`jnp.sum(v / width)`."""
    made = worked_on(read, source)
    taken = source.handed_to(made)
    if taken is not None:
        return len(taken.args) == 1 and source.calls(taken, *_SUMS)
    match source.parent(made):
        case cst.Attribute(value=value, attr=cst.Name("sum" | "max" | "min" | "mean" | "prod")):
            return value is made
    return False


def _is_elementwise(loop: cst.For, source: Source) -> bool:
    """Whether a turn is seen to do nothing but work place by place, and to write."""
    if holds(loop.body, cst.MatrixMultiply):
        return False
    return all(at_write(call) is not None or is_elementwise(call, source) for call in calls(loop.body))


def is_counted(write: Write, loop: cst.For) -> bool:
    """Whether each turn has a place of its own, which is what the loop counts: `.at[i].add(v)`."""
    counted = counted_by(loop)
    return all(is_whole(part) or (isinstance(part, cst.Name) and part.value in counted) for part in write.index)
