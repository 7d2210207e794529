"""What to write instead of blocks of an array that are written one after the other.

In: the writes of one array, each of a block, and the Source that they stand in. Out: the words of an advice.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    Part,
    Write,
    at_write,
    constant,
    counted_axis,
    first_axis,
    inside,
    is_literal,
    is_none,
    is_whole,
    names_read,
)
from fusionlint.patterns.code.calls import brief, hides_some, said_dtype
from fusionlint.patterns.loops.collected import target_names
from fusionlint.patterns.values.array_sizes import is_of_one_axis, is_vector
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.chain import is_added, root
from fusionlint.patterns.writes.fused import axis_of
from fusionlint.patterns.writes.loop import are_windows_apart
from fusionlint.patterns.writes.pieces import are_all, pieces, read_back
from fusionlint.patterns.writes.places import is_slice
from fusionlint.patterns.writes.seen import see
from fusionlint.patterns.writes.words import masked
from fusionlint.source.tree import Source

_LONG = 40
# What counts gives numbers; of `for s, block in zip(slices, blocks)` each may be a slice.
_COUNT = ("range", "enumerate")
_DEPTH = 12
# Which of the devices this is: one number, as long as no axis is gathered.
_PLACES = ("jax.lax.axis_index", "jax.lax.axis_size")


def advice(writes: Sequence[Write], source: Source) -> str | None:
    """What puts the blocks together at once; None where one lies on another, and is not joined to it."""
    if all(write.method == "add" or is_added(write, source) for write in writes):
        jnp = source.jnp
        return f"a sum of the parts, each brought to its place by {jnp}.pad: they may overlap"
    told, array = _at_once(writes, source), read_back(writes, source)
    if told is None or array is None:
        return told if told is None else f"{told}{_as_it_was(writes, source)}"
    apart = f"the parts under names of their own, made of one another and not of `{array}`"
    together = "one write of them" if axis_of(writes) is None else f"one {source.jnp}.concatenate"
    return f"{apart}; then {together}"


def advice_for_a_loop(write: Write, loop: cst.For, source: Source) -> str:
    """What puts the blocks together that a loop writes, one in each iteration."""
    jnp = source.jnp
    if is_literal(write.value):
        return f"a mask of all blocks at once: {jnp}.arange of each axis compared with where they begin and end"
    if _is_tile(write, loop, source):
        return f"a list of blocks for each row of them, and one {jnp}.block(rows) after the loops"
    between = " and of what stands around them, if anything, in the order of their places"
    if are_windows_apart(write, loop, source) and _starts_at_zero(loop):
        between = ""
    return f"a list of the blocks{between}, and {_joined(write, loop, source)} of it after the loop"


def _starts_at_zero(loop: cst.For) -> bool:
    """`range(n)` and `range(0, n, w)`: nothing stands before the first block."""
    match loop.iter:
        case cst.Call(args=[_] | [cst.Arg(value=cst.Integer(value="0")), *_]):
            return True
    return False


def _as_it_was(writes: Sequence[Write], source: Source) -> str:
    """What the array's elements were said to be, if not what those of another are: its parts may be something else."""
    made = source.meant(root(writes[0]))
    if not source.calls(made, *FRESH_BY_SHAPE) or hides_some(made):
        return ""
    asked = said_dtype(made, source)
    is_of_another = (
        isinstance(asked, cst.Attribute) and asked.attr.value == "dtype" and _are_all_of(asked.value, writes)
    )
    return "" if asked is None or is_none(asked) or is_of_another else f"; all of it {source.code(asked)}, as now"


def _are_all_of(array: cst.BaseExpression, writes: Sequence[Write]) -> bool:
    """Whether everything that is written is made of one array, or one number: of two arrays each has its own dtype."""
    values = [write.value for write in writes if write.value is not None and not is_literal(write.value)]
    return all(any(part.deep_equals(array) for part in inside(value)) for value in values)


def _at_once(writes: Sequence[Write], source: Source) -> str | None:
    """The same for parts that are made of nothing that was written before: the form whose obligations are met."""
    jnp, seen = source.jnp, see(writes, source)
    if seen.are_sums:
        return f"a sum of the parts, each brought to its place by {jnp}.pad: they may overlap"
    if (chosen := _chosen(writes, source)) is not None:
        return chosen
    rest = _filled(writes, source)
    if (axis := axis_of(writes)) is not None and seen.methods == {"set"}:
        return _concatenated(writes, axis, source)
    if _are_along_one(writes, source):
        along = "along the axis in which they differ"
        return f"one {jnp}.concatenate of the blocks {along}, with {jnp}.{rest} between them, and one write of that"
    if all(_is_filled(write, source) for write in writes):
        return masked(jnp, is_padded=False)
    is_diagonal = all(_is_diagonal(write, source) and len(write.index) == 2 for write in writes)
    if rest == "zeros" and ((is_diagonal and seen.are_cut_apart) or _meet_at_corners(writes, source)):
        return f"jax.scipy.linalg.block_diag({', '.join(_shown(write, source) for write in writes)})"
    if seen.are_a_matrix and seen.methods == {"set"}:
        return f"{jnp}.block([[..., ...], [..., ...]]) of the blocks, with {jnp}.{rest} where nothing is written"
    return masked(jnp, is_padded=True)


def _concatenated(writes: Sequence[Write], axis: int, source: Source) -> str | None:
    """The blocks along one axis in the order of their places; None where one lies on another."""
    parts = [next(part for part in write.index if not is_whole(part)) for write in writes]
    in_order = pieces(parts, source)
    if in_order is None:
        return None
    jnp, rest = source.jnp, _filled(writes, source)
    joined = ", ".join(
        _piece(writes[piece.number], parts[piece.number], axis, piece.cut, f"part_{i}", source)
        for i, piece in enumerate(in_order, 1)
    )
    is_block = any(
        isinstance(part, cst.Slice) and not _is_filled(w, source) for part, w in zip(parts, writes, strict=True)
    )
    shaped = ", each in the shape of its part" if is_block else ""
    between = "" if are_all(parts, in_order, source) else f", with {jnp}.{rest} where nothing is written"
    return f"{jnp}.concatenate([{joined}], axis={axis}){shaped}{between}"


def _is_filled(write: Write, source: Source) -> bool:
    """Whether one number goes to all of a block."""
    return write.value is not None and _is_number(write.value, source)


def _are_along_one(writes: Sequence[Write], source: Source) -> bool:
    """Whether the blocks lie in one and the same part of the array, `[:k, -1]` and `[k:, -1]`."""
    if len({len(write.index) for write in writes}) != 1:
        return False
    along = [{source.code(part) for part in parts} for parts in zip(*(write.index for write in writes), strict=True)]
    return sum(len(parts) > 1 for parts in along) == 1


def _chosen(writes: Sequence[Write], source: Source) -> str | None:
    """A `where`, where two numbers fill an array of one axis: `.at[:k].set(a).at[k:].set(b)`."""
    array = root(writes[0])
    made = source.meant(array)
    if not isinstance(made, cst.Call) or not is_of_one_axis(made, source) or not made.args:
        return None
    match [write.index for write in writes]:
        case [[cst.Slice(lower=None, upper=end, step=None)], [cst.Slice(lower=begin, upper=None, step=None)]]:
            meet = end is not None and begin is not None and end.deep_equals(begin)
            if meet and end is not None and all(w.value is not None and _is_number(w.value, source) for w in writes):
                jnp, n = source.jnp, brief(source.code(made.args[0].value), _LONG, "n")
                one, other = (_shown(write, source) for write in writes)
                return f"{jnp}.where({jnp}.arange({n}) < {source.code(end)}, {one}, {other})"
    return None


def _is_number(value: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether this is one number: of Python, of a device's place among others, or arithmetic with such."""
    if is_literal(value) or kind(value, source) == "scalar" or source.calls(value, *_PLACES):
        return True
    match value:
        case cst.Subscript(value=cst.Name() as vector, slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            return constant(place) is not None and is_vector(vector, source)
        case cst.Call(args=[cst.Arg(value=each), *_]) if source.calls(value, "jax.lax.psum"):
            return is_literal(each)  # how many devices there are
        case cst.Name() if depth:
            meant = source.value(value)
            return _is_said_to_be_one(value, source) if meant is None else _is_number(meant, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right) if depth:
            return all(_is_number(side, source, depth - 1) for side in (left, right))
    return False


def _is_said_to_be_one(name: cst.Name, source: Source) -> bool:
    """Whether this is a parameter `scale: float`: one number, whether a trace knows it or not."""
    match source.binder(name):
        case cst.Param(annotation=cst.Annotation(annotation=cst.Name("float" | "int" | "bool"))):
            return True
    return False


def _piece(write: Write, part: Part, axis: int, cut: str, name: str, source: Source) -> str:
    """What is joined, long code under a `name`: what is written to one place, `.at[:, 0].set(v)`, lacks the axis, and a
    number all of them."""
    jnp, shown = source.jnp, _shown(write, source, name)
    if _is_filled(write, source):
        return f"{jnp}.full(..., {shown})"
    if cut:
        before = [":"] * axis if axis >= 0 else ["..."]
        index = ", ".join([*before, cut, *[":"] * (-axis - 1)])
        is_one = isinstance(write.value, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
        return f"{shown}[{index}]" if is_one or shown == name else f"({shown})[{index}]"
    if isinstance(part, cst.Slice) or write.value is None:
        return shown
    return f"{jnp}.expand_dims({shown}, {axis})"


def _filled(writes: Sequence[Write], source: Source) -> str:
    """What the new array is made by: `zeros`, `ones`, `full`."""
    array = root(writes[0])
    made = source.value(array) if isinstance(array, cst.Name) else array
    name = (source.qualified_name(made.func) or "") if isinstance(made, cst.Call) else ""
    return name.rpartition(".")[2].removesuffix("_like") or "zeros"


def _is_tile(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether two loops count the blocks, one the rows of them and one the columns."""
    around = source.loop(loop)
    slices = [part for part in write.index if is_slice(part)]
    if not isinstance(around, cst.For) or len(slices) != 2:
        return False
    inner, outer = target_names(loop), target_names(around)
    named = [{name.value for name in names_read(part)} for part in slices]
    return any(one & outer and other & inner for one, other in (named, reversed(named)))


def _joined(write: Write, loop: cst.For, source: Source) -> str:
    jnp = source.jnp
    if len([part for part in write.index if not is_whole(part)]) == 1:
        return f"one {jnp}.concatenate(blocks, axis={counted_axis(first_axis(write), write.index)})"
    if _is_diagonal(write, source) and len(write.index) == 2 and not _is_written_beside(write, loop, source):
        return "one jax.scipy.linalg.block_diag(*blocks)"
    if all(is_whole(part) or isinstance(part, cst.Slice) for part in write.index):
        return f"one {jnp}.block of the rows of them, with {jnp}.zeros where there is none,"
    if not isinstance(source.loop(loop), cst.For):  # one block in each row, or in some rows
        join = "stack" if source.calls(loop.iter, *_COUNT) else "concatenate"
        rows = "row" if join == "stack" else "rows"
        along = "" if join == "stack" else " or jax.scipy.linalg.block_diag where they lie along the diagonal,"
        return f"one {jnp}.{join}, each block brought to its place in its {rows} by {jnp}.pad,{along}"
    return f"one {jnp}.concatenate along the slice's axis for each place, then one {jnp}.stack"


def _is_written_beside(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether the loop writes other blocks of the array too, beside the diagonal."""
    calls = (part for part in inside(loop.body, cst.Call) if part is not write.call)
    others = [found for call in calls if (found := at_write(call)) is not None]
    return any(source.code(root(found)) == source.code(root(write)) for found in others)


def _is_diagonal(write: Write, source: Source) -> bool:
    """Whether rows and columns are the same slice."""
    parts = [part for part in write.index if not is_whole(part)]
    return len(parts) == 2 and all(map(is_slice, parts)) and source.code(parts[0]) == source.code(parts[1])


def _meet_at_corners(writes: Sequence[Write], source: Source) -> bool:
    """Whether two blocks, square or not, touch at a corner: `.at[:m, :n].set(a).at[m:, n:].set(b)`."""
    match [write.index for write in writes]:
        case [(cst.Slice() as rows, cst.Slice() as columns), (cst.Slice() as below, cst.Slice() as beside)]:
            return _goes_on(rows, below, source) and _goes_on(columns, beside, source)
    return False


def _goes_on(first: cst.Slice, second: cst.Slice, source: Source) -> bool:
    """`:m`, then `m:`."""
    if first.lower is not None or first.upper is None or second.lower is None or second.upper is not None:
        return False
    return source.code(first.upper) == source.code(second.lower)


def _shown(write: Write, source: Source, otherwise: str = "...") -> str:
    text = source.code(write.value) if write.value is not None else otherwise
    return brief(text, _LONG, otherwise)
