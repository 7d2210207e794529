"""Writes that make of what stands at their own place what a method would, `x.at[i].set(jnp.maximum(x[i], v))` for
`x.at[i].max(v)`: of those one does all, equal places or not.

In: writes one after the other. Out: the one, as it is written; None where one of them does something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Write, elements, is_about, is_static, names_in
from fusionlint.patterns.writes.between import means_more
from fusionlint.source.tree import Source

_METHODS = {"jax.numpy.maximum": "max", "jax.numpy.minimum": "min"}
_LONGEST = 120


class _Change(NamedTuple):
    """What a write could say instead: its method, and the value; `own` reads the array in what is written now."""

    method: str
    value: cst.BaseExpression
    own: cst.BaseExpression


def of_their_own(writes: Sequence[Write], array: str, jnp: str, source: Source) -> str | None:
    """`x.at[jnp.array([i, j])].max(jnp.array([a, b]))`; of places that are written out a `where` is less."""
    changes = [change for write in writes if (change := _change(write, source)) is not None]
    if len(changes) < len(writes) or len({change.method for change in changes}) > 1:
        return None
    if all(is_static(part) for write in writes for part in write.index) or not _are_apart(writes, changes, source):
        return None
    values = ", ".join(source.code(change.value) for change in changes)
    places = ", ".join(source.code(write.index[0]) for write in writes)
    is_short = all(len(write.index) == 1 for write in writes) and len(places) + len(values) < _LONGEST
    given = (f"{jnp}.array([{places}])", f"{jnp}.array([{values}])") if is_short else ("places", "values")
    said = "" if is_short else ", with arrays of all places and of all values"
    return f"{array}.at[{given[0]}].{changes[0].method}({given[1]}){said}: places that are equal do no harm"


def _change(write: Write, source: Source) -> _Change | None:
    match write.value:
        case cst.Call(func=function, args=[cst.Arg(value=one, keyword=None), cst.Arg(value=other, keyword=None)]):
            method = _METHODS.get(source.qualified_name(function) or "")
        case cst.BinaryOperation(left=one, operator=cst.Add(), right=other):
            method = "add"
        case _:
            return None
    if write.method != "set" or method is None or not all(isinstance(part, cst.BaseExpression) for part in write.index):
        return None
    for own, value in ((one, other), (other, one)):
        if isinstance(own, cst.Subscript) and _is_own(own, write, source):
            return _Change(method, value, own.value)
    return None


def _is_own(read: cst.Subscript, write: Write, source: Source) -> bool:
    """Whether what is read is what stands at the place of a write."""
    if source.code(read.value) != source.code(write.array):
        return False
    return [*map(source.code, elements(read.slice))] == [*map(source.code, write.index)]


def _are_apart(writes: Sequence[Write], changes: Sequence[_Change], source: Source) -> bool:
    """Whether no place or value is made of what an earlier write left, and each name means one thing all along."""
    parts = [part for write in writes for part in write.index] + [change.value for change in changes]
    said = [name for part in parts for name in names_in(part)]
    if means_more(said, writes, source) or any(_is_written_behind(name, writes, source) for name in said):
        return False
    own, end = [*(w.array for w in writes), *(c.own for c in changes)], source.order(writes[-1].call)
    names = (source.assigned_name(write.call) for write in writes[:-1])
    reads = (read for name in names if name is not None for read in source.reads(name))
    return all(read in own or is_about(read, source) or source.order(read) > end for read in reads)


def _is_written_behind(read: cst.Name, writes: Sequence[Write], source: Source) -> bool:
    """Whether a name is written anew behind `read`, before the last write."""
    between = source.uses_between(read, writes[0].call, writes[-1].call)
    return any(use.is_write and use.order > source.order(read) for use in between)
