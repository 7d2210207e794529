"""A Python loop that makes each row of an array of the row before: `x = x.at[i].set(f(x[i - 1]))`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import WRITES, Write, constant, elements, is_about, is_fresh, names_read, told_axes
from fusionlint.patterns.code.before import free_name, lines_beside
from fusionlint.patterns.code.calls import as_argument
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.layout import Called, Part, in_place_of, named_as
from fusionlint.patterns.loops.whole_turns import stored_by
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_traces import is_for_traces
from fusionlint.patterns.writes.beside import is_of_numpy, is_taken_to_the_host
from fusionlint.patterns.writes.chain import is_only_written, root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.loop import Piecewise, recurrent
from fusionlint.patterns.writes.loop_fix import is_once_a_turn
from fusionlint.patterns.writes.loop_list import row_of
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.turns import plus
from fusionlint.patterns.writes.whole import is_a_row, is_of_dtype, made_as
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_FLOATS = regex(r"(^|\.)float\d*$")


@rule.source("For", calls=WRITES, in_loop=True)
def rows_of_rows(node: cst.For, source: Source) -> Iterator[Finding]:
    """All that a turn reads of the array is the row beside the one that it writes."""
    found = recurrent(node, source) if is_for_traces(node, source) else None
    if found is None or is_concrete(node, source):
        return
    arrays = [root(write) for write in found.writes]
    if any(is_only_written(array, source) or is_of_numpy(array, source) for array in arrays):
        return
    if any(write.method != "set" or is_taken_to_the_host(write.call, source) for write in found.writes):
        return
    array, jnp = found.arrays[0], source.jnp
    more = f" and {len(found.arrays) - 1} more are" if len(found.arrays) > 1 else " is"
    yield source.finding(
        found.writes[0].call,
        f"`{array}`{more} written row by row, each made of the row before, which is read back out of the array",
        write=f"a name for the last row, a list that begins with the first, and one {jnp}.stack of it after the loop",
        edits=_of_recurrence(found, node, source),
    )


def _of_recurrence(found: Piecewise, loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """What a fix writes in place of the writes and reads of the loop."""
    jnp, write = source.alias_at(loop, "jax.numpy"), found.writes[0]
    if jnp is None or len(found.writes) > 1 or not is_once_a_turn(write, loop, source):
        return ()
    places = told_axes(write.index)
    if len(places) != 1 or any(isinstance(part, cst.Ellipsis) for part in write.index):
        return ()
    axis, bounds = places[0], _bounds(loop, source)
    place = write.index[axis]
    row = _row(write, axis, source)
    if bounds is None or row is None or not (isinstance(place, cst.Name) and place.value == found.counter):
        return ()
    reads = _of_the_row_before(write, loop, source)
    name = free_name(f"{source.code(write.array)}_values", loop, source)
    if reads is None or write.value is None:
        return ()
    return _edits(write, reads, bounds, (name, row, axis, jnp), loop, source)


def _row(write: Write, axis: int, source: Source) -> str | None:
    """The shape of a row, `()` of a number."""
    begun = begun_with(write, source)
    made = made_as(root(begun), source)
    if made is not None and made.is_vector:
        return "()"
    axes = axes_of(begun, source) if is_fresh(root(begun), source) else None
    return row_of(write.array, axis, axes, source)


def _bounds(loop: cst.For, source: Source) -> tuple[str, str, str, str] | None:
    """The place of the row that the loop begins with, where all rows begin and end, and how the list is turned."""
    if not source.calls(loop.iter, "range"):
        return None
    given = [source.code(arg.value) for arg in loop.iter.args]
    if any("\n" in code for code in given):
        return None
    match loop.iter.args:
        case [_, _]:
            first = plus(given[0], -1)
            return (first, first, given[1], "") if not first.startswith("-") else None
        case [_, _, cst.Arg(value=step)] if constant(step) == -1:
            low = plus(given[1], 1)
            return (plus(given[0], 1), low, plus(given[0], 2), "[::-1]") if low[:1] != "-" else None
    return None


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
    statement, array = source.parent(write.call), source.code(write.array)
    written = stored_by(loop) | {each.value for each in names_read(loop.target)}
    if statement is None or write.value is None or written & {each.value for each in names_read(loop.iter)}:
        return ()
    before = [source.code(part) for part in write.index]
    at_first = ", ".join(first if number == axis else part for number, part in enumerate(before))
    rows = f"{'' if low == '0' else low}:{high}"
    at_all = ", ".join(rows if number == axis else part for number, part in enumerate(before))
    stacked = Called(f"{jnp}.stack", [f"{name}{turned}", *([f"axis={axis}"] if axis else [])])
    joined = Called(f"{jnp}.array", [f"{name}{turned}"]) if row == "()" else stacked
    behind = named_as(array, Called(f"{array}.at[{at_all}].set", [joined]), loop, source)
    lines = lines_beside(loop, source, before=[f"{name} = [{array}[{at_first}]]"], behind=[behind])
    if lines is None:
        return ()
    outside = [read for read in reads if write.call not in source.ancestors(read)]
    return (
        *lines,
        *(source.replace(read, f"{name}[-1]") for read in outside),
        in_place_of(statement, Called(f"{name}.append", [_appended(write, reads, (name, row, jnp), source)]), source),
    )


def _appended(write: Write, reads: Sequence[cst.Subscript], said: tuple[str, str, str], source: Source) -> Part:
    """What a turn makes, of the shape and the dtype of a row where it may have another."""
    (name, row, jnp), value = said, write.value
    assert value is not None
    text = as_argument(value, source)
    for read in reads:
        text = re.sub(rf"(?<![\w.]){re.escape(source.code(read))}", f"{name}[-1]", text)
    made = made_as(root(begun_with(write, source)), source)
    is_of_floats = made is not None and _FLOATS.search(made.dtype) is not None
    is_kept = is_of_floats and (is_of_dtype(value, "float", source) or _is_worked_out_of(write, source))
    is_a_number_or_row = row == "()" or is_a_row(value, row, write, source)
    shaped = text if is_a_number_or_row else Called(f"{jnp}.broadcast_to", [text, row])
    if is_kept:
        return shaped
    if is_a_number_or_row:
        return Called(f"{jnp}.asarray", [shaped, f"{source.code(write.array)}.dtype"])
    return Called(f"{jnp}.broadcast_to", [text, row], behind=f".astype({source.code(write.array)}.dtype)")


def _is_worked_out_of(write: Write, source: Source) -> bool:
    """Whether arithmetic on what stands in the array makes the value: it is of the dtype of that, or of one that holds
    more."""
    if not isinstance(write.value, cst.BinaryOperation):
        return False
    parts, array = operands(write.value, source) or (), source.code(write.array)
    return any(isinstance(part, cst.Subscript) and source.code(part.value) == array for part in parts)
