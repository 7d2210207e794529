"""The edits for a Python loop that makes each row of an array of the row before: a list that begins with the first, and
one write of its stack behind the loop.

In: the write of a loop of a Source, as `loop.recurrent` finds it. Out: edits, none where a turn may leave the body, or
reads the row before after it has written its own.
"""

from __future__ import annotations

import re

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import Write, constant, elements, is_about, is_fresh, is_whole, names_read
from fusionlint.patterns.code.before import free_name
from fusionlint.patterns.code.layout import end_of
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.loop import Piecewise
from fusionlint.patterns.writes.loop_fix import is_once_a_turn, row_of, stored_by
from fusionlint.patterns.writes.made import begun_with
from fusionlint.source.tree import Source


def of_recurrence(found: Piecewise, loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """What a fix writes in place of the writes and reads of the loop."""
    jnp, write = source.alias_at(loop, "jax.numpy"), found.writes[0]
    if jnp is None or len(found.writes) > 1 or not is_once_a_turn(write, loop, source):
        return ()
    places = [number for number, part in enumerate(write.index) if not is_whole(part)]
    if len(places) != 1 or any(isinstance(part, cst.Ellipsis) for part in write.index):
        return ()
    axis, bounds = places[0], _bounds(loop, source)
    place = write.index[axis]
    begun = begun_with(write, source)
    axes = axes_of(begun, source) if is_fresh(root(begun), source) else None
    row = row_of(write.array, axis, axes, source)
    if bounds is None or row is None or not (isinstance(place, cst.Name) and place.value == found.counter):
        return ()
    reads = _of_the_row_before(write, loop, source)
    name = free_name(f"{source.code(write.array)}_values", loop, source)
    if reads is None or write.value is None:
        return ()
    return _edits(write, reads, bounds, (name, row, axis, jnp), loop, source)


def _bounds(loop: cst.For, source: Source) -> tuple[str, str, str, str] | None:
    """The place of the row that the loop begins with, where all rows begin and end, and how the list is turned."""
    match loop.iter:
        case cst.Call(args=[cst.Arg(value=begin), cst.Arg(value=end)]) if source.calls(loop.iter, "range"):
            first = _more(begin, -1, source)
            return (first, first, source.code(end), "") if not first.startswith("-") else None
        case cst.Call(args=[cst.Arg(value=begin), cst.Arg(value=end), cst.Arg(value=step)]) if (
            source.calls(loop.iter, "range") and constant(step) == -1
        ):
            low = _more(end, 1, source)
            return (_more(begin, 1, source), low, _more(begin, 2, source), "[::-1]") if low[:1] != "-" else None
    return None


def _more(bound: cst.BaseExpression, by: int, source: Source) -> str:
    number = constant(bound)
    if number is not None:
        return str(number + by)
    return f"{source.code(bound)} {'+' if by > 0 else '-'} {abs(by)}"


def _of_the_row_before(write: Write, loop: cst.For, source: Source) -> list[cst.Subscript] | None:
    """Where the loop reads the row before, all of them before it writes; None where it reads anything else that is
    written, or where a row is not all that is read."""
    target = source.assigned_name(write.call)
    if target is None:
        return None
    found: list[cst.Subscript] = []
    for use in source.uses(target):
        if loop not in source.ancestors(use.node) or use.node in (target, write.array) or is_about(use.node, source):
            continue
        above = source.parent(use.node)
        if use.is_write or not isinstance(above, cst.Subscript) or use.order > source.order(target):
            return None
        parts = elements(above.slice)
        if len(parts) != len(write.index) or source.function(above) is not source.function(loop):
            return None
        if [source.code(part) for part in parts] == [source.code(part) for part in write.index]:
            continue  # its own, as it stood before the loop
        found.append(above)
    return found


def _edits(
    write: Write,
    reads: list[cst.Subscript],
    bounds: tuple[str, str, str, str],
    said: tuple[str, str, int, str],
    loop: cst.For,
    source: Source,
) -> tuple[Edit, ...]:
    name, row, axis, jnp = said
    first, low, high, turned = bounds
    where, array = source.location(loop), source.code(write.array)
    head = source.line(where.line)
    indent, end = head[: where.column - 1], end_of(head)
    statement, value = source.parent(write.call), write.value
    written = {each.value for each in stored_by(loop)} | {each.value for each in names_read(loop.target)}
    used = {each.value for each in names_read(loop.iter)}
    if indent.strip() or statement is None or value is None or not source.line(where.end_line).endswith("\n"):
        return ()
    if written & used:
        return ()
    before = [source.code(part) for part in write.index]
    at_first = ", ".join(first if number == axis else part for number, part in enumerate(before))
    at_all = ", ".join(f"{low}:{high}" if number == axis else part for number, part in enumerate(before))
    text = source.code(value)
    for read in reads:
        text = re.sub(rf"(?<![\w.]){re.escape(source.code(read))}", f"{name}[-1]", text)
    appended = f"{name}.append({jnp}.broadcast_to({text}, {row}).astype({array}.dtype))"
    outside = [read for read in reads if write.call not in source.ancestors(read)]
    along = f", axis={axis}" if axis else ""
    begin = where._replace(end_line=where.line, end_column=where.column)
    behind = where._replace(line=where.end_line + 1, column=1, end_line=where.end_line + 1, end_column=1)
    return (
        Edit(begin, f"{name} = [{array}[{at_first}]]{end}{indent}"),
        *(source.replace(read, f"{name}[-1]") for read in outside),
        source.replace(statement, appended),
        Edit(behind, f"{indent}{array} = {array}.at[{at_all}].set({jnp}.stack({name}{turned}{along})){end}"),
    )
