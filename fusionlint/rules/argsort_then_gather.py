"""A sorted array gathered by its own order, `order = jnp.argsort(x)`, `x[order]`, or sorted once more, `jnp.sort(x)`:
the sort has it at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, brief
from fusionlint.patterns.code.same import is_unchanged_between
from fusionlint.patterns.compiled.readers import gathers_all, is_order_alone
from fusionlint.patterns.operations.picked import Pick, picks
from fusionlint.patterns.operations.sort import Sorted, is_beside_a_decomposition, is_of_eigenvalues, sorted_call
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import is_for_a_picture
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_ORDER = "jax.numpy.argsort"
_LONG = 40
_SORT = "jax.numpy.sort"
# The measured pairs of the page: arrays of one shape, those of a falling order, rows sorted twice, and one row.
_ALONE, _FALLING, _ROWS, _ROW = range(4)
_GATHERED = "the sort has `{}` in order at hand, and a gather puts it in order once more"


@rule.source("Call", calls=(_ORDER,))
def gathered_by_its_own_order(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`x[order]`, or `jnp.take_along_axis(x, order, axis)`, of an order of `x` itself or of `-x`."""
    sort = sorted_call(node, source) if source.calls(node, _ORDER) and source.is_traced(node) else None
    if sort is None or not isinstance(sort.axis, int):
        return
    if _is_nothing(node, sort, source):
        return
    given = argument(node, 1, "axis")
    shown = brief(source.code(sort.array), _LONG, "the array")
    every = [*picks(node, sort.axis if given is not None else None, source, default=-1)]
    own = [pick for pick in every if is_unchanged_between(sort.array, pick.array, source)]
    if own and not any(_is_cut(pick, source) for pick in own):
        readers = len(source.readers(node))
        if not sort.descending and sum(not _is_a_write(pick.array) for pick in every) < readers:
            return  # something else reads the order too: x comes with it, and that saves a GPU no kernel
        is_alone = len(own) == readers
        write = _instead(node, sort, source, is_alone=is_alone)
        pair = _FALLING if sort.descending and not is_alone else _ALONE
        yield source.finding(own[0].node, _GATHERED.format(shown), write=write, pair=pair)


@rule.source("Call", calls=(_SORT,))
def sorted_for_its_order_too(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The same array is sorted for its order as well: one sort carries the places along. XLA makes one of the two for a
    TPU alone."""
    sort = sorted_call(node, source) if source.calls(node, _SORT) and source.is_traced(node) else None
    function = source.function(node)
    if sort is None or function is None or not isinstance(sort.axis, int) or _is_nothing(node, sort, source):
        return
    calls = (part for part in inside(function.body) if isinstance(part, cst.Call) and source.calls(part, _ORDER))
    orders = (sorted_call(call, source) for call in calls if source.function(call) is function)
    if not any(order is not None and _is_of_the_same(sort, order, source) for order in orders):
        return
    x, axis = brief(as_argument(sort.array, source), _LONG, "x"), argument(node, 1, "axis")
    along = f", dimension={source.code(axis)}" if axis is not None else ""
    yield source.finding(
        node,
        f"`{brief(source.code(sort.array), _LONG, 'the array')}` is sorted twice, here and for its order",
        write=f"values, order = {source.alias('jax') or 'jax'}.lax.sort_key_val({x}, places{along}), where places, "
        f"{source.alias('jax.numpy') or 'jnp'}.arange along that axis, have the shape of {x}",
        pair=_ROWS if under_vmap(node, source) or axis is not None else _ROW,
    )


@rule.barrier
def gathered_in_that_order(barrier: Barrier, module: hlo.Module) -> str | None:
    """The order that a sort has found, by which all of an array of the same shape is gathered."""
    if not is_order_alone(barrier, module) or not gathers_all(barrier, module):
        return None
    return "lax.sort((keys, values), num_keys=1): what has the shape of the keys is sorted along, without a gather"


def _is_of_the_same(sort: Sorted, order: Sorted, source: Source) -> bool:
    first, second = sorted((sort.array, order.array), key=source.order)
    is_same = (sort.axis, sort.descending) == (order.axis, order.descending)
    return is_same and is_unchanged_between(first, second, source) and not source.apart(first, second)


def _is_nothing(node: cst.Call, sort: Sorted, source: Source) -> bool:
    """Whether a sort more is nothing beside what is done there, or runs once, on the host or for a picture."""
    if is_beside_a_decomposition(node, source) or is_of_eigenvalues(sort.array, source) or is_concrete(node, source):
        return True
    return is_for_a_picture(source.project, source.place(node))


def _is_a_write(array: cst.BaseExpression) -> bool:
    """Whether this is `x.at`, which is written to at the places."""
    return isinstance(array, cst.Attribute) and array.attr.value == "at"


def _is_cut(pick: Pick, source: Source) -> bool:
    """Whether only some of what is gathered are read, `x[order][:k]`: of that argsort-prefix speaks."""
    reads = [source.parent(read) for read in source.readers(pick.node)]
    return bool(reads) and all(isinstance(read, cst.Subscript) for read in reads)


def _instead(node: cst.Call, sort: Sorted, source: Source, *, is_alone: bool) -> str:
    """`jnp.sort(x)` where nothing else is put in this order, else a sort of all that is."""
    jnp, jax = source.alias("jax.numpy") or "jnp", source.alias("jax") or "jax"
    array, axis = sort.array, argument(node, 1, "axis")
    if is_alone:
        along = f", axis={source.code(axis)}" if axis is not None else ""
        falls = ", descending=True" if sort.descending else ""
        return f"{jnp}.sort({brief(as_argument(array, source), _LONG, 'x')}{along}{falls})"
    x = brief(source.code(array), _LONG, "x")
    along = f", dimension={source.code(axis)}" if axis is not None else ""
    key, rest = (f"-{as_operand(array, x)}, {x}", "[1:]") if sort.descending else (x, "")
    return (
        f"{jax}.lax.sort(({key}, y){along}, num_keys=1){rest}, where y is what else is put in this order and has the "
        f"same shape; for the order itself an {jnp}.arange"
    )
