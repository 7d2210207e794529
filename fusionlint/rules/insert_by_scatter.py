"""`jnp.insert` at a place that is known: two scatters into a new array, where a concatenate puts the parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import TO_ARRAY, constant, elements, inside, is_fresh, is_literal, is_none
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, brief, has_only
from fusionlint.patterns.code.layout import Called, in_a_list, in_place_of
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.compiled.scattered import puts_most_behind, scatters_at
from fusionlint.patterns.loops.stacked_rows import is_stacked_by_a_scan
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.two_axes import has_rows
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_INSERT = "jax.numpy.insert"
_LONG = 40


@rule.source("Call", calls=(_INSERT,))
def put_in_by_scatters(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jnp.insert(x, 0, v)`, and any other number that is written out."""
    if not has_only(node, 4, "arr", "obj", "values", "axis"):
        return
    array, place, values = argument(node, 0, "arr"), argument(node, 1, "obj"), argument(node, 2, "values")
    at = constant(place) if place is not None else None
    if array is None or values is None or at is None:
        return
    if is_fresh(array, source) and is_literal(values):
        return  # XLA computes it while it compiles
    if is_concrete(node, source):
        return
    if is_stacked_by_a_scan(array, source):
        return  # of so many steps two kernels more are not seen
    axis = argument(node, 3, "axis")
    axis = None if is_none(axis) else axis
    written = _code(node, array, at, values, axis, source)
    yield source.finding(
        node,
        "two scatters make a new array, one for what was there and one for what is put in",
        write=_joined(array, at, values, axis, source),
        edits=(in_place_of(node, written, source),) if written is not None else (),
        # Columns are put in by a TPU as fast.
        pair=0 if axis is None or constant(axis) == 0 else 2,
    )


@rule.barrier
def put_behind_by_a_scatter(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into a scatter of nearly all of a new array to places that are written out, or comes out of it."""
    if not any(puts_most_behind(scatter, module) for scatter in scatters_at(barrier, module)):
        return None
    return "jnp.concatenate of the parts in place of jnp.insert, or of a write of most of a new array: it fuses"


def _code(
    node: cst.Call,
    array: cst.BaseExpression,
    at: int,
    values: cst.BaseExpression,
    axis: cst.BaseExpression | None,
    source: Source,
) -> Called | None:
    """What puts one value, or one row, in as an insert does: in the dtype of the array.

    Not safe: of several values it raises, and of an array of more axes insert makes one axis first.
    """
    jnp, v = source.alias_at(node, "jax.numpy"), as_argument(values, source)
    if jnp is None or source.has_comment(node) or not _is_one(values, source):
        return None
    if axis is None:
        if at != 0 or has_rows(array, source):
            return None
        filled = [] if v in ("0", "0.0", "0.") else [f"constant_values={v}"]
        row = as_argument(array, source)
        if _is_laid_out_anew(node, source):
            row = f"{jnp}.ravel({row})"
        return Called(f"{jnp}.pad", [row, "(1, 0)", *filled])
    if constant(axis) != 0 or not is_short(array):
        return None
    x = source.code(array)
    new = _new_row(array, values, jnp, source)
    return Called(f"{jnp}.concatenate", [in_a_list(*([new, x] if at == 0 else [f"{x}[:{at}]", new, f"{x}[{at}:]"]))])


def _is_laid_out_anew(node: cst.Call, source: Source) -> bool:
    """`jnp.insert(x, 0, 0).reshape(-1, 1)`: of whatever had more axes, an insert makes one first."""
    match source.parent(node):
        case cst.Attribute(attr=cst.Name("reshape")) | cst.Subscript():
            return True
    return False


def _new_row(array: cst.BaseExpression, values: cst.BaseExpression, jnp: str, source: Source) -> str:
    """The row to put in, in the array's dtype, which may have no row yet: where one is read, `x[0] - 1`, it has."""
    x, v = source.code(array), as_argument(values, source)
    meant = source.meant(values)
    if _is_a_row(meant, array, source):
        return f"{as_operand(values, v)}[None]"
    if any(_is_a_row(part, array, source) for part in inside(meant)):
        return f"{jnp}.full_like({x}[:1], {v})"
    return f"{jnp}.full_like({x}, {v}, shape=(1, *{x}.shape[1:]))"


def _is_a_row(node: cst.CSTNode, array: cst.BaseExpression, source: Source) -> bool:
    """`x[0]`, of x as it still is where it is put into."""
    match node:
        case cst.Subscript(value=cst.Name() as whole, slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            is_of_it = source.code(whole) == source.code(array)
            return is_of_it and constant(place) is not None and is_same_at(whole, array, source)
    return False


def _is_one(values: cst.BaseExpression, source: Source) -> bool:
    """Whether this is computed here, and no list: of a parameter nobody sees whether it is several values."""
    meant = source.meant(values)
    if isinstance(meant, cst.List | cst.Tuple | cst.ListComp) or source.calls(meant, *TO_ARRAY):
        return False
    if isinstance(meant, cst.Subscript):
        return not any(isinstance(part, cst.Slice) for part in elements(meant.slice))
    if isinstance(meant, cst.Name):
        return unpacked(source.written(meant), source) is not None
    if isinstance(meant, cst.BinaryOperation | cst.UnaryOperation):
        return any(
            _is_one(part, source) and not is_literal(part)
            for part in children(meant)
            if isinstance(part, cst.BaseExpression)
        )
    return True


def _joined(
    array: cst.BaseExpression, at: int, values: cst.BaseExpression, axis: cst.BaseExpression | None, source: Source
) -> str:
    """`jnp.concatenate([v[None], x])` of an array of one axis; with the axis, where one is given."""
    jnp = source.jnp
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
