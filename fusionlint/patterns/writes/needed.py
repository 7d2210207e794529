"""Values that need what an earlier write may have left: `x = x.at[faces].set(a); x = x.at[k].set(f(x[k]))`.

In: writes of a Source that follow one another. Out: whether a value reads a place that the array of places before it,
which only the run knows, may hold: computed first, the value would be another; whether it may, whatever it reads; and
whether it reads no more than its own place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import (
    Part,
    Write,
    at_write,
    elements,
    inside,
    is_literal,
    is_whole,
    names_in,
    told_axes,
)
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.many import is_many
from fusionlint.patterns.writes.seen import are_apart
from fusionlint.source.tree import Source

_NAMES = 2


def is_one_needed(writes: Sequence[Write], source: Source) -> bool:
    """Whether a value reads what one of the writes before it may have written, where either is at places that only the
    run knows; under a name of its own, further away, at any place that is not seen to be another."""
    return any(
        _cross(earlier.index, places)
        or (
            (is_named or any(_is_traced(part, source) for part in (*earlier.index, *places)))
            and _may_hold(earlier.index, places, source)
        )
        for before, places, is_named in _reads(writes, source)
        for earlier in before
    )


def may_need(writes: Sequence[Write], source: Source) -> bool:
    """Whether a value reads a place that is not seen to be another than one that was written before, nor the same."""
    return any(
        _may_hold(earlier.index, places, source) for before, places, _ in _reads(writes, source) for earlier in before
    )


def change_what_is_there(writes: Sequence[Write], source: Source) -> bool:
    """Whether values are made of what the writes before left at the place that they go to, `x = x.at[k].set(x[k] | a)`,
    and of nothing else of it: whatever is at one place, each goes on with what is there."""
    stored = {id(name): i + 1 for i, w in enumerate(writes) if (name := source.assigned_name(w.call)) is not None}
    read = [
        (stored[id(written)] == i, _is_same(elements(slices), write.index, source))
        for i, write in enumerate(writes)
        for node, _ in (_made_of(write.value, source) if write.value is not None else ())
        if isinstance(node, cst.Subscript) and isinstance(array := node.value, cst.Name)
        if id(written := source.written(array)) in stored
        for slices in (node.slice,)
    ]
    return bool(read) and all(is_last and is_its_own for is_last, is_its_own in read)


def _is_same(one: Sequence[Part], other: Sequence[Part], source: Source) -> bool:
    """Whether two places are called the same, and each name means the same at both."""
    names = [[source.written(name) for part in index for name in names_in(part)] for index in (one, other)]
    is_called_so = [*map(source.code, one)] == [*map(source.code, other)]
    return is_called_so and all(a is b for a, b in zip(*names, strict=True))


def _reads(writes: Sequence[Write], source: Source) -> Iterator[tuple[Sequence[Write], tuple[Part, ...], bool]]:
    """The places that the values read of what was written, on one of several paths too, each with the writes before,
    and whether a name stands for what was read."""
    names = [(i, source.assigned_name(write.call)) for i, write in enumerate(writes, 1)]
    reads = [(i, name, read) for i, name in names if name is not None for read in source.reads(name)]
    # Not those of the next turn of a loop around.
    stored = {id(read): i for i, name, read in reads if source.order(read) > source.order(name)}
    for value in (write.value for write in writes[1:] if write.value is not None):
        for node, depth in _made_of(value, source):
            match node:
                case cst.Subscript(value=cst.Name() as array, slice=slices):
                    yield writes[: stored.get(id(array), 0)], elements(slices), depth < _NAMES


def _made_of(value: cst.BaseExpression, source: Source, depth: int = _NAMES) -> Iterator[tuple[cst.CSTNode, int]]:
    """Everything in `value`, and in what its names stand for, each with how many names further it is looked."""
    for node in inside(value):
        yield node, depth
        meant = source.value(node) if isinstance(node, cst.Name) and depth else None
        if meant is not None and at_write(meant) is None:
            yield from _made_of(meant, source, depth - 1)


def _cross(written: Sequence[Part], read: Sequence[Part]) -> bool:
    """Whether slices of one axis were written and slices of another are read: where they cross both are."""
    if any(isinstance(part, cst.Ellipsis) for part in (*written, *read)):
        return False
    one, other = (set(told_axes(index)) for index in (written, read))
    parts = [part for part in (*written, *read) if not is_whole(part)]
    return one.isdisjoint(other) and bool(one and other) and all(isinstance(part, cst.Slice) for part in parts)


def _may_hold(written: Sequence[Part], read: Sequence[Part], source: Source) -> bool:
    """Whether the places may meet; of those that are the same Python can say what is there."""
    return [*map(source.code, written)] != [*map(source.code, read)] and not are_apart(written, read)


def _is_traced(part: Part, source: Source) -> bool:
    """Whether this is an array of places, and not one that Python knows: `NODES`, `np.arange(n)`, `[0, 2]`."""
    if not is_many(part, source) or not isinstance(part, cst.BaseExpression):
        return False
    first = next((node.value for node in names_in(part)), "")
    return not (first.isupper() or is_literal(part) or kind(part, source) == "numpy")
