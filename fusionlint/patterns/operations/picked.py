"""Where an array is read at places that were found in itself: `d[jnp.argmin(d)]`, `x[order]` of its own order.

In: the call that finds the places. Out: the reads, each with the axis along which it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, constant, elements, is_none, takes_all, told_axes
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.source.tree import Source

_TAKE = "jax.numpy.take_along_axis"
_EXPAND = "jax.numpy.expand_dims"


class Pick(NamedTuple):
    """`node` reads `array` at the places; `is_kept` where an axis of length one is added to those. `is_sure` where it
    reads no others: no branch beside, and no turn before, may have left any."""

    node: cst.Subscript | cst.Call
    array: cst.BaseExpression
    is_kept: bool
    is_sure: bool = True


def picks(places: cst.Call, axis: int | None, source: Source, *, default: int | None = None) -> Iterator[Pick]:
    """The reads of any array at `places`, which were found along `axis`; along the `default` one where none is said
    (None: in all of the array), which is all that an array of one axis has."""
    sure = source.sure_readers(places)
    for read in source.readers(places):
        for pick in _picks_at(read, axis, default, source):
            yield pick._replace(is_sure=read in sure)


def taken_off(pick: Pick, axis: int | None, source: Source) -> cst.BaseExpression | None:
    """What takes off again the `axis` of length one that a pick is kept for: `jnp.take_along_axis(...)[..., 0]` of the
    last one, `.squeeze(0)` of the first."""
    match above := source.parent(pick.node):
        case cst.Subscript(value=value, slice=slices) if value is pick.node:
            parts = elements(slices)
            cut = told_axes(parts)
            if len(cut) != 1 or not isinstance(one := parts[cut[0]], cst.Integer) or constant(one) != 0:
                return None
            is_from_behind = any(isinstance(part, cst.Ellipsis) for part in parts[: cut[0]])
            return above if cut[0] - is_from_behind * len(parts) == axis else None
        case cst.Attribute(attr=cst.Name("squeeze")):
            call = source.parent(above)
            given = argument(call, 0, "axis") if isinstance(call, cst.Call) and call.func is above else None
            return call if isinstance(call, cst.Call) and given is not None and constant(given) == axis else None
    return None


def _picks_at(read: cst.CSTNode, axis: int | None, default: int | None, source: Source) -> Iterator[Pick]:
    """`d[i]`, `d[jnp.arange(n), i]`, `jnp.take_along_axis(d, i[:, None], 1)`."""
    along = default if axis is None else axis
    index = _spread(read, along, source)
    above = source.parent(index)
    match above:
        case cst.Index() if index is read:
            node = source.parent(source.parent(above) or above)
            if isinstance(node, cst.Subscript) and _is_along(elements(node.slice), read, axis, source):
                yield Pick(node, node.value, is_kept=False)
        case cst.Arg():
            node = source.parent(above)
            if source.calls(node, _TAKE) and argument(node, 1, "indices") is index:
                array, given = argument(node, 0, "arr"), argument(node, 2, "axis")
                found = constant(given) if given is not None else -1
                if array is not None and is_same_axis(found, along):
                    yield Pick(node, array, is_kept=index is not read)


def _spread(read: cst.CSTNode, axis: int | None, source: Source) -> cst.CSTNode:
    """What adds the `axis` that the places lack, `i[:, None]`, `jnp.expand_dims(i, 1)`; else the places themselves."""
    above = source.parent(read)
    match above:
        case cst.Subscript(value=value, slice=slices) if value is read and is_same_axis(_added(slices), axis):
            return above
        case cst.Arg():
            call = source.parent(above)
            if source.calls(call, _EXPAND) and argument(call, 0, "a") is read:
                given = argument(call, 1, "axis")
                return call if given is not None and is_same_axis(constant(given), axis) else read
    return read


def _added(slices: Sequence[cst.SubscriptElement]) -> int | None:
    """The axis that an index adds, and does nothing else: 1 of `i[:, None]`, -1 of `i[..., None]`."""
    parts = elements(slices)
    new = [number for number, part in enumerate(parts) if is_none(part)]
    if len(new) != 1 or not all(map(takes_all, parts)):
        return None
    return new[0] - len(parts) if any(not isinstance(part, cst.Slice) for part in parts[: new[0]]) else new[0]


def _is_along(parts: tuple[Part, ...], read: cst.CSTNode, axis: int | None, source: Source) -> bool:
    """Whether the index has the places alone, or on a last axis behind the numbers of the rows, `arange(n)`."""
    match parts:
        case [one]:
            return one is read and axis is None
        case [cst.Call() as rows, one]:
            return one is read and axis in (1, -1) and _is_of_each(rows, source)
        case [one, cst.Call() as columns]:
            return one is read and axis == 0 and _is_of_each(columns, source)
    return False


def _is_of_each(numbers: cst.Call, source: Source) -> bool:
    """Whether these are the numbers of the rows in their order, `arange(n)`: from 0 on, in steps of one."""
    return source.calls(numbers, "jax.numpy.arange") and has_only(numbers, 1, "dtype")


def is_same_axis(one: int | None, other: int | None) -> bool:
    """Whether two axes may be the same: -1 is the last, of however many; any where one is not said."""
    return one is not None and (other is None or one == other or (-1 in (one, other) and max(one, other) > 0))
