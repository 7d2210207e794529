"""Neighbours by whole shifted copies: `jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) - 2 * x`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, elements, inside
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.code.elementwise import worked_on
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.operations.join import lists_parts
from fusionlint.patterns.runs.beside_scans import is_made_for_scans
from fusionlint.rule import Rule
from fusionlint.source.facts import Call
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ROLL = "jax.numpy.roll"
_CONCATENATE = "jax.numpy.concatenate"
_ZEROS = ("jax.numpy.zeros", "jax.numpy.zeros_like")
_FULL = ("jax.numpy.full", "jax.numpy.full_like")
_WRAPPED = ', mode="wrap"'
_FAR = 4
_LONG = 40


class _Shifted(NamedTuple):
    """An array that is moved by a few places along one axis, what fills the gap, and how jnp.pad is told to write
    that; None where it cannot."""

    array: str
    axis: int
    by: int
    filler: str
    border: str | None


def _may_move(call: Call) -> bool:
    return lists_parts(call) or any(keyword == "shift" for keyword, _ in call.value.keywords)


@rule.source("Call", calls=(_ROLL, _CONCATENATE), like=_may_move)
def both_neighbours(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first of several copies of one array, moved both ways along one axis, that one expression reads; of several
    such expressions in a function the first."""
    found = _neighbours(node, source)
    if found is None or source.is_idle(node):
        return
    if is_made_for_scans(node, source):
        return
    array, ahead, behind = found
    others = ((other, _neighbours(other, source)) for other in _in_function(node, source))
    same = [other for other, more in others if more is not None and _is_of(more, array)]
    if same[0] is not node or _is_of_a_copy(node, source):
        return
    x = brief(array, 20, "x")
    more = "1 more expression" if len(same) == 2 else f"{len(same) - 1} more expressions"
    rest = f", and so are those of {more} below" if len(same) > 1 else ""
    yield source.finding(
        node,
        f"each neighbour of `{x}` is a copy of all of it on a TPU{rest}",
        write=f"p = {_bordered(x, ahead, behind)} once, and slices of it: {_slices(ahead, behind)} beside {x}",
        pair=0 if _is_padded(ahead, behind) else 1,
    )


def _neighbours(node: cst.Call, source: Source) -> tuple[str, _Shifted, _Shifted] | None:
    """The array, as written, of which `node` is the first of the copies that one expression reads, and those that are
    moved ahead and behind."""
    first = _shifted(node, source)
    if first is None:
        return None
    together = [other for other in _read_with(node, source) if other[1].array == first.array]
    if not together or together[0][0] is not node:
        return None
    both = [(a, b) for _, a in together for _, b in together if a.axis == b.axis and a.by < 0 < b.by]
    if not both:
        return None
    along = both[0][0].axis
    ahead, behind = max((pair for pair in both if pair[0].axis == along), key=lambda pair: pair[1].by - pair[0].by)
    return first.array, ahead, behind


def _is_of_a_copy(node: cst.Call, source: Source) -> bool:
    """Whether what is moved has been moved already, `jnp.roll(ahead, 1, 1)`: told is what all are copies of."""
    moved = argument(node, 0, "a")
    return isinstance(moved, cst.Name) and source.calls(source.meant(moved), _ROLL)


def _is_of(found: tuple[str, _Shifted, _Shifted], array: str) -> bool:
    """Whether what was found is of the same array, or of another part of it: `field[0]` and `field[1]`."""
    return found[0].partition("[")[0] == array.partition("[")[0]


def _in_function(node: cst.Call, source: Source) -> list[cst.Call]:
    """The calls of the function around `node`, in the order in which they stand."""
    function = source.function(node)
    calls = inside(function.body) if function is not None else source.nodes(cst.Call)
    return [call for call in calls if isinstance(call, cst.Call) and source.function(call) is function]


def _bordered(x: str, ahead: _Shifted, behind: _Shifted) -> str:
    """The one array that `ahead` and `behind` are slices of: padded, where jnp.pad writes what fills both gaps."""
    if _is_padded(ahead, behind):
        return f"jnp.pad({x}, ({_widths(ahead, behind)}){ahead.border})"
    start, end = brief(behind.filler, _LONG, "start"), brief(ahead.filler, _LONG, "end")
    return f"jnp.concatenate([{start}, {x}, {end}])"


def _widths(ahead: _Shifted, behind: _Shifted) -> str:
    """What jnp.pad is told to add: as many places at each end of the axis as the copies are moved the other way."""
    axis, both = ahead.axis, f"({behind.by}, {-ahead.by})"
    return ", ".join(["(0, 0)"] * axis + [both, "..."] if axis >= 0 else ["...", both] + ["(0, 0)"] * (-1 - axis))


def _slices(ahead: _Shifted, behind: _Shifted) -> str:
    """The two that lie farthest apart: of `x` with one place more at each end `p[2:]` and `p[:-2]`."""
    axis, added = ahead.axis, behind.by - ahead.by
    before, after = (":, " * axis, "") if axis >= 0 else ("..., ", ", :" * (-1 - axis))
    return f"p[{before}{added}:{after}] and p[{before}:-{added}{after}]"


def _is_padded(ahead: _Shifted, behind: _Shifted) -> bool:
    return ahead.border is not None and ahead.border == behind.border


def _shifted(node: cst.CSTNode, source: Source) -> _Shifted | None:
    """`jnp.roll(x, 1, axis=0)`, or `jnp.concatenate([x[1:], end])` of rows."""
    if not isinstance(node, cst.Call):
        return None
    if source.calls(node, _ROLL):
        array, shift, axis = argument(node, 0, "a"), argument(node, 1, "shift"), argument(node, 2, "axis")
        by = constant(shift) if shift is not None else None
        along = constant(axis) if axis is not None else None
        if array is None or not by or along is None or abs(by) > _FAR:
            return None
        x = source.code(array)
        return _Shifted(x, along, by, f"{x}[{-by}:]" if by > 0 else f"{x}[:{-by}]", _WRAPPED)
    axis = argument(node, 1, "axis")
    if not source.calls(node, _CONCATENATE) or (axis is not None and constant(axis) != 0):
        return None
    match argument(node, 0, "arrays"):
        case cst.List(elements=[one, two]) | cst.Tuple(elements=[one, two]):
            return _of_rows(one.value, two.value, source)
    return None


def _of_rows(one: cst.BaseExpression, two: cst.BaseExpression, source: Source) -> _Shifted | None:
    """What `[x[1:], end]` or `[start, x[:-1]]` are together."""
    for moved, end in ((one, two), (two, one)):
        match moved:
            case cst.Subscript(value=array, slice=slices):
                match elements(slices):
                    case (cst.Slice(lower=cst.Integer() as by, upper=None, step=None),) if moved is one:
                        places = -by.evaluated_value
                    case (cst.Slice(lower=None, upper=cst.UnaryOperation() as upper, step=None),) if moved is two:
                        places = -(constant(upper) or 0)
                    case _:
                        continue
                if not places or abs(places) > _FAR:
                    return None
                return _Shifted(source.code(array), 0, places, source.code(end), _border(end, array, places, source))
    return None


def _border(end: cst.BaseExpression, array: cst.BaseExpression, by: int, source: Source) -> str | None:
    """What jnp.pad is told, to write `end` before or behind `array`: the array's other end, its own, or a number."""
    made = meant_in_the_end(end, source)
    match made:
        case cst.Subscript(value=owner, slice=slices) if owner.deep_equals(array):
            match elements(slices):
                case (cst.Slice(lower=None, upper=cst.Integer() as rows, step=None),):
                    count = -rows.evaluated_value
                case (cst.Slice(lower=cst.UnaryOperation() as lower, upper=None, step=None),):
                    count = -(constant(lower) or 0)
                case _:
                    return None
            if count == by:
                return _WRAPPED
            return ', mode="edge"' if abs(count) == abs(by) == 1 else None
        case cst.Call() if source.calls(made, *_ZEROS):
            return ""
        case cst.Call() if source.calls(made, *_FULL):
            value = argument(made, 1, "fill_value")
            return None if value is None else f", constant_values={source.code(value)}"
    return None


def _read_with(node: cst.Call, source: Source) -> list[tuple[cst.Call, _Shifted]]:
    """The moved arrays that the expression reads which reads `node`, in the order in which they stand."""
    tops = set(_tops(node, source))
    function = source.function(node)
    found = []
    around = {source.pieces.of_scope(source.body_scope(function))} if function is not None else ()
    for other in source.nodes_in(around, cst.Call) if around else source.nodes(cst.Call):
        moved = _shifted(other, source)
        if moved is not None and source.function(other) is function and tops & set(_tops(other, source)):
            found.append((other, moved))
    return found


def _tops(node: cst.CSTNode, source: Source) -> list[cst.CSTNode]:
    """The elementwise expressions that read `node`, by its name if it has one."""
    return [top for read in source.readers(node) if (top := worked_on(read, source)) is not read]
