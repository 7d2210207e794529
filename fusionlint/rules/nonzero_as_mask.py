"""The indices of a mask's hits, `jnp.nonzero(m, size=k)`, or the set of an array's values, `jnp.unique(x, size=k)`, for
what the mask itself says: its first hit, or none, a sum over the hits, all rows but one, how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, elements, is_literal, is_none
from fusionlint.patterns.code.calls import argument, as_operand, beside, has_only
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.compiled.behind import is_number
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.scattered import scatters_at
from fusionlint.patterns.operations.first_hit import FirstHit, first_hit, has_more_axes, may_have_more_axes
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.known_values import DEPTH, Reader
from fusionlint.patterns.values.masks import is_mask
from fusionlint.rule import Rule
from fusionlint.source.facts import Call
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# How many subscripts of 0 lead to the first hit.
_TO_FIRST = {"jax.numpy.nonzero": 2, "jax.numpy.where": 2, "jax.numpy.flatnonzero": 1, "jax.numpy.argwhere": 1}
# How many lead to one number, of the places on all axes.
_TO_NUMBER = 2
# How many lead to an array that can index.
_TO_INDEX = {"jax.numpy.nonzero": (0, 1), "jax.numpy.where": (0, 1), "jax.numpy.flatnonzero": (0,)}
_FIRST = "all hits of a mask are looked for, and only the first is read"
# What makes numbers of a mask, of which `argmax` would find the largest.
_NUMBERS = tuple(
    f"jax.numpy.{name}" for name in ("where", "cumsum", "cumulative_sum", "arange", "diff", "abs", "select")
)
_REDUCTIONS = ("sum", "mean", "max", "min", "any", "all", "prod", "count_nonzero")


def _is_sized(call: Call) -> bool:
    return any(keyword == "size" for keyword, _ in call.value.keywords)


@rule.source("Call", calls=tuple(_TO_FIRST), like=_is_sized)
def hits(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Indices of a fixed size of which the first alone is read, or which only pick what is then summed up."""
    name = source.qualified_name(node.func) or ""
    size = argument(node, 99, "size")
    mask = argument(node, 0, "condition") or argument(node, 0, "a")
    if name not in _TO_FIRST or size is None or mask is None:
        return
    if not has_only(node, 1, "condition", "a", "size", "fill_value") or is_concrete(node, source):
        return
    if Reader(source, frozenset()).is_array(mask, DEPTH):
        return  # XLA folds it
    read = [(outer, depth) for outer, depth in _reads(node, source)]
    if read and all(_is_printed(outer, source) for outer, _ in read):
        return
    fill = argument(node, 99, "fill_value")
    fill = None if fill is not None and is_none(fill) else fill  # its default
    if constant(size) == 1 or (read and all(depth >= _TO_FIRST[name] for _, depth in read)):
        is_whole = any(depth < _TO_NUMBER for _, depth in read) or may_have_more_axes(mask, source)
        if fill is None or constant(fill) == 0:
            write = _first_hit(node, name, _truth(mask, source), is_whole=is_whole, source=source)
            fix = _apart(node, write, source) or first_hit(node, mask, None, source)
            yield source.finding(node, _FIRST, write=fix.text if fix else write, edits=fix.edits if fix else ())
        elif is_literal(fill) or _is_a_length(fill, source) or is_called_constant(dotted(fill).rpartition(".")[2]):
            fix = first_hit(node, mask, fill, source)
            is_row = is_whole and name.endswith(".argwhere")
            write = fix.text if fix else _first_or(node, name, mask, fill, source, is_row=is_row)
            yield source.finding(node, _FIRST, write=write, edits=fix.edits if fix else (), pair=2)
    elif fill is None and _drops_one(mask, size):
        numpy = source.alias("jax.numpy") or "jax.numpy"
        yield source.finding(
            node,
            "all rows but one are looked for by a mask",
            write=f"i = {numpy}.arange({source.code(size)}); i + (i >= row), where `row` is the one left out",
        )
    elif read and all(depth in _TO_INDEX.get(name, ()) and _is_reduced(outer, source) for outer, depth in read):
        where = beside(node.func, "where", source) or "jnp.where"
        yield source.finding(
            node,
            "the hits of a mask are looked for and gathered, only to be reduced",
            write=f"{where}({source.code(mask)}, x, 0).sum(), with the mask itself",
        )
    elif read and all(depth == _TO_FIRST[name] - 1 and _is_an_end(outer, source) for outer, depth in read):
        where, arange = (beside(node.func, other, source) or f"jnp.{other}" for other in ("where", "arange"))
        yield source.finding(
            node,
            "all hits of a mask are looked for, and only the first or last is read",
            write=f"{where}({source.code(mask)}, {arange}(n), fill).min(), or .max(), with the mask itself",
        )


def _is_a_length(fill: cst.BaseExpression, source: Source) -> bool:
    """`len(x)`, `x.shape[0]`, `x.size`: one behind the last place."""
    match fill:
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape")), slice=[part]):
            return isinstance(part.slice, cst.Index)
        case cst.Attribute(attr=cst.Name("size")):
            return True
    return source.calls(fill, "len")


def _truth(mask: cst.BaseExpression, source: Source) -> str:
    """The text of a mask; of what is seen to be numbers, whether each is another than 0: `argmax` finds the largest."""
    match source.meant(mask):
        case cst.Call() as made if source.calls(made, *_NUMBERS):
            return f"{as_operand(mask, source.code(mask))} != 0"
    return source.code(mask)


def _first_hit(node: cst.Call, name: str, mask: str, source: Source, *, is_whole: bool) -> str:
    """`argmax` counts through all axes, as only `flatnonzero` does; what is read whole has a place on each of them."""
    argmax, places = (beside(node.func, other, source) or f"jnp.{other}" for other in ("argmax", "unravel_index"))
    first = f"{argmax}({mask})"
    if name.endswith(".flatnonzero"):
        return first
    more = f"{places}({first}, {mask}.shape)" if mask.isidentifier() else f"{places} of it, with the mask's shape,"
    if taken := _taken_from_each(node, source):
        return f"{', '.join(taken)} = {more.rstrip(',')}"
    return f"{first}, of a mask with one axis" + (f"; {more} where it has more" if is_whole else "")


def _apart(node: cst.Call, write: str, source: Source) -> FirstHit | None:
    """`r, l = jnp.unravel_index(...)` for `(r,), (l,) = jnp.where(m, size=1)`."""
    statement = source.parent(node)
    names, _, text = write.partition(" = ")
    if not isinstance(statement, cst.Assign) or not _taken_from_each(node, source) or source.has_comment(statement):
        return None
    mask = argument(node, 0, "condition") or argument(node, 0, "a")
    if not isinstance(mask, cst.Name) or not is_mask(mask, source):
        return None
    return FirstHit(write, (source.replace(statement.targets[0].target, names), source.replace(node, text)))


def _taken_from_each(node: cst.Call, source: Source) -> list[str]:
    """r and l of `(r,), (l,) = jnp.where(m, size=1)`: a place on each of as many axes, out of arrays of one."""
    match source.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=axes))]) if len(axes) > 1:
            places = [axis.value.elements for axis in axes if isinstance(axis.value, cst.Tuple | cst.List)]
            if len(places) == len(axes) and all(len(place) == 1 for place in places):
                return [source.code(place[0].value) for place in places]
    return []


def _first_or(
    node: cst.Call, name: str, mask: cst.BaseExpression, fill: cst.BaseExpression, source: Source, *, is_row: bool
) -> str:
    """The first hit, or `fill` where there is none, in an array of one where it is read in such: of a mask that is seen
    to have rows the first row with a hit; a row of places has one on each of the mask's axes."""
    where, argmax = (beside(node.func, other, source) or f"jnp.{other}" for other in ("where", "argmax"))
    places = beside(node.func, "unravel_index", source) or "jnp.unravel_index"
    text = _truth(mask, source)
    is_named = isinstance(mask, cst.Name) and text == mask.value
    shown = text if is_named else "m"
    is_flat = name.endswith(".flatnonzero")
    has_rows = not is_flat and has_more_axes(mask, source)
    axes = "" if is_flat else " with two axes" if has_rows else " with one axis"
    said = f", of a mask{axes}" if is_named and axes else "" if is_named else f", where m is the mask,{axes}"
    row = f"{shown}.any(axis=-1)" if has_rows else shown
    is_array = _subscripted(node, source)[1] == _TO_FIRST[name] - 1 and not name.endswith(".argwhere")
    kept = "[None]" if is_array else ""
    more = (
        f"; of one with more, each part of {places}({argmax}({shown}), {shown}.shape)"
        if is_row and not has_rows
        else ""
    )
    return f"{where}({shown}.any(), {argmax}({row}), {source.code(fill)}){kept}{said}".rstrip(",") + more


@rule.source("Call", calls=("jax.numpy.unique",), like=_is_sized)
def counted_values(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The distinct values are only compared, and the answers counted: a sort for a count."""
    if not source.calls(node, "jax.numpy.unique") or not has_only(node, 1, "ar", "size", "fill_value"):
        return
    if argument(node, 99, "size") is None:
        return
    read = [outer for outer, depth in _reads(node, source) if depth == 0]
    if not read or not all(_is_counted(outer, source) for outer in read):
        return
    yield source.finding(
        node,
        "all values are sorted to make a set of them, only to count it",
        write="(x[:, None] == jnp.arange(n)).any(0), the values that are there, where these are small integers",
        pair=1,
    )


@rule.barrier
def counted_for_the_first(barrier: Barrier, module: hlo.Module) -> str | None:
    """What jax.numpy.nonzero scatters to find one place: it clips running sums of the mask, and counts them."""
    for scatter in scatters_at(barrier, module):
        step, shape = scatter.step, scatter.step.shape
        if shape.dtype != "s32" or shape.dims[-1:] != (1,) or not step.op_name.endswith("/scatter-add"):
            continue
        clips = (one for one in module.every("maximum") if one.stack == step.stack)
        is_clipped = any(is_of_call(one, ("clip",)) for one in clips)
        if is_clipped and all(is_number(scatter.operand(number, module), module) for number in (0, 2)):
            return "jnp.argmax of the mask: the place of the first hit, 0 where there is none"
    return None


def _is_printed(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is only shown: that is for whoever looks, and seldom runs."""
    return any(source.calls(above, "jax.debug.print") for above in source.ancestors(node))


def _drops_one(mask: cst.BaseExpression, size: cst.BaseExpression) -> bool:
    """Whether the mask is `a != b`, and as many hits as there are rows but one are asked for."""
    match mask, size:
        case (
            cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotEqual())]),
            cst.BinaryOperation(operator=cst.Subtract(), right=cst.Integer("1")),
        ):
            return True
    return False


def _reads(call: cst.Call, source: Source) -> list[tuple[cst.CSTNode, int]]:
    """Every read of what `call` returns, with the subscripts of 0 around it and how many these are."""
    name = source.assigned_name(call)
    if name is not None:
        return [_subscripted(read, source) for read in source.reads(name)]
    outer, depth = _subscripted(call, source)
    named = source.assigned_name(outer)
    if named is None:
        return [(outer, depth)]
    more = (_subscripted(read, source) for read in source.reads(named))
    return [(read, depth + further) for read, further in more]


def _subscripted(node: cst.CSTNode, source: Source) -> tuple[cst.CSTNode, int]:
    depth = 0
    while (above := source.parent(node)) and isinstance(above, cst.Subscript) and above.value is node:
        parts = elements(above.slice)
        if any(isinstance(part, cst.BaseSlice) or constant(part) != 0 for part in parts[:1]):
            break
        node, depth = above, depth + 1
    return node, depth


def _is_reduced(index: cst.CSTNode, source: Source) -> bool:
    """Whether `index` stands in `x[index]`, and that is reduced at once."""
    match source.parent(index):
        case cst.Index() as inner:
            subscript = source.parent(source.parent(inner) or inner)
            return isinstance(subscript, cst.Subscript) and _goes_into_reduction(subscript, source)
    return False


def _is_an_end(index: cst.CSTNode, source: Source) -> bool:
    """Whether the least or greatest of the places is taken, `jnp.min(i)`, what fills them up replaced or not."""
    filled = source.parent(source.parent(index) or index)
    if source.calls(filled, "jax.numpy.nan_to_num"):
        index = filled
    return _goes_into_reduction(index, source, ("min", "max"))


def _is_counted(values: cst.CSTNode, source: Source) -> bool:
    """Whether the read is `jnp.sum(values >= 0)` or `(values != -1).sum()`."""
    comparison = source.parent(values)
    return isinstance(comparison, cst.Comparison) and _goes_into_reduction(comparison, source, ("sum", "count_nonzero"))


def _goes_into_reduction(node: cst.CSTNode, source: Source, names: tuple[str, ...] = _REDUCTIONS) -> bool:
    match source.parent(node):
        case cst.Arg() as arg:
            return source.calls(source.parent(arg) or arg, *(f"jax.numpy.{name}" for name in names))
        case cst.Attribute(attr=cst.Name(value=method)) as attribute if method in names:
            return isinstance(source.parent(attribute), cst.Call)
    return False
