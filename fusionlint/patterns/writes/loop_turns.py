"""How one turn of a Python loop comes by what it writes: of what the turn before left, in an order, by a number that
Python asks for.

In: the writes of a loop of a Source. Out: what keeps the turns from being worked out at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import (
    RANGES,
    TO_ARRAY,
    Part,
    Write,
    constant,
    inside,
    is_literal,
    is_static,
    names_read,
)
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.loops.carry import Carry, calls, read
from fusionlint.patterns.loops.carry import Write as Assigned
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.loop import Piecewise, counted_by
from fusionlint.patterns.writes.places import is_fresh_before
from fusionlint.source.tree import Source

_KEYS = regex(r"(^|[._])(rngs?|keys?)\d*$")


def needs_the_one_before(write: Write, found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether what is written is made of what an earlier turn left, `state = step(state)`: no vmap makes it. A key that
    each turn splits could be split before, and of the array a turn reads no more than the piece that it writes."""
    if write.value is None:
        return False
    carry, around = Carry(loop), {write.value, *source.ancestors(write.value)}
    before = list(takewhile(lambda made: made.value not in around, carry.writes))
    left = _left_by_the_last(write.value, before, source)
    known = {name for made in carry.writes if _is_counted_on(made, source) for name in made.names}
    changed = {name for made in carry.writes for name in made.names}.difference(carry.targets, found.arrays, known)
    return any(name in changed and not _KEYS.search(name) for name in left)


def _is_counted_on(made: Assigned, source: Source) -> bool:
    """`count += 1`, which Python knows of all turns at once."""
    return isinstance(source.parent(made.value), cst.AugAssign) and is_literal(made.value)


def _left_by_the_last(value: cst.BaseExpression, before: Sequence[Assigned], source: Source) -> set[str]:
    """The names that a value is made of, through the assignments before it, as they were when the turn began."""
    begun: dict[str, set[str]] = {}
    for made in before:
        names = {each for name in read(made.value) for each in begun.get(name, {name})}
        is_added = isinstance(source.parent(made.value), cst.AugAssign)
        for name in made.names:
            # What only one branch writes another one may, too.
            kept = begun.get(name, {name} if is_added else set())
            begun[name] = names | (kept if is_added or not made.always else set())
    return {each for name in read(value) for each in begun.get(name, {name})}


def counts_down(loop: cst.For, source: Source) -> bool:
    """`reversed(range(n))`, and `range(n - 1, -1, -1)`."""
    match loop.iter:
        case cst.Call(args=[_, _, cst.Arg(value=step)]) if source.calls(loop.iter, "range"):
            return (constant(step) or 1) < 0
    return source.calls(loop.iter, "reversed")


def is_cut_by_the_counter(loop: cst.For) -> bool:
    """Whether a turn works on a part as long as its number says, `work[j:, j]`, or cut where it says, `x[p0:p1]` of
    `p0, p1 = places[j]`: no scan does, and no vmap."""
    carry = Carry(loop)
    return any(carry.varies(node) for node in inside(loop.body, cst.Slice))


def is_branched(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether a function of this file is asked for the value by what the loop counts, and Python asks that first,
    `if m < 0`: of the turns of a vmap it knows no number."""
    counted = counted_by(loop)
    for call in calls(write.value) if write.value is not None else ():
        given = [arg.value.value if isinstance(arg.value, cst.Name) else "" for arg in call.args if not arg.keyword]
        place = source.project.find(source.qualified_name(call.func) or "") if counted & {*given} else None
        function = source.definition(place.scope) if place is not None and place.path == source.path else None
        if isinstance(function, cst.FunctionDef):
            pairs = zip(function.params.params, given, strict=False)
            asked = {parameter.name.value for parameter, name in pairs if name in counted}
            tests = (node.test for node in inside(function.body) if isinstance(node, cst.If | cst.IfExp | cst.While))
            if any(name.value in asked for test in tests for name in names_read(test)):
                return True
    return False


def is_in_order(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether each turn works out by jax where it sets what it has, `row = jnp.where(inside, row, H)` of one kind of
    things after the other: where two meet the later turn wins, and no one scatter says so. What the loop counts by is a
    place that no two turns share."""
    counted = counted_by(loop)
    return all(
        write.method == "set"
        and not any(isinstance(part, cst.Name) and part.value in counted for part in write.index)
        and not is_literal(write.value)
        and any(_is_worked_out(part, loop, source) for part in write.index)
        for write in found.writes
    )


def _is_worked_out(part: Part, loop: cst.For, source: Source) -> bool:
    made = source.value(part) if isinstance(part, cst.Name) else None
    if not isinstance(made, cst.Call) or loop not in source.ancestors(made):
        return False
    name = source.qualified_name(made.func) or ""
    return name.startswith("jax.numpy.") and not source.calls(made, *RANGES, *TO_ARRAY)


def is_counted_out(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether a number that is written out goes to places that Python counts, in an array that is new: XLA folds it."""
    if not is_literal(write.value) or not is_fresh_before(write, loop, source):
        return False
    loops = [loop, *source.ancestors(loop, cst.For)]
    counted = {name for each in loops if not goes_over_an_array(each, source) for name in counted_by(each)}
    return all(_is_counted(part, counted) for part in write.index)


def _is_counted(part: Part, counted: set[str]) -> bool:
    """`0`, `i`, `i + 1`."""
    match part:
        case cst.Name(value=name):
            return name in counted
        case cst.BinaryOperation(left=left, right=right):
            return _is_counted(left, counted) and _is_counted(right, counted)
    return is_static(part)


def goes_over_an_array(loop: cst.For, source: Source) -> bool:
    """Whether the loop is seen to go over an array: what it counts by is then no number of Python's."""
    given = [arg.value for arg in loop.iter.args] if isinstance(loop.iter, cst.Call) else [loop.iter]
    return any(kind(one, source) == "array" for one in given)


def has_two_turns(loop: cst.For, source: Source) -> bool:
    """Whether a loop in no other goes over a list of two at most, whichever an `if` has chosen: `[0, n]`, or `[0]`."""
    if source.in_loop(loop):
        return False
    listed = loop.iter
    if not isinstance(listed, cst.Name):
        return _are_two(listed)
    if any(isinstance(source.parent(use.node), cst.Attribute | cst.AugAssign) for use in source.uses(listed)):
        return False  # listed.append(...)
    written = [assigned(use.node, source) for use in source.writes(listed)]
    return bool(written) and all(each is not None and _are_two(each) for each in written)


def _are_two(listed: cst.BaseExpression) -> bool:
    match listed:
        case cst.List(elements=[_] | [_, _] as several) | cst.Tuple(elements=[_] | [_, _] as several):
            return not any(isinstance(each, cst.StarredElement) for each in several)
        case cst.IfExp(body=one, orelse=other):
            return _are_two(one) and _are_two(other)
    return False
