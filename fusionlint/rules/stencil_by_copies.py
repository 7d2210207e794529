"""Neighbours by whole shifted copies: `jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) - 2 * x`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import constant, elements
from fusionlint.patterns.calls import argument, brief
from fusionlint.patterns.elementwise import worked_on
from fusionlint.patterns.join import lists_parts
from fusionlint.rule import Rule
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ROLL = "jax.numpy.roll"
_CONCATENATE = "jax.numpy.concatenate"
_FAR = 4


@dataclass(frozen=True, slots=True)
class _Shifted:
    """An array that is moved by a few places along one axis, and what fills the gap: None for its other end."""

    array: str
    axis: int
    by: int
    wraps: bool


@rule.source("Call", calls=(_ROLL, _CONCATENATE), like=lists_parts)
def both_neighbours(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first of several copies of one array, moved both ways along one axis, that one expression reads."""
    first = _shifted(node, source)
    if first is None or not source.is_traced(node) or is_idle(source.project, source.place(node)):
        return
    together = [other for other in _read_with(node, source) if other[1].array == first.array]
    if not together or together[0][0] is not node:
        return
    if not any(a.axis == b.axis and a.by * b.by < 0 for _, a in together for _, b in together):
        return
    x = brief(first.array, 20, "x")
    mode = ', mode="wrap"' if first.wraps else ""
    yield source.finding(
        node,
        f"each neighbour of `{x}` is a copy of all of it on a TPU",
        write=f"p = jnp.pad({x}, ((1, 1), ...){mode}) once, and slices of it: p[2:] and p[:-2] beside {x}",
    )


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
        return _Shifted(source.code(array), along, by, wraps=True)
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
                name = source.code(array)
                wraps = isinstance(end, cst.Subscript) and source.code(end.value) == name
                return _Shifted(name, 0, places, wraps) if places and abs(places) <= _FAR else None
    return None


def _read_with(node: cst.Call, source: Source) -> list[tuple[cst.CSTNode, _Shifted]]:
    """The moved arrays that the expression reads which reads `node`, in the order in which they stand."""
    tops = set(_tops(node, source))
    function = source.function(node)
    found = []
    for other in source.nodes(cst.Call):
        moved = _shifted(other, source)
        if moved is not None and source.function(other) is function and tops & set(_tops(other, source)):
            found.append((other, moved))
    return found


def _tops(node: cst.CSTNode, source: Source) -> list[cst.CSTNode]:
    """The elementwise expressions that read `node`, by its name if it has one."""
    name = source.assigned_name(node)
    reads = source.reads(name) if name is not None else [node]
    return [top for read in reads if (top := worked_on(read, source)) is not read]
