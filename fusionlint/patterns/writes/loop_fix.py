"""The edits for the writes of a Python loop: a list of the values, and one write of them all behind the loop, or one
write of one value at all places.

In: the writes of a loop of a Source. Out: edits, none where the code does not show that no two turns write one place,
that each turn writes, and what the values are shaped like.
"""

from __future__ import annotations

from textwrap import dedent

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import (
    Part,
    Write,
    constant,
    elements,
    inside,
    is_about,
    is_fresh,
    is_whole,
)
from fusionlint.patterns.code.layout import end_of
from fusionlint.patterns.loops.one_each import Turn, is_one_each_turn
from fusionlint.patterns.loops.whole_turns import does_all_of_its_body, has_a_comment, is_read_behind
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_one_number
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.loop import Piecewise
from fusionlint.patterns.writes.loop_list import as_a_list
from fusionlint.patterns.writes.loop_slices import is_the_same_each_turn
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.patterns.writes.turns import Turns, is_one_each, place_of_all, turns_of
from fusionlint.source.tree import Source

# Longer lines are written with a name for what is counted.
_WIDE = 100


def of_loop(found: Piecewise, loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """What a fix writes in place of the writes of a loop."""
    jnp = source.alias_at(loop, "jax.numpy")
    if jnp is None or not _is_plain(found, loop, source):
        return ()
    turns = turns_of(loop, source)
    if turns is None:
        return ()
    if (one := _one_value(found, turns, loop, jnp, source)) is not None:
        return one
    if (once := _counted_at_once(found, turns, loop, jnp, source)) is not None:
        return once
    return as_a_list(found.writes, turns, loop, jnp, source)


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
    if not does_all_of_its_body(loop, source):
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
            return [*map(source.code, elements(slices))] == [*map(source.code, write.index)]
    return False


def _one_value(found: Piecewise, turns: Turns, loop: cst.For, jnp: str, source: Source) -> tuple[Edit, ...] | None:
    """One value at all places, where the body of the loop is the write; None of other loops, and where the places are
    too much to be said in it."""
    write = found.writes[0]
    if len(found.writes) > 1 or write.value is None or len(loop.body.body) > 1 or has_a_comment(loop, source):
        return None
    if not is_the_same_each_turn(write.value, loop) or write.method not in ("set", "add", "min", "max"):
        return None
    if not (is_one_number(write.value, source) or all(not is_whole(part) for part in write.index)):
        return None
    if is_read_behind(loop, source) or any(isinstance(node, cst.Call) for part in write.index for node in inside(part)):
        return None
    if turns.step != "1" or not isinstance(loop.target, cst.Name):
        return None
    parts = []
    for part in write.index:
        said = source.code(part) if is_the_same_each_turn(part, loop) else _looked_up(part, turns, jnp, loop, source)
        is_said = is_whole(part) or not is_the_same_each_turn(part, loop)
        if said is None or not (is_said or (isinstance(part, cst.BaseExpression) and is_one_for_sure(part, source))):
            return None
        parts.append(said)
    array = source.code(write.array)
    text = f"{array} = {array}.at[{', '.join(parts)}].{write.method}({source.code(write.value)})"
    is_clear = text.count(f"{jnp}.arange(") < 2 and source.location(loop).column + len(text) <= _WIDE
    return (source.replace(loop, text),) if is_clear else None


def _counted_at_once(
    found: Piecewise, turns: Turns, loop: cst.For, jnp: str, source: Source
) -> tuple[Edit, ...] | None:
    """The statements of the body with an array for what counts the turns, where each of them writes one number a turn,
    or one for all turns, and they are all there is; None of other loops."""
    body, counter = loop.body.body, loop.target
    if len(body) != len(found.writes) or has_a_comment(loop, source) or is_read_behind(loop, source):
        return None
    if not isinstance(counter, cst.Name) or not all(_is_for_all(write, turns, loop, source) for write in found.writes):
        return None
    indent = source.line(source.location(body[0]).line)[: source.location(body[0]).column - 1]
    head = source.line(source.location(loop).line)
    around = head[: source.location(loop).column - 1]
    if indent.strip() or around.strip():
        return None
    text = dedent("".join(f"{indent}{source.code(line).rstrip()}\n" for line in body))
    lines = [f"{counter.value} = {jnp}.arange({turns.numbers})", *text.splitlines()]
    return (source.replace(loop, f"{end_of(head)}{around}".join(lines)),)


def _is_for_all(write: Write, turns: Turns, loop: cst.For, source: Source) -> bool:
    """Whether a write says the same of an array of all turns: each takes places of its own, one on each axis, and the
    value is one number for each, or for all."""
    value, turn = write.value, _turn(turns, loop, source)
    if value is None or write.method not in ("set", "add", "min", "max"):
        return False
    own = [part for part in write.index if not is_the_same_each_turn(part, loop)]
    same = [part for part in write.index if part not in own]
    if not all(is_whole(p) or (isinstance(p, cst.BaseExpression) and is_one_for_sure(p, source)) for p in same):
        return False
    if not own or not all(isinstance(p, cst.BaseExpression) and is_one_each_turn(p, turn, source) for p in own):
        return False
    if is_the_same_each_turn(value, loop) and (is_one_number(value, source) or not any(map(is_whole, same))):
        return True
    is_apart = any(isinstance(p, cst.BaseExpression) and is_one_each(p, turns.counter, source) for p in own)
    if (write.method == "set" and not is_apart) or not is_one_each_turn(value, turn, source):
        return False
    begun = begun_with(write, source)
    is_an_element = is_fresh(root(begun), source) and axes_of(begun, source) == len(write.index)
    return is_an_element and not any(map(is_whole, write.index))


def _turn(turns: Turns, loop: cst.For, source: Source) -> Turn:
    return Turn(
        turns.counter,
        lambda part: is_the_same_each_turn(part, loop),
        lambda part: is_one_for_sure(part, source) or is_one_number(part, source),
        lambda table, places: _is_an_array(table, places, source),
    )


def _is_an_array(table: cst.BaseExpression, places: int, source: Source) -> bool:
    """Whether an array of jax takes the place of the name: no list takes two places, and what numpy makes is mostly a
    constant of the file."""
    if not isinstance(table, cst.Name | cst.Attribute):
        return False
    seen = kind(table, source)
    is_local = isinstance(table, cst.Attribute) or source.facts.bound("", table.value) is None
    return seen == "array" or (seen is None and places > 1 and is_local)


def _looked_up(part: Part, turns: Turns, jnp: str, loop: cst.For, source: Source) -> str | None:
    """The places of all turns: of what is counted itself, or of one column of a table, `red[:n, 0]` of `red[i, 0]`."""
    match part:
        case cst.Subscript(value=cst.Name() | cst.Attribute() as table, slice=[_, _, *_] as slices):
            parts = elements(slices)
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
