"""A list for what the turns of a Python loop write, and one write of it behind the loop: of a new array that the loop
writes all of, the stack of the list is the array.

In: the writes of a loop of a Source, and how its turns are counted. Out: edits; none where the code does not show that
no two turns write one place, and what the values are shaped like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import Write, holds, is_fresh, is_whole, names_read, reads
from fusionlint.patterns.code.before import free_name, lines_beside
from fusionlint.patterns.code.calls import argument, as_argument
from fusionlint.patterns.code.layout import Called, Part, in_place_of, named_as
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.loops.whole_turns import does_all_of_its_body, has_a_comment, is_read_behind, stored_by
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.loop_slices import is_the_same_each_turn
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.patterns.writes.turns import Turns, place_of_all, rows_of, turns_of
from fusionlint.patterns.writes.whole import Whole, is_a_row, is_of_dtype, made_as, whole
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Values written so are one expression; longer ones go into a list turn by turn.
_LONG = 100


class _Piece(NamedTuple):
    """One write of a loop as it is said of all turns: the index, and how the values are put together."""

    write: Write
    places: str
    axis: int | None  # along which rows are stacked; None of numbers
    row: str  # the shape of a row, "" where the values are seen to have it
    whole: Whole | None  # where nothing but the values is in the array


def as_a_list(writes: Sequence[Write], turns: Turns, loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...]:
    """The edits for all writes of a loop that counts its `turns`."""
    if (table := _as_a_table(writes, turns, loop, jnp, source)) is not None:
        return table
    pieces = [_piece(write, turns, loop, jnp, source) for write in writes]
    told = [piece for piece in pieces if piece is not None]
    if len(told) < len(pieces):
        return ()
    if len(told) == 1 and (short := _in_one_expression(told[0], turns, loop, jnp, source)) is not None:
        return short
    return _by_lists(told, loop, jnp, source)


def _as_a_table(
    writes: Sequence[Write], turns: Turns, loop: cst.For, jnp: str, source: Source
) -> tuple[Edit, ...] | None:
    """The same of new matrices whose places two loops fill, one inside the other; None of other loops."""
    block = source.parent(loop)
    around = source.parent(block) if block is not None else None
    outer = turns_of(around, source) if isinstance(around, cst.For) and does_all_of_its_body(around, source) else None
    if outer is None or not isinstance(around, cst.For):
        return None
    pieces = []
    for write in writes:
        rows = [rows_of(part, by) for part, by in zip(write.index, (outer, turns), strict=False)]
        taken = {axis: one for axis, one in enumerate(rows) if one is not None}
        found = whole(write, taken, around, source) if len(write.index) == len(taken) == 2 else None
        if found is None or len(found.made.sizes) != 2 or found.made.rest:
            return None
        pieces.append(_Piece(write, "", None, "", found))
    return _by_lists(pieces, around, jnp, source)


def _piece(write: Write, turns: Turns, loop: cst.For, jnp: str, source: Source) -> _Piece | None:
    """How one write is said of all turns."""
    moved = [number for number, part in enumerate(write.index) if not is_the_same_each_turn(part, loop)]
    others = [part for number, part in enumerate(write.index) if number not in moved and not is_whole(part)]
    if not moved or write.value is None or isinstance(write.value, cst.List | cst.Tuple | cst.GeneratorExp):
        return None
    if not all(isinstance(part, cst.BaseExpression) and is_one_for_sure(part, source) for part in others):
        return None
    if any(_is_counted_around(name, loop, source) for part in others for name in names_read(part)):
        return None  # of one loop inside another what is written is a table
    places = [place_of_all(write.index[number], turns, jnp, is_only=len(moved) == 1, source=source) for number in moved]
    if None in places:
        return None
    parts = [source.code(part) for part in write.index]
    for number, place in zip(moved, places, strict=True):
        parts[number] = str(place)
    first = _begun(write, source)
    axes = axes_of(first, source) if first is not None else None
    is_open = any(isinstance(part, cst.Ellipsis) for part in write.index)
    axis = moved[0] - len(write.index) if is_open and _is_behind_an_ellipsis(moved[0], write) else moved[0]
    rows = rows_of(write.index[moved[0]], turns)
    all_of_it = whole(write, {axis: rows}, loop, source) if rows is not None else None
    axes = len(all_of_it.made.sizes) if all_of_it is not None and not all_of_it.made.rest else axes
    if axes == len(write.index) and not any(map(is_whole, write.index)):
        return _Piece(write, ", ".join(parts), None, "", all_of_it)
    if others or len(moved) > 1:
        return None
    row = all_of_it.made.row(axis) if all_of_it is not None else _row(write, first, axis, axes, source)
    if row is None or not (turns.at_least_one or all_of_it or _is_as_long(first, axis, turns, source)):
        return None  # nothing is no rows that a stack takes
    is_seen = is_a_row(write.value, row, write, source)
    return _Piece(write, ", ".join(parts), axis, "" if is_seen else row, all_of_it)


def _is_counted_around(name: cst.Name, loop: cst.For, source: Source) -> bool:
    """Whether a loop around this one counts by that name."""
    around = source.ancestors(loop, cst.For)
    return any(reads(above.target, name.value) for above in around)


def _is_behind_an_ellipsis(place: int, write: Write) -> bool:
    return any(isinstance(part, cst.Ellipsis) for part in write.index[:place])


def _begun(write: Write, source: Source) -> Write | None:
    """A write to what the array is made as; None where that is not seen."""
    begun = begun_with(write, source)
    return begun if is_fresh(root(begun), source) else None


def _is_as_long(first: Write | None, axis: int, turns: Turns, source: Source) -> bool:
    """Whether a new array is seen to have as many rows as there are turns, which nobody writes for none."""
    made = meant_in_the_end(root(first), source) if first is not None else None
    shape = argument(made, 0, "shape") if isinstance(made, cst.Call) else None
    if not isinstance(shape, cst.Tuple) or not -len(shape.elements) <= axis < len(shape.elements):
        return False
    return source.code(shape.elements[axis].value) in turns.end


def _row(write: Write, first: Write | None, axis: int, axes: int | None, source: Source) -> str | None:
    """The shape of what one turn writes, by the sizes that the array is made with where they are seen."""
    begun = root(first) if first is not None else None
    made = made_as(begun, source) if begun is not None and is_same_at(begun, write.call, source) else None
    is_known = made is not None and -max(len(made.sizes), 1) <= axis < max(len(made.sizes), 1)
    row = made.row(axis) if made is not None and is_known else None
    return row if row not in (None, "()") else row_of(write.array, axis, axes, source)


def row_of(array: cst.BaseExpression, axis: int, axes: int | None, source: Source) -> str | None:
    """The shape of what one turn writes, asked of the array."""
    shape = f"{source.code(array)}.shape"
    if axis == -1 or (axes is not None and axis == axes - 1):
        return f"{shape}[:-1]"
    if axis == 0:
        return f"{shape}[1:]"
    if axis > 0 and axes is not None:
        return f"{shape}[:{axis}] + {shape}[{axis + 1}:]"
    return None


def _in_one_expression(piece: _Piece, turns: Turns, loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...] | None:
    """The write of a list that is made where it is written, in place of a loop that does nothing else."""
    value = piece.write.value
    if value is None or len(loop.body.body) > 1 or has_a_comment(loop, source) or is_read_behind(loop, source):
        return None
    if holds(value, cst.NamedExpr, cst.Lambda):
        return None
    said = str(_shaped(piece, jnp, source))
    text = f"{said} for {_gone_over(turns, value, loop, source)}"
    if len(text) > _LONG or "\n" in text:
        return None
    made = whole_line(piece.whole.statement, source) if piece.whole is not None else None
    line = named_as(source.code(piece.write.array), _written(piece, f"[{text}]", jnp, source), loop, source)
    return (*([Edit(made, "")] if made is not None else []), source.replace(loop, line))


def _gone_over(turns: Turns, value: cst.BaseExpression, loop: cst.For, source: Source) -> str:
    """`i in range(n)`; of `i, part in enumerate(parts)`, where the value needs no number, `part in parts`."""
    match loop.target, loop.iter:
        case cst.Tuple(elements=[_, cst.Element(value=one)]), cst.Call(args=[cst.Arg(value=over)]):
            if not reads(value, turns.counter):
                return f"{source.code(one)} in {source.code(over)}"
    return f"{source.code(loop.target)} in {source.code(loop.iter)}"


def _shaped(piece: _Piece, jnp: str, source: Source) -> Part:
    value = as_argument(piece.write.value, source) if piece.write.value is not None else ""
    return Called(f"{jnp}.broadcast_to", [value, piece.row]) if piece.row else value


def _written(piece: _Piece, values: str, jnp: str, source: Source) -> Called:
    """What the array is, behind the loop."""
    axis = [f"axis={piece.axis}"] if piece.axis else []
    joined = f"{jnp}.array" if piece.axis is None else f"{jnp}.stack"
    if piece.whole is not None:
        dtype = piece.whole.made.dtype
        is_seen = is_of_dtype(piece.write.value, dtype, source)
        is_a_table = len(piece.write.index) == len(piece.whole.made.sizes) == 2
        shape = f".reshape({', '.join(piece.whole.made.sizes)})" if is_a_table and piece.axis is None else ""
        return Called(joined, [values, *axis, *([] if is_seen or not dtype else [f"dtype={dtype}"])], behind=shape)
    array = source.code(piece.write.array)
    return Called(f"{array}.at[{piece.places}].{piece.write.method}", [Called(joined, [values, *axis])])


def _by_lists(pieces: Sequence[_Piece], loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...]:
    """A list before the loop, in place of the array where all of that is in it, what each turn appends, and the write
    of it behind the loop."""
    names = [free_name(f"{dotted(piece.write.array)}_values", loop, source) for piece in pieces]
    if _is_written_within(pieces, loop):
        return ()
    named = [*zip(names, pieces, strict=True)]
    lines = lines_beside(
        loop,
        source,
        before=[f"{name} = []" for name, piece in named if piece.whole is None],
        behind=[
            named_as(source.code(piece.write.array), _written(piece, name, jnp, source), loop, source)
            for name, piece in named
        ],
    )
    if lines is None:
        return ()
    made = (source.replace(p.whole.statement, f"{name} = []") for name, p in named if p.whole is not None)
    return (*lines, *made, *(edit for name, piece in named for edit in _appended(name, piece, jnp, source)))


def _is_written_within(pieces: Sequence[_Piece], loop: cst.For) -> bool:
    """Whether the body of the loop writes what says where the values go."""
    index = [part for piece in pieces if piece.whole is None for part in piece.write.index]
    return not stored_by(loop).isdisjoint(name.value for part in index for name in names_read(part))


def _appended(name: str, piece: _Piece, jnp: str, source: Source) -> Iterator[Edit]:
    """`x_values.append(value)` for `x = x.at[i].set(value)`; a value of several lines stays as it is laid out."""
    call, statement, value = piece.write.call, source.parent(piece.write.call), piece.write.value
    assert statement is not None
    assert value is not None
    if "\n" not in source.code(value):
        yield in_place_of(statement, Called(f"{name}.append", [_shaped(piece, jnp, source)]), source)
        return
    begin, end = source.location(statement), source.location(call.func)
    yield Edit(begin._replace(end_line=end.end_line, end_column=end.end_column), f"{name}.append")
    if piece.row:
        yield in_place_of(value, _shaped(piece, jnp, source), source)
