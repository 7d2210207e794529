"""A list of what is done with each row, as one `jax.vmap`: `jnp.stack([f(x[i]) for i in range(n)])`.

In: a join of a comprehension in a Source. Out: the call that maps, and its edits; None where a turn's number is read
otherwise than for rows of arrays, or where what is called may be something else than a function of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import (
    Part,
    constant,
    elements,
    holds,
    indexed_by,
    inside,
    is_whole,
    names_in,
    names_read,
    number_in,
)
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.code.imports import vmap_of_jax
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.loops.collected import Comprehension, is_few
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source

_STACK = "jax.numpy.stack"
_ARRAYS = ("jax.numpy.array", "jax.numpy.asarray")
# What an only row is called, `x[i]`, and an only column, `x[:, i]`.
_ROW, _COLUMN = "row", "column"


class Mapped(NamedTuple):
    """`jax.vmap(f)(x)`, and the edits that write it."""

    text: str
    edits: tuple[Edit, ...]


class _Row(NamedTuple):
    """Rows that are read alike: of which array, by which index, and where the number stands in that."""

    read: cst.Subscript
    parts: tuple[Part, ...]
    place: int

    @property
    def axis(self) -> int:
        is_from_behind = any(isinstance(part, cst.Ellipsis) for part in self.parts[: self.place])
        return self.place - len(self.parts) if is_from_behind else self.place

    def up_to(self, count: str, source: Source) -> str:
        """The rows that are read: `x[:, :n]`."""
        parts = [f":{count}" if i == self.place else source.code(part) for i, part in enumerate(self.parts)]
        while parts[-1] in (":", "...") and self.axis >= 0:
            parts.pop()
        return f"{source.code(self.read.value)}[{', '.join(parts)}]"


def mapped(join: cst.Call, loop: Comprehension, source: Source, size: str | None = None) -> Mapped | None:
    """The call that maps in place of `join` of the comprehension `loop`; `size` is the array whose own rows are
    counted, if one's are, which is read whole.

    Not safe: what is mapped may be rounded, or reduced in an order, otherwise.
    """
    axis, count = _joined_along(join, source), _count(loop, source)
    vmap = vmap_of_jax(join, source)
    rows = _rows(loop, source)
    if axis is None or count is None or vmap is None or not rows or source.has_comment(join):
        return None
    if not all(is_mappable(call, source) for call in inside(loop.elt, cst.Call)):
        return None
    if holds(loop.elt, cst.NamedExpr, cst.Await):
        return None
    alike = {_pattern(row, source): row for row in rows}
    names = _names(alike, loop, source)
    if names is None:
        return None
    texts = {row.read: names[_pattern(row, source)] for row in rows}
    function = _function(loop, texts, list(names.values()), source)
    axes = [row.axis for row in alike.values()]
    given = "" if not any(axes) else f", {axes[0] if len(set(axes)) == 1 else tuple(axes)}"
    out = "" if axis == 0 else f", out_axes={axis}"
    whole = [
        source.code(row.read.value)
        if size is not None and source.code(row.read.value) == size
        else row.up_to(count, source)
        for row in alike.values()
    ]
    called = Called(f"{vmap.name}({function}{given}{out})", whole)
    return Mapped(str(called), (*vmap.edits, in_place_of(join, called, source)))


def _joined_along(join: cst.Call, source: Source) -> int | None:
    """The axis that a join makes; None where it says more than that."""
    if source.calls(join, _STACK) and has_only(join, 2, "axis"):
        axis = argument(join, 1, "axis")
        return 0 if axis is None else constant(axis)
    return 0 if source.calls(join, *_ARRAYS) and has_only(join, 1) else None


def _count(loop: Comprehension, source: Source) -> str | None:
    """n, of `for i in range(n)`."""
    over = loop.for_in
    if over.ifs or over.inner_for_in is not None or not isinstance(over.target, cst.Name) or is_few(over.iter, source):
        return None
    match over.iter:
        case cst.Call(args=[cst.Arg(value=bound, keyword=None, star="")]) if source.calls(over.iter, "range"):
            # What may stand behind a colon as it is.
            plain = cst.Name | cst.Attribute | cst.Subscript | cst.Integer | cst.BinaryOperation
            return source.code(bound) if isinstance(bound, plain) and "\n" not in source.code(bound) else None
    return None


def _rows(loop: Comprehension, source: Source) -> list[_Row]:
    """The rows that a turn reads; none where its number is read otherwise."""
    target = loop.for_in.target
    counter = target.value if isinstance(target, cst.Name) else ""
    numbers = [name for name in names_in(loop.elt) if name.value == counter]
    rows = [_row(name, source) for name in numbers]
    return [row for row in rows if row is not None] if None not in rows else []


def _row(number: cst.Name, source: Source) -> _Row | None:
    read = indexed_by(number, source)
    if read is None:
        return None
    parts = elements(read.slice)
    if not all(part is number or is_whole(part) for part in parts) or sum(part is number for part in parts) != 1:
        return None
    if any(name.value == number.value for name in names_in(read.value)) or not _is_an_array(read, parts, source):
        return None
    return _Row(read, parts, number_in(parts, number))


def _is_an_array(read: cst.Subscript, index: tuple[Part, ...], source: Source) -> bool:
    """What nobody indexes so is a list or a dict."""
    found = kind(read.value, source)
    return found == "array" or (found is None and len(index) > 1)


def _pattern(row: _Row, source: Source) -> str:
    return source.code(row.read)


def called_as(place: int, index: Sequence[Part]) -> str:
    """What a function of one row, whose number stands at `place` of an index, calls it."""
    return _COLUMN if (place, len(index)) == (1, 2) else _ROW


def _names(alike: dict[str, _Row], loop: Comprehension, source: Source) -> dict[str, str] | None:
    """What the function that is mapped calls each of the rows: `row`, or `x_i` and `y_i`; None where one is taken."""
    taken = {name.value for name in names_in(loop.elt)}
    if len(alike) == 1:
        (row,) = alike.values()
        called = called_as(row.place, row.parts)
        return dict.fromkeys(alike, called) if called not in taken else None
    found = {text: f"{source.code(row.read.value)}_{source.code(row.parts[row.place])}" for text, row in alike.items()}
    is_free = taken.isdisjoint(found.values()) and len(set(found.values())) == len(found)
    return found if is_free and all(name.isidentifier() for name in found.values()) else None


def _function(loop: Comprehension, texts: dict[cst.Subscript, str], names: list[str], source: Source) -> str:
    """The function that is mapped: that which is called, where it is called with the rows in order and with no more."""
    match loop.elt:
        case cst.Call(func=cst.Name() as func, args=args) if all(
            isinstance(arg.value, cst.Subscript) and arg.keyword is None and not arg.star and arg.value in texts
            for arg in args
        ):
            if [texts[arg.value] for arg in args if isinstance(arg.value, cst.Subscript)] == names:
                return func.value
    return f"lambda {', '.join(names)}: {rewritten(loop.elt, texts, source)}"


def is_mappable(call: cst.Call, source: Source) -> bool:
    """Whether a call is one of jax, of an array's method, or of a function that this file defines by a def: not of a
    module of a network, whose state a map would take for an array of the batch."""
    name = source.qualified_name(call.func) or ""
    if name.startswith(("jax.numpy.", "jax.lax.", "jax.nn.", "jax.scipy.")):
        return True
    match call.func:
        case cst.Attribute(value=owner):
            return kind(owner, source) == "array"
        case cst.Name() as function:
            defined = function_named(function, source)
            return defined is not None and not any(_is_its_own_object(each) for each in names_read(defined.body))
    return False


def _is_its_own_object(name: cst.Name) -> bool:
    return name.value == "self"
