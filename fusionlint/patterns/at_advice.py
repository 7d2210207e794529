"""What to write instead of writes one after the other: whichever of a stack, a scatter or a `where` says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import libcst as cst

from fusionlint.patterns.at import (
    Part,
    Write,
    constant,
    inside,
    is_fresh,
    is_static,
    is_whole,
)
from fusionlint.patterns.at_axis import along_one_axis, fuses_on_a_gpu, is_called_a_slice, is_place, said_along
from fusionlint.patterns.at_carried import is_carried
from fusionlint.patterns.at_chain import is_about, root
from fusionlint.patterns.at_interleaved import interleaved
from fusionlint.patterns.at_line import cross_somewhere, of_one_line
from fusionlint.patterns.at_many import are_arrays, are_rows_of_ranges
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_ADDED = frozenset(("add", "subtract"))
# An advice longer than this says less than its outline.
_LONG = 60
_WHICH_IS_LAST = "of two at one place, no scatter says which is last"
# The measured pairs of the rule's page: elements by one scatter, loops, arrays of places by one scatter, places along
# an axis by `where` or a stack, and these where XLA fuses a GPU's writes with what reads them.
ELEMENTS, LOOP, ARRAYS, ALONG, FUSED = range(5)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to write, and the pair of the rule's page that shows what comes of it."""

    text: str
    pair: int


def advice(writes: Sequence[Write], name: str, source: Source) -> Advice:
    """One stack, one scatter, or a `where` over the places: whichever says the same and is measured to be less."""
    jnp = source.alias("jax.numpy") or "jnp"
    array = dotted(root(writes[0])) or name or "x"
    places = None if are_arrays(writes, source) else along_one_axis(writes)
    pair = FUSED if places is not None and fuses_on_a_gpu(writes, places, source) else ALONG
    if _are_at_one_place(writes, source):
        return Advice("one write of what the others make of it", pair)
    line = of_one_line(writes, array, source, jnp)
    if _reads_back(writes, source) or _is_rebound(writes, source):
        one = line or _outline(writes, array, source, jnp, are_along=places is not None)
        return Advice(f"the values first, under names of their own; then {one}", pair)
    if line is not None:
        return Advice(line, ALONG)
    if _is_stack(writes, source):
        return Advice(f"{jnp}.stack([{', '.join(_short(w.value, source) for w in writes)}])", pair)
    if are_rows_of_ranges(writes, source):
        return Advice(f"one {jnp}.concatenate of the parts, and of what stands between them, in their order", ALONG)
    if places is not None:
        return _along(writes, places, array, source, jnp, pair)
    if (between := interleaved(writes, array, source, jnp)) is not None:
        return Advice(between, ALONG)
    if all(is_static(part) for write in writes for part in write.index) and not _are_slices_added(writes):
        if _are_of_several_axes(writes):
            return Advice(_masked(jnp), pair)
        known = f"{jnp}.concatenate or {jnp}.stack of the parts, or `{jnp}.where({jnp}.arange(n) == k, value, {array})`"
        return Advice(known, pair)
    if _have_slices(writes):
        return Advice(_of_slices(writes, source, jnp), pair)
    if len({w.method for w in writes}) > 1:
        return Advice(f"`{jnp}.where({jnp}.arange(n) == i, value, {array})`, one inside the other", pair)
    return _scattered(writes, array, source, jnp)


def _of_slices(writes: Sequence[Write], source: Source, jnp: str) -> str:
    """One join of what lies side by side, a sum of what may overlap."""
    if cross_somewhere(writes):
        return _masked(jnp)
    if all(write.method == "set" for write in writes):
        joins = "block" if _are_of_a_table(writes, source) else "concatenate"
        return f"one {jnp}.{joins} of the parts and of what stands between them"
    side_by_side = f"one {jnp}.concatenate where the parts lie side by side"
    if not any(write.method in _ADDED for write in writes):
        return side_by_side
    return f"{side_by_side}, a sum of them behind {jnp}.pad where they overlap"


def _are_slices_added(writes: Sequence[Write]) -> bool:
    """Whether slices are added: they may overlap, and are no parts of a join then."""
    return {write.method for write in writes} <= _ADDED and _have_slices(writes)


def _are_of_several_axes(writes: Sequence[Write]) -> bool:
    """Whether each is one place of two axes or more, `[0, 0]` and `[-1, -1]`: no mask of one axis says where."""
    return all(
        sum(not is_whole(part) for part in write.index) > 1 and not any(isinstance(p, cst.Slice) for p in write.index)
        for write in writes
    )


def _have_slices(writes: Sequence[Write]) -> bool:
    return any(isinstance(part, cst.Slice) and not is_whole(part) for write in writes for part in write.index)


def _along(writes: Sequence[Write], places: Sequence[Part], array: str, source: Source, jnp: str, pair: int) -> Advice:
    if is_carried(writes, source):
        return Advice(_scattered(writes, array, source, jnp).text, ARRAYS)  # a CPU gains nothing
    if any(_is_found_by_a_function(place, source) for place in places):
        told = f"one {jnp}.stack or concatenate of the parts where they lie side by side"
        return Advice(f"{told}; else one {jnp}.where of a mask of the places", pair)
    return Advice(said_along(writes, places, array, source, jnp), pair)


def _is_found_by_a_function(place: Part, source: Source) -> bool:
    """Whether a function of the project returns the place: a number, an array, or a slice."""
    made = source.value(place) if isinstance(place, cst.Name) else None
    if not isinstance(made, cst.Call):
        return False
    return dotted(made.func).startswith("self.") or ":" in (source.qualified_name(made.func) or "")


def _scattered(writes: Sequence[Write], array: str, source: Source, jnp: str) -> Advice:
    """What only the run knows: one scatter to all places, and masks without any."""
    method = writes[0].method
    unless = f"; {_WHICH_IS_LAST}: {jnp}.where does" if _may_meet(writes, source) else ""
    if _are_lines_across(writes):
        return Advice(_masked(jnp), ELEMENTS)
    if any(is_called_a_slice(part) for write in writes for part in write.index):
        side_by_side = f"one {jnp}.concatenate of the parts where they lie side by side"
        return Advice(f"{side_by_side}, and one `.{method}` of that", ALONG)
    if are_arrays(writes, source):
        joined = f"its indices and values joined by {jnp}.concatenate"
        return Advice(f"one `{array}.at[...].{method}(...)`, {joined}{unless}", ARRAYS)
    parts = [[source.code(part) for part in write.index if is_place(part)] for write in writes]
    if {len(found) for found in parts} == {len(write.index) for write in writes} == {len(parts[0])}:
        indices = ", ".join(_joined(axis, jnp) for axis in zip(*parts, strict=True))
        values = _joined([source.code(w.value) for w in writes if w.value is not None], jnp)
        settings = {", ".join(source.code(arg) for arg in write.call.args[1:]) for write in writes}
        one = f"{array}.at[{indices}].{method}({', '.join([values, *filter(None, settings)])})"
        if len(settings) == 1 and len(one) <= 2 * _LONG and "\n" not in one:
            return Advice(one + unless, ELEMENTS)
    return Advice(f"{array}.at[all the indices].{method}(all the values)" + unless, ELEMENTS)


def _are_of_a_table(writes: Sequence[Write], source: Source) -> bool:
    """Whether the parts are told apart along more than one axis, `.at[:k, :k].set(a).at[k:, k:].set(b)`."""
    places = zip(*([source.code(part) for part in write.index] for write in writes), strict=False)
    return sum(len(set(along)) > 1 for along in places) > 1


def _outline(writes: Sequence[Write], array: str, source: Source, jnp: str, *, are_along: bool) -> str:
    """The same for values whose names say nothing here: they mean something else at another write."""
    if _is_stack(writes, source):
        return f"one {jnp}.stack of them"
    if are_along:
        return f"one {jnp}.where in the other"
    if cross_somewhere(writes):
        return _masked(jnp)
    if _have_slices(writes):
        return f"one {jnp}.concatenate of them and of what stands between them"
    if _are_lines_across(writes):
        return _masked(jnp)
    if len({write.method for write in writes}) > 1:
        return f"one {jnp}.where in the other"
    apart = all(are_apart(one.index, other.index) for one, other in combinations(writes, 2))
    unless = "" if apart or writes[0].method != "set" else f"; {_WHICH_IS_LAST}: {jnp}.where does"
    return f"{array}.at[all the indices].{writes[0].method}(all the values){unless}"


def _are_lines_across(writes: Sequence[Write]) -> bool:
    """Whether whole lines along different axes are written, rows and columns, of which no one list of places tells."""
    rank = max(len(write.index) for write in writes)
    wholes = {tuple(k >= len(w.index) or is_whole(w.index[k]) for k in range(rank)) for w in writes}
    return sum(map(any, wholes)) > 1


def _masked(jnp: str) -> str:
    return f"one {jnp}.where of a mask: {jnp}.arange along each axis, compared with the places"


def _reads_back(writes: Sequence[Write], source: Source) -> bool:
    """Whether a value is made of what an earlier write left in the array."""
    names = [source.assigned_name(write.call) for write in writes[:-1]]
    reads = ([read for read in source.reads(name) if not is_about(read, source)] for name in names if name is not None)
    return any(len(found) > 1 for found in reads)


def _are_at_one_place(writes: Sequence[Write], source: Source) -> bool:
    """Whether one place is written again and again, which is called the same and means the same each time."""
    if len({tuple(map(source.code, write.index)) for write in writes}) > 1:
        return False
    names = [name for write in writes for part in write.index for name in inside(part) if isinstance(name, cst.Name)]
    return all(len({source.written(name) for name in names if name.value == n}) == 1 for n in {m.value for m in names})


def _is_rebound(writes: Sequence[Write], source: Source) -> bool:
    """Whether a name in a value or a place means something else by the time of the last write."""
    said = [part for w in writes for part in (w.value, *w.index) if part is not None]
    names = [name for part in said for name in inside(part) if isinstance(name, cst.Name)]
    return any(len({source.written(name) for name in names if name.value == n}) > 1 for n in {m.value for m in names})


def _may_meet(writes: Sequence[Write], source: Source) -> bool:
    """Whether another value would be left if two of the places were one: neither of values that are all the same, nor
    of two that change places."""
    if writes[0].method != "set" or len({source.code(w.value) for w in writes if w.value is not None}) == 1:
        return False
    if all(are_apart(one.index, other.index) for one, other in combinations(writes, 2)):
        return False
    array = dotted(root(writes[0]))
    taken = {f"{array}[{', '.join(map(source.code, write.index))}]" for write in writes}
    return {source.code(w.value) for w in writes if w.value is not None} != taken


def are_apart(one: Sequence[Part], other: Sequence[Part]) -> bool:
    """Whether two places are different on an axis where both are written out, and count from the same end."""
    pairs = [(constant(a), constant(b)) for a, b in zip(one, other, strict=False)]
    return any(a is not None and b is not None and a != b and (a < 0) == (b < 0) for a, b in pairs)


def _joined(parts: Sequence[str], jnp: str) -> str:
    return parts[0] if len({*parts}) == 1 else f"{jnp}.array([{', '.join(parts)}])"


def _short(value: cst.BaseExpression | None, source: Source) -> str:
    text = source.code(value) if value is not None else "..."
    return text if len(text) <= _LONG // 2 and "\n" not in text else "..."


def _is_stack(writes: Sequence[Write], source: Source) -> bool:
    """Whether a new array is set at 0, 1, 2, ... and is seen to be just so long."""
    places = [constant(w.index[0]) if len(w.index) == 1 and w.method == "set" else None for w in writes]
    fresh = root(writes[0])
    fresh = source.meant(fresh)
    match fresh:
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=[cst.Element(value=length), *_])), *_]):
            pass
        case cst.Call(args=[cst.Arg(value=length), *_]):
            pass
        case _:
            return False
    return is_fresh(fresh, source) and places == [*range(len(writes))] and constant(length) == len(writes)
