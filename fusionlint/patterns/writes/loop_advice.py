"""What to write instead of the writes of a Python loop, one piece of an array in each turn.

In: the writes of a loop of a Source. Out: one scatter or one stack, as long as no piece is of another shape, or where
the one before is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import libcst as cst

from fusionlint.patterns.code.at import (
    Part,
    Write,
    counted_axis,
    elements,
    inside,
    is_literal,
    is_static,
    is_whole,
    names_read,
    told_axes,
)
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.loop import Piecewise, counted_by
from fusionlint.patterns.writes.loop_pair import is_counted, pair
from fusionlint.patterns.writes.loop_slices import are_rectangles, is_the_same_each_turn, of_slices, over_one_block
from fusionlint.patterns.writes.loop_turns import counts_down, is_branched, is_cut_by_the_counter, needs_the_one_before
from fusionlint.patterns.writes.many import is_one_of_many
from fusionlint.patterns.writes.stands import Stands, stands
from fusionlint.patterns.writes.told import ARRAYS, Advice
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_SUMS = tuple(f"jax.numpy.{name}" for name in ("logical_or", "logical_and", "maximum", "minimum", "add"))
# A value longer than this says less than its outline.
_LONG = 30


def of_pieces(found: Piecewise, loop: cst.For, source: Source) -> Advice:
    """For the writes of a loop: one scatter or one stack, as long as no piece is of another shape, or where the one
    before is."""
    write, jnp = found.writes[0], source.jnp
    if any(is_one_of_many(part, loop) or _is_kept_under_a_key(part, loop) for part in write.index):
        joined = f"its places and values joined by {jnp}.concatenate: each may be of another length"
        return Advice(f"one `{found.arrays[0]}.at[...].{write.method}(...)`, {joined}", ARRAYS)
    return Advice(_at_once(found, write, loop, source), pair(found, loop, source))


def _is_kept_under_a_key(part: Part, loop: cst.For) -> bool:
    """Whether each turn finds its places in a record, `group["columns"]`: one or several."""
    match part:
        case cst.Subscript(
            value=cst.Name(name), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]
        ):
            return name in counted_by(loop)
    return False


def _at_once(found: Piecewise, write: Write, loop: cst.For, source: Source) -> str:
    array, jnp = found.arrays[0], source.jnp
    pieces = [write, *(w for w in found.writes if dotted(root(w)) == array and w is not write)]
    if not are_rectangles(pieces, source) and (_is_ragged(write, loop) or _is_a_part_of_a_row(write, loop, source)):
        return f"a list of the pieces, each brought to one shape by {jnp}.pad, and one {jnp}.concatenate or stack of it"
    is_one_value = write.value is not None and _is_one_value(write.value, loop, source)
    over = None if is_one_value or _is_left_out(write, loop, source) else over_one_block(write, pieces, loop, source)
    if over is not None:
        return f"a list of the values, and one `{array}.at[{over}].{write.method}(...)` of one {jnp}.stack of them"
    if (joined := of_slices(write, pieces, array, loop, source)) is not None:
        return joined
    if write.method == "set" and _adds_up(write, loop, source):
        return (
            f"what each {found.counter} adds, all at once (jax.vmap), then one `{array}.at[indices].add(values)`, max "
            "or min: two may be at one place"
        )
    if _is_left_out(write, loop, source):
        listed = f"a list of the places that are written and one of their values{_joined(write, source)}"
        return f"{listed}, then one `{array}.at[indices].{write.method}(values)`"
    values = {source.code(w.value) for w in pieces if w.value is not None}
    if len(values) == 1 and is_one_value:
        one = f"one `{array}.at[indices].{write.method}({brief(values.pop(), _LONG)})`"
        return f"{one} of the places of all {found.counter}{_joined(write, source)}{_behind(write, source, jnp)}"
    written = f"one `{array}.at[indices].{write.method}(values)`"
    is_all = is_counted(write, loop)
    if needs_the_one_before(write, found, loop, source):
        if write.method != "set" or not is_all:
            return f"a list of the values, then {written} of one {jnp}.stack of them"
        turned = " of it turned round" if counts_down(loop, source) else ""
        or_scan = "" if is_cut_by_the_counter(loop) else "; or jax.lax.scan, which hands them out"
        return f"a list of the values, and one {jnp}.stack{turned}{_stacked(write)}{or_scan}"
    parts = [part for piece in pieces for part in piece.index]
    if unseen := [part for part in parts if not _is_one_place_each(part, source)]:
        first = f"the values of all {found.counter} first (jax.vmap, or a list)"
        names = (part for part in unseen if isinstance(part, cst.Name) and source.value(part) is None)
        slices = f"; of slices one {jnp}.concatenate" if any(True for _ in names) else ""
        return f"{first}, then {written}, both stacked, or joined where they are arrays{slices}"
    if is_cut_by_the_counter(loop) or is_branched(write, loop, source):
        listed = f"a list of the values, and one {jnp}.stack"
        is_whole_of_it = write.method == "set" and is_all
        return f"{listed}{_stacked(write)}" if is_whole_of_it else f"{listed} of it, then {written}"
    at_once = f"the values of all {found.counter} at once (jax.vmap), then {written}"
    if write.method != "set" and not is_all:  # two turns may have one place
        return at_once
    return f"{at_once}; or a list of them and one {jnp}.stack{_stacked(write)}"


def _joined(write: Write, source: Source) -> str:
    is_seen = all(_is_one_place_each(part, source) for part in write.index)
    return "" if is_seen else ", joined where they are arrays"


def _is_one_place_each(part: Part, source: Source) -> bool:
    """Whether each turn is seen to take one place on this axis, or all of it."""
    return stands(part, source) in (Stands.WHOLE, Stands.NUMBER) or (isinstance(part, cst.Slice) and is_static(part))


def _is_left_out(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether some turns write nothing: the write is under an `if`, or behind one that goes on to the next turn."""
    around = list(source.ancestors(write.call))
    if any(isinstance(above, cst.If) for above in around[: around.index(loop)]):
        return True
    before = takewhile(lambda node: node is not write.call, inside(loop.body))
    return any(isinstance(node, cst.Continue) and source.loop(node) is loop for node in before)


def _is_one_value(value: cst.BaseExpression, loop: cst.For, source: Source) -> bool:
    """Whether all turns write one value: made of nothing that the loop writes, by nothing but jax, and no field of an
    object that is called in the loop, `problem.value` behind `problem.solve()`."""
    if not is_the_same_each_turn(value, loop):
        return False
    if any(not (source.qualified_name(call.func) or "").startswith("jax.") for call in calls(value)):
        return False
    asked = {dotted(call.func).partition(".")[0] for call in calls(loop.body) if isinstance(call.func, cst.Attribute)}
    fields = (dotted(node) for node in inside(value, cst.Attribute))
    return not any(field.partition(".")[0] in asked for field in fields)


def _behind(write: Write, source: Source, jnp: str) -> str:
    """What an array that each turn writes needs, if other axes come before the one of the places."""
    first = next((i for i, part in enumerate(write.index) if not is_whole(part)), 0)
    if first == 0 or is_literal(write.value) or (write.value is not None and kind(write.value, source) == "scalar"):
        return ""
    return f"; an array with {jnp}.expand_dims for them"


def _stacked(write: Write) -> str:
    """Along which axis the pieces of a loop lie, `[..., i]`, where it is not the first."""
    places = told_axes(write.index)
    if len(places) != 1 or places == [0]:
        return ""
    return f" along axis {counted_axis(places[0], write.index)}"


def _is_a_part_of_a_row(write: Write, loop: cst.For, source: Source) -> bool:
    """`[i, slice(0, x.shape[0])]`: a row for each, as much of it as there is."""
    counted = counted_by(loop)
    rows = [part for part in write.index if isinstance(part, cst.Name) and part.value in counted]
    others = [part for part in write.index if part not in rows]
    return bool(rows) and any(_asks_for_shape(part, counted) or _is_cut_by_name(part, loop, source) for part in others)


def _is_cut_by_name(part: Part, loop: cst.For, source: Source) -> bool:
    """Whether each turn is handed a slice of its own: `cut = slice_of(offset)`."""
    is_named = not isinstance(part, cst.Slice) and stands(part, source) is Stands.SLICE
    return is_named and not is_the_same_each_turn(part, loop)


def works_on_what_is_there(found: Piecewise, source: Source) -> bool:
    """Whether a function of somebody makes the new value of what stands at the place, `buckets.at[i].set(add(old, p))`:
    where two meet, the second needs the first, and no `.add` says it."""
    for write in found.writes:
        value = source.value(write.value) if isinstance(write.value, cst.Name) else write.value
        if not isinstance(value, cst.Call) or ":" not in (source.qualified_name(value.func) or ""):
            return False
        if not any(_reads(part, write, source) for arg in value.args for part in _meant(arg.value, source)):
            return False
    return True


def _meant(node: cst.BaseExpression, source: Source) -> Iterator[cst.CSTNode]:
    yield from inside(node)
    if isinstance(node, cst.Name) and (value := source.value(node)) is not None:
        yield from inside(value)


def _reads(part: cst.CSTNode, write: Write, source: Source) -> bool:
    """`array[i]`, at a place that is itself found in an array."""
    if not isinstance(part, cst.Subscript) or source.code(part.value) != dotted(root(write)):
        return False
    places = [source.code(one) for one in write.index]
    is_found = any(isinstance(node, cst.Subscript) for one in write.index for node in inside(one))
    return is_found and [source.code(one) for one in elements(part.slice)] == places


def _is_ragged(write: Write, loop: cst.For) -> bool:
    """Whether the place is made, in statements of the loop, of the shape of what it goes over: pieces of one shape need
    not be asked for it."""
    counted = counted_by(loop)
    places = {name.value for part in write.index for name in names_read(part)}
    made = [node for node in inside(loop.body) if isinstance(node, cst.Assign | cst.AugAssign)]
    return any(_asks_for_shape(node.value, counted) for node in made if places & _written_by(node))


def _written_by(node: cst.Assign | cst.AugAssign) -> set[str]:
    targets = [node.target] if isinstance(node, cst.AugAssign) else [target.target for target in node.targets]
    return {target.value for target in targets if isinstance(target, cst.Name)}


def _asks_for_shape(value: cst.CSTNode, of: set[str]) -> bool:
    for node in inside(value):
        match node:
            case cst.Attribute(value=cst.Name(name), attr=cst.Name("shape")) if name in of:
                return True
    return False


def _adds_up(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether the next turn may find the same place, and something is added there to what it finds."""
    array = root(write)
    if not isinstance(array, cst.Name) or not _is_a_sum(write, source) or _has_its_own(write, loop, source):
        return False
    places = [source.code(part) for part in write.index]
    for use in source.uses(array):
        match source.parent(use.node):
            case cst.Subscript(value=value, slice=slices) as read if value is use.node and loop in source.ancestors(
                read
            ):
                if [source.code(part) for part in elements(slices)] == places:
                    return True
    return False


def _is_a_sum(write: Write, source: Source) -> bool:
    """`mask | hit`, `jnp.maximum(before, now)`, `old + new`: what comes to the same in any order."""
    meant = source.meant(write.value) if write.value is not None else None
    match meant:
        case cst.BinaryOperation(operator=cst.Add() | cst.BitOr() | cst.BitAnd()):
            return True
    return source.calls(meant, *_SUMS)


def _has_its_own(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether what the loop counts, or a multiple of it, is a place: of no two turns the same. What is looked up may
    be."""
    match loop.target:
        case cst.Tuple(elements=[cst.Element(value=cst.Name(counter)), *_]) if source.calls(loop.iter, "enumerate"):
            pass
        case cst.Name(counter):
            pass
        case _:
            return False
    return any(isinstance(part, cst.BaseExpression) and _grows_with(counter, part, source) for part in write.index)


def _grows_with(counter: str, place: cst.BaseExpression, source: Source) -> bool:
    """`i`, `2 * i + 1`, and a name for it."""
    meant = source.meant(place)
    match meant:
        case cst.Name(name):
            return name == counter
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply(), right=right):
            return any(_grows_with(counter, side, source) for side in (left, right))
    return False
