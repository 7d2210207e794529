"""Where an array is read at places that were found in itself: `d[jnp.argmin(d)]`, `x[order]` of its own order.

In: the call that finds the places. Out: the reads, each with the axis along which it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.at import Part, constant, elements, inside, is_none, is_whole, names_read
from fusionlint.patterns.calls import argument
from fusionlint.source.tree import Source

_TAKE = "jax.numpy.take_along_axis"
_EXPAND = "jax.numpy.expand_dims"


class Pick(NamedTuple):
    """`node` reads `array` at the places; `is_kept` where the axis stays, with a length of one."""

    node: cst.Subscript | cst.Call
    array: cst.BaseExpression
    is_kept: bool


def picks(places: cst.Call, axis: int | None, source: Source, *, default: int | None = None) -> Iterator[Pick]:
    """The reads of any array at `places`, which were found along `axis`; along the `default` one where none is said
    (None: in all of the array), which is all that an array of one axis has."""
    for read in source.readers(places):
        yield from _picks_at(read, axis, default, source)


def _picks_at(read: cst.CSTNode, axis: int | None, default: int | None, source: Source) -> Iterator[Pick]:
    """`d[i]`, `d[jnp.arange(n), i]`, `jnp.take_along_axis(d, i[:, None], 1)`."""
    index = _spread(read, source)
    above = source.parent(index)
    match above:
        case cst.Index() if index is read:
            node = source.parent(source.parent(above) or above)
            if isinstance(node, cst.Subscript) and _is_along(elements(node.slice), read, axis, source):
                yield Pick(node, node.value, is_kept=False)
        case cst.Arg():
            node = source.parent(above)
            if isinstance(node, cst.Call) and source.calls(node, _TAKE) and argument(node, 1, "indices") is index:
                array, along = argument(node, 0, "arr"), argument(node, 2, "axis")
                found = constant(along) if along is not None else -1
                if array is not None and is_same_axis(found, default if axis is None else axis):
                    yield Pick(node, array, is_kept=index is not read)


def _spread(read: cst.CSTNode, source: Source) -> cst.CSTNode:
    """What adds an axis to the places, `i[:, None]`, `jnp.expand_dims(i, 1)`; else the places themselves."""
    above = source.parent(read)
    match above:
        case cst.Subscript(value=value, slice=slices) if value is read:
            parts = elements(slices)
            if sum(map(is_none, parts)) == 1 and all(is_none(part) or is_whole(part) for part in parts):
                return above
        case cst.Arg():
            call = source.parent(above)
            if isinstance(call, cst.Call) and source.calls(call, _EXPAND) and call.args[0] is above:
                return call
    return read


def _is_along(parts: tuple[Part, ...], read: cst.CSTNode, axis: int | None, source: Source) -> bool:
    """Whether the index has the places alone, or on a last axis behind the numbers of the rows, `arange(n)`."""
    match parts:
        case [one]:
            return one is read and axis is None
        case [cst.Call() as rows, one]:
            return one is read and axis in (1, -1) and source.calls(rows, "jax.numpy.arange")
        case [one, cst.Call() as columns]:
            return one is read and axis == 0 and source.calls(columns, "jax.numpy.arange")
    return False


def is_same_axis(one: int | None, other: int | None) -> bool:
    """Whether two axes may be the same: -1 is the last, of however many."""
    return one is not None and (other is None or one == other or (-1 in (one, other) and max(one, other) > 0))


def is_written_between(node: cst.CSTNode, first: cst.CSTNode, last: cst.CSTNode, source: Source) -> bool:
    """Whether a name that `node` reads is written anew after one node and before another."""
    return any(use.is_write for name in names_read(node) for use in source.uses_between(name, first, last))


def is_unchanged_between(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether both say the same of the same values: no name in them is written anew in between, no field assigned, and
    nothing is called, which may give something else each time."""
    text = source.code(one)
    if text != source.code(other) or any(isinstance(part, cst.Call) for part in inside(one)):
        return False
    if is_written_between(one, one, other, source):
        return False
    function = source.function(one)
    targets = (part.target for part in inside(function.body) if isinstance(part, cst.AssignTarget)) if function else ()
    return isinstance(one, cst.Name) or all(source.code(target) != text for target in targets)
