"""A window that `lax.dynamic_slice` cuts out, as an index of integer arrays: one gather.

In: a call of it. Out: what to write instead, and the lines before it that this takes; None where nobody sees how many
axes there are, where the window moves along more than two that follow one another, or where the array may be numpy's,
which takes no traced index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import listed
from fusionlint.patterns.code.before import free_name, lines_before
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.layout import Called, Part, named_as
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_zero
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_PARAMETERS = ("operand", "start_indices", "slice_sizes")
# Integer arrays along more axes than these take more than a reader sees through.
_MOST = 2
_NAMES = ("rows", "columns")


class Window(NamedTuple):
    """The index to write, and the lines that stand before it, with their edits."""

    cut: Called
    lines: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def __str__(self) -> str:
        return "; ".join((*self.lines, str(self.cut)))


class _Axis(NamedTuple):
    """Where a window begins along an axis, None where it lies still at the first place, and how wide it is."""

    start: str | None
    size: str
    operand: str  # the size, as it can stand beside an operator


def gathered(call: cst.Call, source: Source) -> Window | None:
    """`x[jnp.clip(start, 0, x.shape[0] - n) + jnp.arange(n)]` for `lax.dynamic_slice(x, (start,), (n,))`, which shifts
    a window back inside just so."""
    array, starts, sizes = (argument(call, place, name) for place, name in enumerate(_PARAMETERS))
    if array is None or starts is None or sizes is None or source.has_comment(call):
        return None
    if not has_only(call, len(_PARAMETERS), *_PARAMETERS) or not _is_of_jax(array, source):
        return None
    count = _count(starts, source) or _count(sizes, source)
    if not all(_is_as_long(each, count) for each in (starts, sizes)):
        return None
    axes = [_along(axis, starts, sizes, source) for axis in range(count)]
    moving = [place for place, axis in enumerate(axes) if axis.start is not None]
    if not 0 < len(moving) <= _MOST or moving[-1] - moving[0] >= len(moving):
        return None
    if any(axes[place].size == "1" for place in moving):
        return None  # an index of one number, and an axis that comes back behind it
    x, jnp = source.code(array), named("jax.numpy", call, source)
    places = {place: _places(axes[place], place, x, jnp) for place in moving}
    return _by_name(call, x, axes, places, source) or Window(Called(x, _index(x, axes, places), "[]"))


def _by_name(
    call: cst.Call, array: str, axes: Sequence[_Axis], places: Mapping[int, Called], source: Source
) -> Window | None:
    """`x[rows[:, None], columns]`, and the lines that make both; None where no line can stand before."""
    statement = source.statement(call)
    if len(places) < len(_NAMES) or statement is None:
        return None
    names = dict(zip(places, (free_name(name, call, source) for name in _NAMES), strict=True))
    lines = [named_as(names[place], places[place], statement, source) for place in places]
    before = lines_before(call, lines, source)
    called = Called(array, _index(array, axes, names), "[]")
    return Window(called, tuple(lines), (before,)) if before is not None else None


def _is_of_jax(array: cst.BaseExpression, source: Source) -> bool:
    """Whether a name stands for an array of jax: what is not seen is one where the mapped function itself is handed it,
    or writes it."""
    if not isinstance(array, cst.Name | cst.Attribute):
        return False
    found = kind(array, source)
    written = source.written(array) if isinstance(array, cst.Name) else None
    is_own = written is not None and source.scope(written) == source.scope(array)
    return found == "array" or (found is None and (is_own or _is_a_field(array)))


def _is_a_field(array: cst.BaseExpression) -> bool:
    """`state.map`, of what a function is handed; an object's own, `self.map`, may be numpy's."""
    return isinstance(array, cst.Attribute) and dotted(array).partition(".")[0] not in ("", "self", "cls")


def _count(given: cst.BaseExpression, source: Source) -> int:
    """How many places or sizes there are, written out here or in another file; 0 where that is not seen."""
    written = listed(source.meant(given))
    if written is not None:
        return len(written)
    name = dotted(given)
    bound = source.project.value_by_star(source.place(given), name) if name else None
    return len(bound.value.arguments) if bound is not None and not bound.value.is_call else 0


def _is_as_long(given: cst.BaseExpression, count: int) -> bool:
    """Whether as many are written out, or a name stands for them."""
    written = listed(given)
    return len(written) == count if written is not None else isinstance(given, cst.Name | cst.Attribute)


def _along(axis: int, starts: cst.BaseExpression, sizes: cst.BaseExpression, source: Source) -> _Axis:
    """One axis of the window; a start of 0 that is written out is where it lies still."""
    start, size = (listed(given) for given in (starts, sizes))
    known = listed(source.meant(starts)) or []
    begins = f"{source.code(starts)}[{axis}]" if start is None else source.code(start[axis])
    wide = f"{source.code(sizes)}[{axis}]" if size is None else source.code(size[axis])
    is_sum = size is not None and isinstance(size[axis], cst.BinaryOperation) and not _binds(size[axis])
    return _Axis(
        None if axis < len(known) and is_zero(known[axis], source) else begins, wide, f"({wide})" if is_sum else wide
    )


def _binds(node: cst.BaseExpression) -> bool:
    """Whether it is a product, which needs no brackets behind a minus."""
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply | cst.FloorDivide)


def _places(axis: _Axis, place: int, array: str, jnp: str) -> Called:
    parts = [axis.start or "0", "0", f"{array}.shape[{place}] - {axis.operand}"]
    return Called(f"{jnp}.clip", parts, behind=f" + {jnp}.arange({axis.size})")


def _index(array: str, axes: Sequence[_Axis], places: Mapping[int, Part]) -> list[Part]:
    """What stands between the brackets: behind the last axis along which anything is left out nothing."""
    index: list[Part] = []
    for place, axis in enumerate(axes):
        if place not in places:
            index.append(":" if axis.size == f"{array}.shape[{place}]" else f":{axis.size}")
            continue
        along = places[place]
        column = "[:, None]" if place < max(places) else ""
        index.append(f"{along}{column}" if isinstance(along, str) else along._replace(behind=f"{along.behind}{column}"))
    while index[-1] == ":":
        index.pop()
    return index
