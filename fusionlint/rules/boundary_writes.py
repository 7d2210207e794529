"""The edges of an array written one after the other: `u.at[0].set(a).at[-1].set(b)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES, Part, Write, at_write, is_cut, is_literal
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.paths import go_through_ifs
from fusionlint.patterns.compiled.behind import Made, steps_in
from fusionlint.patterns.compiled.links import is_set, is_write
from fusionlint.patterns.compiled.readers import kernels_around, value_of
from fusionlint.patterns.runs.beside_scans import is_beside_scans
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_one_caller import is_for_numpy
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.writes.chain import is_only_written, path, root
from fusionlint.patterns.writes.firsts import are_few_firsts
from fusionlint.patterns.writes.folded import is_folded
from fusionlint.patterns.writes.fused import axis_of, is_worked_on_alone
from fusionlint.patterns.writes.heavy import is_handed_to_loops
from fusionlint.patterns.writes.masked import by_masks
from fusionlint.patterns.writes.places import edge, is_boundary, is_slice
from fusionlint.patterns.writes.rebuilt import rebuilt
from fusionlint.patterns.writes.words import BEHIND_IFS, masked
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_LONG = 30
_ALL_EDGES = (
    "one jnp.where of all edges, by jnp.arange(n) == 0 and == n - 1, or jnp.pad of the inner part: it fuses with what "
    "computes the array"
)
# An array no longer than this has columns, of which some happen to be the first and the last.
_COLUMNS = 16
# An edge is no more than this part of its axis.
_THIN = 4

_Edge = tuple[int, bool]  # the axis, and whether it is its end


@rule.source("Call", calls=WRITES)
def edges_written_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two or more edges of an array, each by its own write."""
    last = at_write(node)
    if last is None or edge(last) is None:
        return
    writes = path(last, source)
    if not is_boundary(writes, source) or is_folded(writes, source) or is_concrete(node, source):
        return
    array = root(writes[0])
    if are_few_firsts(writes, source) or is_only_written(array, source) or is_for_numpy(node, source):
        return
    if is_handed_to_loops(node, source) or is_beside_scans(node, source):
        return
    pair = 1 if _is_worked_on(writes, source) else 0
    name = source.assigned_name(node) or (array if isinstance(array, cst.Name) else None)
    is_path = go_through_ifs([write.call for write in writes], source)
    on_a_path = " on one path" if is_path else ""
    subject = f"the edges of `{name.value}`" if name else "the edges of an array"
    # Of a vector a TPU makes more kernels of a join than of the writes.
    joined = None if is_path or pair else rebuilt(writes, source)
    yield source.finding(
        writes[0].call,
        f"{subject} are written one by one{on_a_path}, each by a kernel of its own{' on a TPU' if pair else ''}",
        until=node,
        write=f"{BEHIND_IFS if is_path else ''}{_advice(writes, source)}",
        edits=joined.edits if joined is not None else by_masks(writes, source) if is_path or pair else (),
        pair=pair,
    )


@rule.barrier(pair=1)
@rule.barrier
def edge_after_edge(barrier: Barrier, module: hlo.Module) -> str | None:
    """The array between two writes of an edge."""
    return _ALL_EDGES if _are_edges(barrier, module) else None


def _is_worked_on(writes: Sequence[Write], source: Source) -> bool:
    """Whether elementwise work alone reads the first and the last of a vector, or of rows, that is computed here, as
    measured; under a vmap those are columns."""
    array, last = root(writes[0]), writes[-1].call
    is_made = isinstance(array, cst.Name) and source.value(array) is not None
    if not is_made or axis_of(writes) != 0 or under_vmap(last, source):
        return False
    return all(write.method == "set" for write in writes) and is_worked_on_alone(last, source)


def _advice(writes: list[Write], source: Source) -> str:
    """A `where` over the places; a `pad` where it says the same shorter."""
    jnp = source.jnp
    values = {source.code(write.value) for write in writes if write.value is not None}
    array = source.code(root(writes[0]))
    array = brief(array, _LONG, "u")
    axes = {found[0] for write in writes if (found := edge(write)) is not None}
    if len(values) == 1 and all(write.method == "set" for write in writes):
        if len(axes) > 1 and not all(is_literal(write.value) for write in writes):
            return masked(jnp, is_padded=False)  # a row is no column
        value = brief(values.pop(), _LONG, "value")
        return f"{jnp}.where(inner, {array}, {value}), where `inner` compares {jnp}.arange with the edges"
    if any(isinstance(write.value, cst.Subscript) and _is_its_own(write.value, writes, source) for write in writes):
        return f"{jnp}.pad of the inner part with mode='wrap', 'edge' or 'reflect', or {jnp}.concatenate of the parts"
    if len(axes) > 1 and all(write.method == "add" for write in writes):
        # Measured: a join along each axis is twice the memory on a CPU, and more than the writes on a TPU.
        return f"one sum of {array} and all that is added, each brought to its place by {jnp}.pad"
    if any(_is_of_several(part) for write in writes for part in write.index):
        along = f", axis={axes.pop()}" if len(axes) == 1 else " along each axis"
        return f"{jnp}.concatenate of what is written at the start, what stays, and what is written at the end{along}"
    if len(axes) > 1 or any(is_cut(part) for w in writes for part in w.index):
        return masked(jnp, is_padded=False)
    along = f"with `«i» = {jnp}.arange(«n»)`{_along(axes.pop())}"
    if all(write.method == "add" for write in writes):
        return f"{array} + {jnp}.where(«i» == 0, first, 0) + {jnp}.where(«i» == «n» - 1, last, 0) {along}"
    if any(write.method != "set" for write in writes):
        return masked(jnp, is_padded=False)
    told = ["«i» == 0, first", "«i» == «n» - 1, last"]
    end = edge(writes[-1])
    outer, inner = told if end is not None and end[1] else reversed(told)  # of one element what is written last stays
    return f"{jnp}.where({outer}, {jnp}.where({inner}, {array})) {along}"


def _is_its_own(part: cst.Subscript, writes: Sequence[Write], source: Source) -> bool:
    """Whether a part is of the array that is written, `u.at[0].set(u[-2])`, and no edge that another one has."""
    names = [source.assigned_name(write.call) for write in writes]
    own = {source.code(root(writes[0])), *(name.value for name in names if name is not None)}
    return source.code(part.value) in own


def _along(axis: int) -> str:
    return f" along axis {axis}" if axis else ""


def _is_of_several(part: Part) -> bool:
    """`:k` or `-k:`."""
    return is_slice(part) and isinstance(part, cst.Slice) and (part.lower is None) != (part.upper is None)


def _are_edges(barrier: Barrier, module: hlo.Module) -> bool:
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


def _edge(write: Made, module: hlo.Module) -> _Edge | None:
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
