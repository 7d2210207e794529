"""An array gathered through its own order: `order = jnp.argsort(x)`, then `x[order]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.at import constant, inside, is_none, names_read
from fusionlint.patterns.calls import argument, beside, brief, has_only
from fusionlint.patterns.concrete import is_concrete
from fusionlint.patterns.unpacked import unpacked
from fusionlint.patterns.values import kind
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARGSORT = "jax.numpy.argsort"
_ALONG, _TAKE = "jax.numpy.take_along_axis", "jax.numpy.take"
# Next to what factorizes a matrix nothing counts that is done to its values.
_FACTORIZES = regex(r"\.linalg\.\w+$")
# What is written out, of so few that nothing counts.
_LISTS = ("jax.numpy.array", "jax.numpy.asarray", "jax.numpy.stack")
_LONG = 40
# A name seldom stands for more names than this.
_DEPTH = 3


@rule.source("Call", calls=(_ARGSORT,))
def read_in_its_own_order(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All of what gave the order is gathered by it, whatever else is."""
    array = argument(node, 0, "a")
    if array is None or not source.calls(node, _ARGSORT) or not has_only(node, 2, "a", "axis", "stable"):
        return
    # A gather counts where it is done again and again: what nobody is seen to trace may as well set something up.
    if source.context(node) != "traced" or not source.is_traced(node) or kind(array, source) == "numpy":
        return
    name = source.assigned_name(node)
    reads = source.reads(name) if name is not None else [node]
    whole = _unsigned(array)
    found = [gather for read in reads if (gather := _gather(read, whole, node, source)) is not None]
    if not found or _is_small(whole, source, _DEPTH) or is_concrete(node, source):
        return
    is_alone, has_rows = len(found) == len(reads), not isinstance(found[0], cst.Subscript)
    yield source.finding(
        node,
        f"`{brief(source.code(whole), _LONG)}` is gathered through its own order, in which the sort has had it already",
        write=_instead(node, array, whole, source, is_alone=is_alone, has_rows=has_rows),
    )


def _unsigned(array: cst.BaseExpression) -> cst.BaseExpression:
    match array:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return inner
    return array


def _instead(
    node: cst.Call,
    array: cst.BaseExpression,
    whole: cst.BaseExpression,
    source: Source,
    *,
    is_alone: bool,
    has_rows: bool,
) -> str:
    """The call that gives what is read; `array` is `whole`, or that negated."""
    code = source.code(whole)
    x = code if len(code) <= _LONG else "x"
    sign = "" if array is whole else "-"
    if is_alone:
        return f"`{sign}{beside(node.func, 'sort', source) or 'jnp.sort'}({sign}{x})`"
    jax, jnp = source.alias("jax") or "jax", source.alias("jax.numpy") or "jax.numpy"
    shape = f"{x}.shape" if isinstance(whole, cst.Name | cst.Attribute) and x == code else "shape"
    of_rows = f"{jax}.lax.broadcasted_iota(int, {shape}, len({shape}) - 1)"
    places = of_rows if has_rows else f"{jnp}.arange({shape}[0])"
    both = f"{sign}{x} sorted, to be negated again, and" if sign else "the sorted and"
    return f"`{jax}.lax.sort_key_val({sign}{x}, {places})`, which gives both, {both} the order"


def _gather(
    read: cst.CSTNode, whole: cst.BaseExpression, argsort: cst.Call, source: Source
) -> cst.BaseExpression | None:
    """`x[order]`, of which x has one axis, or `jnp.take_along_axis(x, order, axis=-1)`: where `read` is that order."""
    if source.function(read) is not source.function(argsort) or source.loop(read) is not source.loop(argsort):
        return None
    axis = argument(argsort, 1, "axis")
    place = None if axis is None or is_none(axis) else constant(axis)
    above = source.parent(read)
    match above:
        case cst.Index():
            part = source.parent(above)
            gather = source.parent(part) if part is not None else None
            if isinstance(gather, cst.Subscript) and len(gather.slice) == 1 and place in (None, -1, 0):
                return gather if _is_same(gather.value, whole, source) else None
        case cst.Arg():
            gather = source.parent(above)
            if isinstance(gather, cst.Call) and _takes(gather, read, whole, place, source):
                return gather
    return None


def _takes(call: cst.Call, order: cst.CSTNode, whole: cst.BaseExpression, place: int | None, source: Source) -> bool:
    array, indices, axis = argument(call, 0, "arr"), argument(call, 1, "indices"), argument(call, 2, "axis")
    if array is None or indices is not order or not source.calls(call, _ALONG, _TAKE):
        return False
    if source.calls(call, _ALONG) and (axis is None or constant(axis) != -1 or place not in (None, -1)):
        return False
    return _is_same(array, whole, source)


def _is_same(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether both are written alike, of names that nothing has been stored in between."""
    if source.code(one) != source.code(other):
        return False
    pairs = zip(names_read(one), names_read(other), strict=False)
    return all(source.written(a) is source.written(b) for a, b in pairs)


def _is_small(array: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether this came of a matrix that was factorized, or is written out element by element."""
    for node in inside(array):
        match node:
            case cst.Call(func=function):
                if _FACTORIZES.search(source.qualified_name(function) or "") or _is_written_out(node, source):
                    return True
            case cst.Name() if depth:
                value = source.value(node) or unpacked(source.written(node), source)
                if value is not None and _is_small(value, source, depth - 1):
                    return True
    return False


def _is_written_out(call: cst.Call, source: Source) -> bool:
    match call:
        case cst.Call(args=[cst.Arg(value=cst.List() | cst.Tuple()), *_]):
            return source.calls(call, *_LISTS)
    return False
