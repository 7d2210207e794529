"""One join in place of the writes along one axis of an array: `x.at[0].set(a).at[1:].set(b)`.

In: the writes, first to last, nested or in statements of one block. Out: the join, with the edits that write it. Each
part is `jnp.full_like` of what it is written over, which brings it to the shape and the dtype of its place as a write
does, unless it is seen to have those; what is not written stays a part of the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import Write, is_fresh, is_literal, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.layout import Called, in_a_list, in_place_of
from fusionlint.patterns.code.layout import Part as Code
from fusionlint.patterns.code.left_unused import whole_line, without_gaps
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.writes.chain import outermost, root
from fusionlint.patterns.writes.filled_place import Place
from fusionlint.patterns.writes.fused import axis_of
from fusionlint.patterns.writes.in_one_block import Steps, are_the_same_there, keep_their_order, steps_of
from fusionlint.patterns.writes.merged import made_for
from fusionlint.patterns.writes.pieces import join, pieces
from fusionlint.patterns.writes.plain_parts import dtype_of, in_a_row, in_columns
from fusionlint.source.tree import Source

_STRONG = ("jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty")


class Rebuilt(NamedTuple):
    """The join, the edits that write it, and whether it is the same to the last bit."""

    called: Called
    edits: tuple[Edit, ...]
    is_exact: bool


def rebuilt(writes: Sequence[Write], source: Source) -> Rebuilt | None:
    """None where something in the way of it is seen, or not enough is seen."""
    axis, jnp = axis_of(writes), source.alias_at(writes[-1].call, "jax.numpy")
    if axis is None or jnp is None or not all(_is_plain(write, source) for write in writes):
        return None
    if not is_fresh(root(writes[0]), source) and all(is_literal(write.value) for write in writes):
        return None  # a choice says that without taking the array apart
    steps = steps_of(writes, source)
    if steps is None or not are_the_same_there(writes, steps, source):
        return None
    parts = [next(part for part in write.index if not is_whole(part)) for write in writes]
    in_order = pieces(parts, source)
    joined = join(parts, in_order, _size(writes, axis, source), source) if in_order is not None else None
    if in_order is None or joined is None or not keep_their_order(writes, [p.number for p in in_order], steps, source):
        return None
    order = [piece.number for piece in in_order]
    if not any(joined.between) and not any(piece.cut for piece in in_order):
        if (row := in_a_row(writes, order, source)) is not None:
            return _without_the_array(writes, f"{jnp}.hstack", row, "", steps, source)
        are_one = all(not isinstance(part, cst.Slice) for part in parts)
        if are_one and axis != 0 and (columns := in_columns(writes, order, axis, source)) is not None:
            return _without_the_array(writes, f"{jnp}.stack", columns, f"axis={axis}", steps, source)
    first = root(writes[0])
    places = [Place(steps.array, first, write, part, jnp, source) for write, part in zip(writes, parts, strict=True)]
    filled = [places[piece.number].filled(piece.cut) for piece in in_order]
    kept = [places[0].slice(between) if between else "" for between in joined.between]
    listed: list[Code] = []
    for before, part in zip(kept, [*filled, None], strict=True):
        listed += [each for each in (before, part) if each]
    if not any(kept) and all(place.is_one for place in places) and axis != 0:
        called = Called(f"{jnp}.stack", [in_a_list(*(places[p.number].column() for p in in_order)), f"axis={axis}"])
    else:
        called = Called(f"{jnp}.concatenate", [in_a_list(*listed), *([f"axis={axis}"] if axis else [])])
    made = source.meant(root(writes[0]))
    is_plain = any(isinstance(each, str) for each in filled)
    is_exact = (
        joined.is_sure
        and not is_plain
        and source.calls(made, *_STRONG)
        and all(write.method == "set" for write in writes)
    )
    return Rebuilt(called, (in_place_of(writes[-1].call, called, source), *without_gaps(steps.edits, source)), is_exact)


def _without_the_array(
    writes: Sequence[Write], function: str, listed: Sequence[str], axis: str, steps: Steps, source: Source
) -> Rebuilt | None:
    """The parts as they are, one behind or beside the other, without the array that they were written to."""
    dtype = dtype_of(writes, source)
    if dtype is None:
        return None
    settings = [axis, f"dtype={dtype}" if dtype else ""]
    called = Called(function, [in_a_list(*listed), *filter(None, settings)])
    array, unread = root(writes[0]), _unread(writes, steps, source)
    before = steps.edits if unread is None else (Edit(unread, ""), *steps.edits[1:])
    edits = [in_place_of(writes[-1].call, called, source), *before]
    if isinstance(array, cst.Name) and (made := made_for(array, writes[0], source)) is not None:
        line = whole_line(made, source)
        edits += [Edit(line, "")] if line is not None else []
    return Rebuilt(called, without_gaps(edits, source), is_exact=False)


def _unread(writes: Sequence[Write], steps: Steps, source: Source) -> Location | None:
    """The first line, `x = jnp.zeros(n).at[0].set(a)`, where it would be left with an array that nobody reads."""
    name = source.assigned_name(outermost(writes[0], source).call)
    if len(steps.lines) < 2 or is_short(root(writes[0])) or name is None or len(source.reads(name)) > 1:
        return None
    return whole_line(steps.lines[0].body[0], source)


def _is_plain(write: Write, source: Source) -> bool:
    is_one = sum(not is_whole(part) for part in write.index) == 1
    is_set = write.method in ("set", "add") and write.value is not None and len(write.call.args) == 1
    return is_one and is_set and not source.has_comment(write.call)


def _size(writes: Sequence[Write], axis: int, source: Source) -> str:
    """How long a new array is said to be along an axis; "" where that is not seen."""
    made = source.meant(root(writes[0]))
    if not source.calls(made, *_STRONG, "jax.numpy.full"):
        return ""
    said = argument(made, 0, "shape")
    shape = source.meant(said)
    if isinstance(shape, cst.Tuple | cst.List):
        sizes = [each.value for each in shape.elements]
        if any(isinstance(each, cst.StarredElement) for each in shape.elements) or not -len(sizes) <= axis < len(sizes):
            return ""
        return source.code(sizes[axis])
    match shape:
        case cst.BinaryOperation(operator=cst.Add(), right=cst.Tuple(elements=[*_, cst.Element(value=last)])):
            return source.code(last) if axis == -1 else ""  # `x.shape + (2,)`
    return source.code(said) if said is not None and axis == 0 else ""
