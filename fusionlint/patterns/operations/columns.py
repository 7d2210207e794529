"""Reading an array piece by piece: `state[:, 0]`, `state[..., :3]`, `x, v = state.T`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import ABOUT, Part, constant, elements, is_whole
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.source.tree import Source

_UNSTACKS = frozenset(("jax.numpy.split", "jax.numpy.unstack", "jax.numpy.array_split"))


class Column(NamedTuple):
    """`array[..., low:high]` along `axis`; -1 is the last axis."""

    axis: int
    low: float
    high: float


def columns(reads: Iterable[cst.BaseExpression], source: Source) -> set[Column] | None:
    """The pieces that all these reads of an array take; None where one takes it whole, or a piece that varies.

    Reads of its shape do not count, nor does `where(done, fresh, state)`, which keeps it or not.
    """
    found: set[Column] = set()
    for read in reads:
        pieces = _pieces(read, source)
        if pieces is None:
            return None
        found.update(pieces)
    along = {column.axis for column in found}
    ordered = sorted(found, key=lambda column: (column.low, column.high))
    apart = all(one.high <= other.low for one, other in pairwise(ordered))
    return found if len(along) == 1 and len(found) > 1 and apart else None


def _pieces(read: cst.BaseExpression, source: Source) -> list[Column] | None:
    match parent := source.parent(read):
        case cst.Attribute(attr=cst.Name(name)) if name in ABOUT:
            return []
        case cst.Attribute(attr=cst.Name("T")):
            return _unpacked(parent, -1, source)
        case cst.Subscript(value=value, slice=slices) if value is read:
            column = _column(elements(slices))
            return [column] if column else None
        case cst.Assign(value=value) if value is read:
            return _unpacked(read, 0, source)
        case cst.Arg():
            call = source.parent(parent)
            if source.calls(call, *CHOICES) and call.args[0] is not parent:
                return []
            if source.calls(call, *_UNSTACKS) and call.args[0] is parent:
                return _unpacked(call, _axis(call), source)
    return None


def _column(index: tuple[Part, ...]) -> Column | None:
    *before, last = index
    if not all(is_whole(part) for part in before):
        if any(not is_whole(part) for part in index[1:]):
            return None
        before, last = [], index[0]
    axis = -1 if any(isinstance(part, cst.Ellipsis) for part in before) else len(before)
    number = constant(last)
    if number is not None:
        low: float = number if number >= 0 else math.inf  # the last ones, however many there are
        return Column(axis, low, low + 1)
    if not isinstance(last, cst.Slice) or last.step is not None or is_whole(last):
        return None
    bounds = [constant(bound) if bound is not None else None for bound in (last.lower, last.upper)]
    if any(bound is None and given is not None for bound, given in zip(bounds, (last.lower, last.upper), strict=True)):
        return None
    lower, upper = bounds
    if (lower or 0) < 0 or (upper is not None and upper < 0):
        return None
    return Column(axis, lower or 0, math.inf if upper is None else upper)


def _unpacked(node: cst.BaseExpression, axis: int, source: Source) -> list[Column] | None:
    """`x, v = node`."""
    match source.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))], value=value) if value is node:
            if all(isinstance(target, cst.Element) for target in targets):
                return [Column(axis, i, i + 1) for i in range(len(targets))]
    return None


def _axis(call: cst.Call) -> int:
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "axis":
            return constant(arg.value) or 0
    number = constant(call.args[2].value) if len(call.args) > 2 else None
    return number or 0


def fit(read: int, joined: int | None) -> bool:
    """Whether columns along `read` are what was joined along `joined` (None: nobody knows)."""
    return joined is None or read == joined or {read, joined} in ({-1, 0}, {-1, 1}, {-1, 2})
