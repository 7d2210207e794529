"""The edits for the writes of a Python loop: a list of the values, and one write of them all behind the loop, or one
write of one value at all places.

In: the writes of a loop of a Source. Out: edits, none where the code does not show that no two turns write one place,
that each turn writes, and what the values are shaped like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import (
    Part,
    Write,
    constant,
    inside,
    is_about,
    is_fresh,
    is_literal,
    is_whole,
    names_read,
)
from fusionlint.patterns.code.before import free_name
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.layout import end_of
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.loop import Piecewise
from fusionlint.patterns.writes.loop_slices import is_the_same_each_turn
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.masked import is_one_for_sure
from fusionlint.patterns.writes.places import meant
from fusionlint.patterns.writes.turns import Turns, is_one_each, place_of_all, reads, turns_of
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


def of_loop(found: Piecewise, loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """What a fix writes in place of the writes of a loop."""
    jnp = source.alias_at(loop, "jax.numpy")
    if jnp is None or not _is_plain(found, loop, source):
        return ()
    if (one := _one_value(found, loop, jnp, source)) is not None:
        return one
    turns = turns_of(loop, source)
    if turns is None:
        return ()
    pieces = [_piece(write, turns, loop, jnp, source) for write in found.writes]
    told = [piece for piece in pieces if piece is not None]
    if len(told) < len(pieces):
        return ()
    if len(told) == 1 and (short := _in_one_expression(told[0], loop, jnp, source)) is not None:
        return short
    return _by_lists(told, loop, jnp, source)


def _is_plain(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether every turn does all of its body, each write is a statement of it that stores nothing else, and no other
    statement writes to, or reads, an array that is written, but for the place before it is written."""
    if len({*found.arrays}) < len(found.writes):
        return False
    return all(
        is_once_a_turn(write, loop, source) and _reads_only_its_place(write, loop, source) for write in found.writes
    )


def is_once_a_turn(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether every turn does all of its body, and `x = x.at[...].set(value)`, a statement of it, is all of one."""
    if loop.orelse is not None or loop.asynchronous is not None or not isinstance(loop.body, cst.IndentedBlock):
        return False
    leaves = cst.Break | cst.Continue | cst.Return | cst.Yield | cst.Await
    if any(isinstance(node, leaves) and source.function(node) is source.function(loop) for node in inside(loop.body)):
        return False
    assign = source.parent(write.call)
    match assign:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]) if (
            isinstance(write.array, cst.Name) and write.array.value == name
        ):
            line = source.parent(assign)
        case _:
            return False
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or source.parent(line) is not loop.body:
        return False
    is_plain = len(write.call.args) == 1 and not write.call.args[0].star and not source.has_comment(write.call)
    return is_plain and isinstance(source.parent(loop), cst.IndentedBlock)


def _reads_only_its_place(write: Write, loop: cst.For, source: Source) -> bool:
    target = source.assigned_name(write.call)
    if target is None:
        return False
    end = source.order(target)
    for use in source.uses(target):
        if loop not in source.ancestors(use.node) or use.node in (target, write.array):
            continue
        is_before = use.order < end and _is_its_place(use.node, write, source)
        if use.is_write or not (is_about(use.node, source) or is_before):
            return False
    return True


def _is_its_place(read: cst.Name, write: Write, source: Source) -> bool:
    match source.parent(read):
        case cst.Subscript(value=value, slice=slices) if value is read:
            parts = [source.code(s.slice.value if isinstance(s.slice, cst.Index) else s.slice) for s in slices]
            return parts == [source.code(part) for part in write.index]
    return False


def _is_as_long(first: Write | None, axis: int, turns: Turns, source: Source) -> bool:
    """Whether a new array is seen to have as many rows as there are turns, which nobody writes for none."""
    made = meant(root(first), source) if first is not None else None
    shape = argument(made, 0, "shape") if isinstance(made, cst.Call) else None
    if not isinstance(shape, cst.Tuple) or not -len(shape.elements) <= axis < len(shape.elements):
        return False
    return source.code(shape.elements[axis].value) in turns.end


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
    if axes == len(write.index) and not any(map(is_whole, write.index)):
        return _Piece(write, ", ".join(parts), None, "")
    if others or len(moved) > 1:
        return None
    axis = moved[0] - len(write.index) if is_open and _is_behind_an_ellipsis(moved[0], write) else moved[0]
    row = row_of(write.array, axis, axes, source)
    if row is None or not (turns.at_least_one or _is_as_long(first, axis, turns, source)):
        return None  # nothing is no rows that a stack takes
    return _Piece(write, ", ".join(parts), axis, "" if _has_its_shape(write, source) else row)


def _is_counted_around(name: cst.Name, loop: cst.For, source: Source) -> bool:
    """Whether a loop around this one counts by that name."""
    around = (above for above in source.ancestors(loop) if isinstance(above, cst.For))
    return any(reads(above.target, name.value) for above in around)


def _is_behind_an_ellipsis(place: int, write: Write) -> bool:
    return any(isinstance(part, cst.Ellipsis) for part in write.index[:place])


def _begun(write: Write, source: Source) -> Write | None:
    """A write to what the array is made as; None where that is not seen."""
    begun = begun_with(write, source)
    return begun if is_fresh(root(begun), source) else None


def row_of(array: cst.BaseExpression, axis: int, axes: int | None, source: Source) -> str | None:
    """The shape of what one turn writes."""
    shape = f"{source.code(array)}.shape"
    if axis == -1 or (axes is not None and axis == axes - 1):
        return f"{shape}[:-1]"
    if axis == 0:
        return f"{shape}[1:]"
    if axis > 0 and axes is not None:
        return f"{shape}[:{axis}] + {shape}[{axis + 1}:]"
    return None


def _has_its_shape(write: Write, source: Source) -> bool:
    """Whether elementwise work on what stood at the place makes the value: it has the shape of that."""
    if write.value is None:
        return False
    if isinstance(write.value, cst.Subscript):
        return any(_is_its_place(read, write, source) for read in names_read(write.value.value))
    return any(
        isinstance(part, cst.BaseExpression) and _has_its_shape(write_of(write, part), source)
        for part in operands(write.value, source) or ()
    )


def write_of(write: Write, value: cst.BaseExpression) -> Write:
    """The same write of another value."""
    return Write(write.call, write.array, write.index, write.method, value)


def _one_value(found: Piecewise, loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...] | None:
    """One value at all places, where the body of the loop is the write; None of other loops."""
    write = found.writes[0]
    if len(found.writes) > 1 or write.value is None or len(loop.body.body) > 1 or _has_a_comment(loop, source):
        return None
    if not is_the_same_each_turn(write.value, loop) or write.method not in ("set", "add", "min", "max"):
        return None
    if not (_is_number(write.value, source) or all(not is_whole(part) for part in write.index)):
        return None
    if _is_read_behind(loop, source) or any(
        isinstance(node, cst.Call) for part in write.index for node in inside(part)
    ):
        return None
    turns = turns_of(loop, source)
    if turns is None or turns.step != "1" or not isinstance(loop.target, cst.Name):
        return None
    parts = []
    for part in write.index:
        said = source.code(part) if is_the_same_each_turn(part, loop) else _looked_up(part, turns, jnp, loop, source)
        is_said = is_whole(part) or not is_the_same_each_turn(part, loop)
        if said is None or not (is_said or (isinstance(part, cst.BaseExpression) and is_one_for_sure(part, source))):
            return None
        parts.append(said)
    array = source.code(write.array)
    return (
        source.replace(loop, f"{array} = {array}.at[{', '.join(parts)}].{write.method}({source.code(write.value)})"),
    )


def _is_number(value: cst.BaseExpression, source: Source) -> bool:
    brackets = (cst.List, cst.Tuple, cst.SimpleString, cst.Ellipsis)
    return is_a_number(value, source) or (
        is_literal(value) and not any(isinstance(node, brackets) for node in inside(value))
    )


def _looked_up(part: Part, turns: Turns, jnp: str, loop: cst.For, source: Source) -> str | None:
    """The places of all turns: of what is counted itself, or of one column of a table, `red[:n, 0]` of `red[i, 0]`."""
    match part:
        case cst.Subscript(value=cst.Name() | cst.Attribute() as table, slice=[_, _, *_] as slices):
            parts = [s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in slices]
            counted = [isinstance(one, cst.Name) and one.value == turns.counter for one in parts]
            is_number = all(own or constant(one) is not None for own, one in zip(counted, parts, strict=True))
            if counted.count(True) != 1 or not is_number or not is_the_same_each_turn(table, loop):
                return None
            begin = "" if turns.begin == "0" else turns.begin
            said = [
                f"{begin}:{turns.end}" if own else source.code(one) for own, one in zip(counted, parts, strict=True)
            ]
            return f"{source.code(table)}[{', '.join(said)}]"
    if isinstance(part, cst.BaseExpression) and is_one_each(part, turns.counter, source):
        return place_of_all(part, turns, jnp, is_only=False, source=source)
    return None


def _has_a_comment(loop: cst.For, source: Source) -> bool:
    """Whether a comment stands in a loop: one before it stays."""
    return any(source.has_comment(part) for part in (loop.target, loop.iter, loop.body))


def _is_read_behind(loop: cst.For, source: Source) -> bool:
    """Whether something outside reads what the loop counts."""
    for name in names_read(loop.target):
        for read in source.reads(name):
            if loop not in source.ancestors(read) and not _is_counted_anew(read, source):
                return True
    return False


def _is_counted_anew(read: cst.Name, source: Source) -> bool:
    """Whether another loop counts by that name around the read."""
    return any(
        isinstance(above, cst.For) and above.body is below and reads(above.target, read.value)
        for below, above in source.outward(read)
    )


def _in_one_expression(piece: _Piece, loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...] | None:
    """The write of a list that is made where it is written, in place of a loop that does nothing else."""
    value = piece.write.value
    if value is None or len(loop.body.body) > 1 or _has_a_comment(loop, source) or _is_read_behind(loop, source):
        return None
    if any(isinstance(node, cst.NamedExpr | cst.Lambda) for node in inside(value)):
        return None
    text = f"{_shaped(piece, jnp, source)} for {source.code(loop.target)} in {source.code(loop.iter)}"
    if len(text) > _LONG or "\n" in text:
        return None
    return (source.replace(loop, _written(piece, f"[{text}]", jnp, source)),)


def _shaped(piece: _Piece, jnp: str, source: Source) -> str:
    value = source.code(piece.write.value) if piece.write.value is not None else ""
    return f"{jnp}.broadcast_to({value}, {piece.row})" if piece.row else value


def _written(piece: _Piece, values: str, jnp: str, source: Source) -> str:
    array = source.code(piece.write.array)
    axis = f", axis={piece.axis}" if piece.axis else ""
    stacked = f"{jnp}.array({values})" if piece.axis is None else f"{jnp}.stack({values}{axis})"
    return f"{array} = {array}.at[{piece.places}].{piece.write.method}({stacked})"


def _by_lists(pieces: Sequence[_Piece], loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...]:
    """A list before the loop, what each turn appends, and the write of it behind the loop."""
    where = source.location(loop)
    head = source.line(where.line)
    indent, end = head[: where.column - 1], end_of(head)
    names = [free_name(f"{dotted(piece.write.array)}_values", loop, source) for piece in pieces]
    if indent.strip() or not source.line(where.end_line).endswith("\n"):
        return ()
    said = {name.value for piece in pieces for part in piece.write.index for name in names_read(part)}
    if any(name.value in said for name in stored_by(loop)):
        said -= {name.value for name in names_read(loop.target)}
        if any(name.value in said for name in stored_by(loop)):
            return ()
    begin = where._replace(end_line=where.line, end_column=where.column)
    behind = where._replace(line=where.end_line + 1, column=1, end_line=where.end_line + 1, end_column=1)
    edits = [Edit(begin, "".join(f"{name} = []{end}{indent}" for name in names))]
    for name, piece in zip(names, pieces, strict=True):
        statement = source.parent(piece.write.call)
        assert statement is not None
        edits.append(source.replace(statement, f"{name}.append({_shaped(piece, jnp, source)})"))
    written = (_written(piece, str(name), jnp, source) for name, piece in zip(names, pieces, strict=True))
    return (*edits, Edit(behind, "".join(f"{indent}{line}{end}" for line in written)))


def stored_by(loop: cst.For) -> Iterator[cst.Name]:
    """The names that the statements of a loop give a value."""
    for node in inside(loop.body):
        match node:
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
                yield from (name for name in inside(target) if isinstance(name, cst.Name))
            case cst.For(target=target):
                yield from (name for name in inside(target) if isinstance(name, cst.Name))
