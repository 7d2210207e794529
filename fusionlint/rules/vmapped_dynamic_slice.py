"""A window at a place that differs between the elements of a `vmap`: `vmap(lambda x, i: lax.dynamic_slice(...))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, elements, is_literal, is_new_axis, listed, takes_all
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.compiled.moved_in_a_loop import moved_in_a_loop
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.operations.along_axis import (
    ALONG_AXIS,
    instead,
    is_a_write,
    is_mapped_for_each,
    moves_for_each,
)
from fusionlint.patterns.operations.windows import Window, gathered
from fusionlint.patterns.runs.mapped import differs, is_mapped_by, is_shared
from fusionlint.patterns.runs.under import is_mapped_at_the_top, is_mapped_in_host_code
from fusionlint.patterns.values.below_zero import may_be_below_zero
from fusionlint.patterns.writes.beside import is_chosen
from fusionlint.patterns.writes.carried import is_carried_array
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SLICE = "jax.lax.dynamic_slice"
_UPDATE = "jax.lax.dynamic_update_slice"
_A_LOOP = "each element of the batch moves a window of its own: a loop over the batch on a TPU"
# Which argument says where.
_STARTS = {_SLICE: (1, "start_indices"), _UPDATE: (2, "start_indices")}
_VMAP = "jax.vmap"
# The axes of what is cut by a loop even along one of them.
_MATRIX = 2
_LONG = 30
_SHOWN = 160
# lax shifts a window back inside, and takes a number below 0 from the end.
_FITS = "the start clipped to what fits, after the axis' length is added to one below 0"
_BELOW = "the axis' length is added first to a start that can be below 0"
_GATHERS = {
    1: f"x[start + jnp.arange(n)], {_FITS}",
    2: f"x[row + jnp.arange(height)[:, None], column + jnp.arange(width)], {_FITS}",
}
_GATHER = (
    "one gather, x[...] with `start + jnp.arange(size)` along each axis in which the window moves, shaped to broadcast "
    f"with one another, and `:size` along the others; {_FITS}"
)
_MASK = (
    "jnp.where with a mask: compare i = jnp.arange of each axis with where the piece begins and ends; there stands "
    f"piece[jnp.clip(i - start, 0, size - 1)], along each axis; {_FITS}"
)

# What a loop carries is written in place: a `where` makes all of it anew in each turn.
_IN_PLACE = (
    "x.at[...].set(piece), with `start + jnp.arange(size)` along each axis in which the window moves, shaped to "
    f"broadcast with one another, and `:` along those that it fills: the loop writes that in place; {_FITS}"
)
# The page's pairs.
_WINDOW, _PIECE, _ROWS, _SERIES, _CARRIED = range(5)


@rule.source("Call", calls=(_SLICE, _UPDATE))
def window_per_element(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Where the window lies is a mapped number, or of an environment's state."""
    name = source.qualified_name(node.func)
    if name not in _STARTS:
        return
    starts = argument(node, *_STARTS[name])
    if starts is None or not _is_looped_over(node, name, starts, source):
        return
    if is_mapped_at_the_top(node, source) or is_mapped_in_host_code(node, source) or _is_meant(node, name, source):
        return
    rows = _rows(node, starts, source) if name == _UPDATE else None
    yield from _finding(node, name, source, rows or (_line(node, starts, source) if name == _UPDATE else None))


@rule.source("Call", calls=ALONG_AXIS)
def window_along_an_axis(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The same by `dynamic_slice_in_dim` and its like."""
    name = source.qualified_name(node.func)
    if name not in ALONG_AXIS:
        return
    if (
        not moves_for_each(node, name, source)
        or is_mapped_at_the_top(node, source)
        or is_mapped_in_host_code(node, source)
    ):
        return
    array = argument(node, 0, "operand")
    is_carried = array is not None and is_carried_array(array, source)
    pair = _SERIES if not is_a_write(name) else _CARRIED if is_carried else _ROWS
    yield source.finding(node, _A_LOOP, write=instead(node, name, source), pair=pair)


@rule.source("Call", calls=(_VMAP,))
def mapped_itself(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`vmap(lax.dynamic_slice)`."""
    handed = argument(node, 0, "fun")
    name = source.qualified_name(handed) if isinstance(handed, cst.Name | cst.Attribute) else None
    if name in _STARTS and is_mapped_by(node, _STARTS[name][0], source):
        yield from _finding(node, name, source)
    elif name in ALONG_AXIS and is_mapped_for_each(node, name, source):
        write = instead(cst.Call(cst.Name("_")), name, source)
        yield source.finding(node, _A_LOOP, write=write, pair=_ROWS if is_a_write(name) else _SERIES)


@rule.barrier
def window_after_window(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in the loop that a TPU moves one window after the other by."""
    loop = moved_in_a_loop(barrier, module)
    if loop is None or is_of_jax(loop):
        return None
    if loop.op_name.endswith("/gather"):
        return "an index of integer arrays, x[rows[:, None], columns], in place of dynamic_slice: one gather"
    return "jnp.where with a comparison of jnp.arange with the place, in place of dynamic_update_slice"


def _is_meant(node: cst.Call, name: str, source: Source) -> bool:
    """Whether a comment right above says that this is a window on purpose, where a gather would hold what it is there
    to avoid; or says so above another of the same outermost function that begins at the same mapped number."""
    here, around = _first(node, name, source), _outermost(node, source)
    if here is None or around is None:
        return False
    for one in source.calls_of((name,)):
        if isinstance(one, cst.Call) and _outermost(one, source) is around:
            first = _first(one, name, source)
            if first is not None and first.deep_equals(here) and _is_explained(one, source):
                return True
    return False


def _is_explained(node: cst.Call, source: Source) -> bool:
    above = source.line(source.location(node).line - 1)
    return above.lstrip().startswith("#") and is_chosen(node, source)


def _first(node: cst.Call, name: str, source: Source) -> cst.BaseExpression | None:
    """Where the window begins along the first axis."""
    starts = argument(node, *_STARTS[name])
    match source.meant(starts) if starts is not None else None:
        case cst.Tuple(elements=[first, *_]) | cst.List(elements=[first, *_]):
            return first.value
    return None


def _outermost(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    around = [*source.ancestors(node, cst.FunctionDef)]
    return around[-1] if around else None


def _finding(node: cst.Call, name: str, source: Source, rows: str | None = None) -> Iterator[Finding]:
    window = gathered(node, source) if name == _SLICE and source.calls(node, _SLICE) else None
    otherwise = _GATHERS.get(_axes(node, source), _GATHER) if name == _SLICE else _MASK
    if name == _UPDATE and _is_in_a_carry(node, source):
        otherwise = _IN_PLACE
    starts = argument(node, 1, "start_indices")
    # Of a start below zero a slice counts from the end, before it is moved back inside.
    is_inside = starts is not None and not may_be_below_zero(starts, source)
    yield source.finding(
        node,
        _A_LOOP,
        write=rows or _shown(window, otherwise),
        edits=(*window.edits, in_place_of(node, window.cut, source)) if window is not None and is_inside else (),
        pair=_pair(node, name, rows is not None, source),
    )


def _shown(window: Window | None, otherwise: str) -> str:
    """The index as advice, where that is short."""
    text = str(window) if window is not None else "..."
    return otherwise if brief(text, _SHOWN) == "..." else f"{text}; {_BELOW}"


def _pair(node: cst.Call, name: str, is_of_rows: bool, source: Source) -> int:
    """Which pair of the page it is."""
    if name == _UPDATE and _is_in_a_carry(node, source):
        return _CARRIED
    if name == _UPDATE:
        return _ROWS if is_of_rows else _PIECE
    starts = argument(node, 1, "start_indices")
    match source.meant(starts) if starts is not None else None:
        case cst.Tuple(elements=places) | cst.List(elements=places):
            return _SERIES if sum(not is_literal(place.value) for place in places) == 1 else _WINDOW
    return _WINDOW


def _is_in_a_carry(update: cst.Call, source: Source) -> bool:
    """Whether a loop of jax.lax carries the array that is written to."""
    array = argument(update, 0, "operand") if source.calls(update, _UPDATE) else None
    return array is not None and is_carried_array(array, source)


def _axes(node: cst.Call, source: Source) -> int:
    """Along how many axes the window is written out to move: one in `lax.dynamic_slice(x, (start,), (n,))`; 0 where
    nobody sees it, or where it lies still along others."""
    given = (argument(node, 1, "start_indices"), argument(node, 2, "slice_sizes"))
    starts, sizes = (source.meant(each) if each is not None else None for each in given)
    match starts, sizes:
        case ((cst.Tuple(elements=places) | cst.List(elements=places)), _):
            return 0 if any(is_literal(place.value) for place in places) else len(places)
        case _, (cst.Tuple(elements=places) | cst.List(elements=places)):
            return len(places)
    return 0


def _rows(update: cst.Call, starts: cst.BaseExpression, source: Source) -> str | None:
    """What writes whole rows to their numbers, where a window is free along one of several axes alone."""
    if isinstance(starts, cst.Name) and (value := source.value(starts)) is not None:
        starts = value
    places = [e.value for e in starts.elements] if isinstance(starts, cst.Tuple | cst.List) else []
    free = [axis for axis, place in enumerate(places) if not _is_zero(place)]
    if len(places) < 2 or len(free) != 1:
        return None
    array, piece = argument(update, 0, "operand"), argument(update, 1, "update")
    x, rows = (
        brief(source.code(a), _LONG, name) if a is not None else name for a, name in ((array, "x"), (piece, "rows"))
    )
    jnp, (axis,) = source.jnp, free
    numbers = f"{brief(source.code(places[axis]), _LONG, 'start')} + {jnp}.arange({rows}.shape[{axis}])"
    return f"{x}.at[{':, ' * axis}{numbers}].set({rows}), as far as {rows} is as wide as {x}; {_FITS}"


def _line(update: cst.Call, starts: cst.BaseExpression, source: Source) -> str | None:
    """What writes one row or column, `row[None]` or `jnp.expand_dims(column, -1)`, of a matrix to its number."""
    array, piece = argument(update, 0, "operand"), argument(update, 1, "update")
    axis, line = _laid_out(piece, source) if piece is not None else (None, None)
    if axis is None or line is None or array is None:
        return None
    written = listed(source.meant(starts))
    if written is not None and len(written) != _MATRIX:
        return None
    x = brief(source.code(array), _LONG, "x")
    row = brief(source.code(line), _LONG, "row")
    start = source.code(written[axis]) if written is not None else f"{source.code(starts)}[{axis}]"
    place = brief(start, _LONG, "start")
    return f"{x}.at[{':, ' * axis}{place}].set({row}), as far as {row} is as long as {x} along its other axis; {_FITS}"


def _laid_out(piece: cst.BaseExpression, source: Source) -> tuple[int, cst.BaseExpression] | tuple[None, None]:
    """The axis along which a piece of a matrix is one wide, and what lies along the other; nothing of other pieces."""
    match piece:
        case cst.Call() if source.calls(piece, "jax.numpy.expand_dims"):
            line, along = argument(piece, 0, "a"), argument(piece, 1, "axis")
            axis = constant(along) if along is not None else None
            if line is not None and axis in (0, 1, -1):
                return axis % _MATRIX, line
        case cst.Subscript(value=line, slice=slices):
            parts = elements(slices)
            new = [axis for axis, part in enumerate(parts) if is_new_axis(part)]
            if len(new) == 1 and all(map(takes_all, parts)) and len(parts) <= _MATRIX:
                return new[0], line
    return None, None


def _is_zero(place: cst.BaseExpression) -> bool:
    return isinstance(place, cst.Integer) and place.evaluated_value == 0


def _is_looped_over(node: cst.Call, name: str, starts: cst.BaseExpression, source: Source) -> bool:
    """Whether XLA makes a loop of it: of a window that is free along one of several axes it does only for writes, and
    where it is cut out of the one matrix that all elements share."""
    if isinstance(starts, cst.Name) and isinstance(value := source.value(starts), cst.Tuple | cst.List):
        starts = value
    if not isinstance(starts, cst.Tuple | cst.List):
        return differs(starts, source)
    places = [i for i, e in enumerate(starts.elements) if not is_literal(e.value)]
    if not any(differs(starts.elements[i].value, source) for i in places):
        return False
    sizes = argument(node, 2, "slice_sizes")
    if name == _UPDATE or len(starts.elements) == 1:
        return name == _UPDATE or not _is_one(sizes, [0])
    wide = [i for i in places if not _is_one(sizes, [i])]
    if len(wide) == 1 and (len(starts.elements) > _MATRIX or not _is_of_a_shared(node, source)):
        return False  # nor is a row or a column of each board, as measured
    return bool(wide)


def _is_of_a_shared(node: cst.Call, source: Source) -> bool:
    array = argument(node, 0, "operand")
    return array is not None and is_shared(array, source)


def _is_one(sizes: cst.BaseExpression | None, places: list[int]) -> bool:
    """Whether the window is one element wide wherever it is free."""
    match sizes:
        case cst.Tuple(elements=each) | cst.List(elements=each):
            return all(i < len(each) and isinstance(e := each[i].value, cst.Integer) and e.value == "1" for i in places)
    return False
