"""`jnp.insert` at a place that is known: two scatters into a new array, where a concatenate puts the parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, is_fresh, is_literal, is_none
from fusionlint.patterns.code.calls import argument, as_operand, brief, has_only
from fusionlint.patterns.compiled.scattered import puts_most_behind, scatters_at
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import is_for_a_picture
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_INSERT = "jax.numpy.insert"
_LONG = 40


@rule.source("Call", calls=(_INSERT,))
def put_in_by_scatters(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jnp.insert(x, 0, v)`, and any other number that is written out."""
    if not source.calls(node, _INSERT) or not has_only(node, 4, "arr", "obj", "values", "axis"):
        return
    array, place, values = argument(node, 0, "arr"), argument(node, 1, "obj"), argument(node, 2, "values")
    at = constant(place) if place is not None else None
    if array is None or values is None or at is None or not source.is_traced(node):
        return
    if is_fresh(array, source) and is_literal(values):
        return  # XLA computes it while it compiles
    if is_concrete(node, source) or is_for_a_picture(source.project, source.place(node)):
        return
    axis = argument(node, 3, "axis")
    axis = None if is_none(axis) else axis
    yield source.finding(
        node,
        "two scatters make a new array, one for what was there and one for what is put in",
        write=_joined(array, at, values, axis, source),
        # Columns are put in by a TPU as fast.
        pair=0 if axis is None or constant(axis) == 0 else 2,
    )


@rule.barrier
def put_behind_by_a_scatter(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into a scatter of nearly all of a new array to places that are written out, or comes out of it."""
    if not any(puts_most_behind(scatter, module) for scatter in scatters_at(barrier, module)):
        return None
    return "jnp.concatenate of the parts in place of jnp.insert, or of a write of most of a new array: it fuses"


def _joined(
    array: cst.BaseExpression, at: int, values: cst.BaseExpression, axis: cst.BaseExpression | None, source: Source
) -> str:
    """`jnp.concatenate([v[None], x])` of an array of one axis; with the axis, where one is given."""
    jnp = source.alias("jax.numpy") or "jnp"
    x = brief(as_operand(array, source.code(array)), _LONG, "x")
    along = "" if axis is None else f", axis={source.code(axis)}"
    if axis is not None and constant(axis) != 0:
        if at == 0:
            return f"{jnp}.concatenate([v, x]{along}), x and v what stands there, v with a length of one along the axis"
        return (
            f"`before, after = {jnp}.split(x, [{at}]{along})`, then {jnp}.concatenate([before, v, after]{along}), x "
            "and v what stands there, v with a length of one along the axis"
        )
    v = brief(source.code(values), _LONG, "v")
    is_number = is_literal(values) or kind(values, source) == "scalar"
    piece = f"{jnp}.array([{v}])" if is_number else f"{as_operand(values, v)}[None]"
    parts = f"{piece}, {brief(source.code(array), _LONG, 'x')}" if at == 0 else f"{x}[:{at}], {piece}, {x}[{at}:]"
    more = "" if along else "; of an array of more axes insert makes one axis first"
    return f"{jnp}.concatenate([{parts}]){more}, of several values without the `[None]`"
