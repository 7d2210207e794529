"""A sorted array gathered by its own order, `order = jnp.argsort(x)`, `x[order]`, or sorted once more, `jnp.sort(x)`:
the sort has it at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import TO_JAX_ARRAY, elements, indexed_by, inside, is_literal, names_in
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, brief, has_only
from fusionlint.patterns.code.layout import Called, named_as
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.same import is_unchanged_between
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.compiled.readers import gathers_all, is_order_alone
from fusionlint.patterns.operations.picked import Pick, picks
from fusionlint.patterns.operations.sort import Sorted, is_beside_a_decomposition, is_of_eigenvalues, sorted_call
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.pictured import is_asked_for_by_pictures
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.values.factors import axes_of
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
    sort = sorted_call(node, source)
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
        once = _sorted_once(own[0].node, node, sort, source) if _is_plain(own, node, is_alone, source) else None
        yield source.finding(
            own[0].node,
            _GATHERED.format(shown),
            write=_instead(node, sort, source, is_alone=is_alone) if once is None else _once(once, sort, source),
            edits=once.edits if once else (),
            safe=once is not None and once.is_safe,
            pair=_FALLING if sort.descending and not is_alone else _ALONE,
        )


def _is_plain(own: list[Pick], order: cst.Call, is_alone: bool, source: Source) -> bool:
    """Whether x alone is gathered once, and other things as rows of theirs."""
    return (
        len(own) == 1
        and own[0].is_sure
        and not is_alone
        and isinstance(own[0].node, cst.Subscript)
        and _is_of_a_row(order, source)
    )


@rule.source("Call", calls=(_SORT,))
def sorted_for_its_order_too(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The same array is sorted for its order as well: one sort carries the places along. XLA makes one of the two for a
    TPU alone."""
    sort = sorted_call(node, source)
    function = source.function(node)
    if sort is None or function is None or not isinstance(sort.axis, int) or _is_nothing(node, sort, source):
        return
    calls = (part for part in inside(function.body, cst.Call) if source.calls(part, _ORDER))
    orders = ((call, sorted_call(call, source)) for call in calls if source.function(call) is function)
    same = [call for call, order in orders if order is not None and _is_of_the_same(sort, order, source)]
    if not same:
        return
    sorted_once = _sorted_once(node, same[0], sort, source) if len(same) == 1 else None
    axis = argument(node, 1, "axis")
    yield source.finding(
        node,
        f"`{brief(source.code(sort.array), _LONG, 'the array')}` is sorted twice, here and for its order",
        write=sorted_once.text if sorted_once else _both(node, sort, axis, source),
        edits=sorted_once.edits if sorted_once else (),
        safe=sorted_once is not None and sorted_once.is_safe,
        pair=_ROWS if under_vmap(node, source) or axis is not None else _ROW,
    )


def _both(node: cst.Call, sort: Sorted, axis: cst.BaseExpression | None, source: Source) -> str:
    """The sort that carries the places along; one that falls goes by what is turned round, for jax.lax only rises."""
    lax, x = named("jax.lax", node, source), brief(as_argument(sort.array, source), _LONG, "x")
    along = f", dimension={source.code(axis)}" if axis is not None else ""
    text = f"values, order = {lax}.sort_key_val({x}, places{along})"
    if sort.descending:
        turned = f"-{as_operand(sort.array, x)}"
        text = f"_, values, order = {lax}.sort(({turned}, {x}, places){along}, num_keys=1)"
    jnp = source.jnp
    return f"{text}, where places, {jnp}.arange along that axis, have the shape of {x}"


class _SortedOnce(NamedTuple):
    """What is written for both, and the edits that do it."""

    text: str
    edits: tuple[Edit, ...]
    is_safe: bool


def _sorted_once(node: cst.BaseExpression, order: cst.Call, sort: Sorted, source: Source) -> _SortedOnce | None:
    """`values, order = jax.lax.sort_key_val(x, places)` in a line before the first of the two, whose names it has where
    nothing else is in the way; the places count along the last axis, as both do. A sort of jax's that carries places
    along is what `argsort` is, and stable, too."""
    x = sort.array
    if not isinstance(x, cst.Name | cst.Attribute) or sort.axis != -1 or sort.descending:
        return None
    if any(source.has_comment(each) for each in (node, order)):
        return None
    if any(
        isinstance(call, cst.Call) and not has_only(call, 2, "a", "axis", "stable", "kind") for call in (node, order)
    ):
        return None
    first, later = sorted((node, order), key=source.order)
    lax, text, is_row = named("jax.lax", node, source), source.code(x), _is_of_a_row(order, source)
    made = [_name_for(each, first, wanted, source) for each, wanted in ((node, "values"), (order, "order"))]
    places = f"{lax}.broadcasted_iota(int, {text}.shape, {text}.ndim - 1)"
    if is_row:
        places = f"{named('jax.numpy', order, source)}.arange({text}.shape[0])"
    names, called = ", ".join(name for name, _ in made), Called(f"{lax}.sort_key_val", (text, places))
    line = named_as(names, called, source.statement(first) or first, source)
    statement = _of_its_own(first, source)
    before = source.replace(statement, line) if statement is not None else line_before(first, line, source)
    if before is None or line_before(later, "", source) is None or _block(first, source) is not _block(later, source):
        return None
    edits = (
        gone or source.replace(each, name)
        for (name, gone), each in zip(made, (node, order), strict=True)
        if each is not first or statement is None
    )
    return _SortedOnce(f"{names} = {called}", (before, *edits), not is_row or axes_of(x, source) == "vector")


def _name_for(
    made: cst.BaseExpression, first: cst.BaseExpression, wanted: str, source: Source
) -> tuple[str, Edit | None]:
    """What the result is called, and the edit that takes the line of its name away: a name that is neither read nor
    written between the first sort and its own line can be written there."""
    name, statement = source.assigned_name(made), _of_its_own(made, source)
    if made is first and statement is not None and name is not None:
        return name.value, None
    line = whole_line(statement, source) if statement is not None else None
    if name is not None and line is not None:
        start, end, own = source.order(first), source.order(name), {name, *inside(made)}
        in_the_way = [use for use in source.uses(name) if start < use.order < end and use.node not in own]
        if not in_the_way and (_of_its_own(first, source) is not None or not _reads(first, name, source)):
            return name.value, Edit(line, "")
    return free_name(wanted, made, source), None


def _of_its_own(made: cst.BaseExpression, source: Source) -> cst.Assign | None:
    """The statement that gives what is made a name, and does nothing else."""
    name = source.assigned_name(made)
    statement = assignment(name, source) if name is not None else None
    return statement if statement is not None and statement.value is made else None


def _is_of_a_row(order: cst.Call, source: Source) -> bool:
    """Whether the order is read as an index alone, `y[order]`: of rows at once nobody asks so."""
    reads = source.readers(order)
    return bool(reads) and all(_is_an_index(read, source) for read in reads)


def _is_an_index(read: cst.CSTNode, source: Source) -> bool:
    above = indexed_by(read, source)
    return above is not None and elements(above.slice)[0] is read


def _reads(first: cst.BaseExpression, name: cst.Name, source: Source) -> bool:
    """Whether the statement of the first sort reads or writes a variable, which would be another behind a new line."""
    statement = source.statement(first)
    own = source.assigned_name(first)
    return any(part.value == name.value and part is not own for part in names_in(statement or first))


def _block(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    return source.nearest(node, cst.IndentedBlock)


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
    place = source.place(node)
    if is_asked_for_by_pictures(source.project, place):
        return True
    return _is_a_list_by_default(sort.array, source)


def _is_a_list_by_default(array: cst.BaseExpression, source: Source) -> bool:
    """Whether a few numbers that are written out are sorted where nobody says others, `jnp.array([0.2, 0.8]) if q is
    None else q`: who does, says as few."""
    match source.meant(array):
        case cst.IfExp(body=one, orelse=other):
            made = [each for each in (one, other) if source.calls(each, *TO_JAX_ARRAY)]
            written = [argument(call, 0, "object") for call in made]
            return any(isinstance(each, cst.List) and is_literal(each) for each in written)
    return False


def _is_a_write(array: cst.BaseExpression) -> bool:
    """Whether this is `x.at`, which is written to at the places."""
    return isinstance(array, cst.Attribute) and array.attr.value == "at"


def _is_cut(pick: Pick, source: Source) -> bool:
    """Whether only some of what is gathered are read, `x[order][:k]`: of that argsort-prefix speaks."""
    reads = [source.parent(read) for read in source.readers(pick.node)]
    return bool(reads) and all(isinstance(read, cst.Subscript) for read in reads)


def _once(found: _SortedOnce, sort: Sorted, source: Source) -> str:
    """What is written, and what is better still, where somebody knows the shape of what else is gathered."""
    x, jax = brief(source.code(sort.array), _LONG, "x"), source.alias("jax") or "jax"
    also = _another(x)
    return f"{found.text}; what has the same shape is sorted along for less: {jax}.lax.sort(({x}, {also}), num_keys=1)"


def _another(x: str) -> str:
    """The name that an advice gives to what is sorted by `x`."""
    return "z" if x == "y" else "y"


def _instead(node: cst.Call, sort: Sorted, source: Source, *, is_alone: bool) -> str:
    """`jnp.sort(x)` where nothing else is put in this order, else a sort of all that is."""
    jnp, jax = source.jnp, source.alias("jax") or "jax"
    array, axis = sort.array, argument(node, 1, "axis")
    if is_alone:
        along = f", axis={source.code(axis)}" if axis is not None else ""
        falls = ", descending=True" if sort.descending else ""
        return f"{jnp}.sort({brief(as_argument(array, source), _LONG, 'x')}{along}{falls})"
    x = brief(source.code(array), _LONG, "x")
    along = f", dimension={source.code(axis)}" if axis is not None else ""
    key, rest = (f"-{as_operand(array, x)}, {x}", "[1:]") if sort.descending else (x, "")
    also = _another(x)
    return (
        f"{jax}.lax.sort(({key}, {also}){along}, num_keys=1){rest}, where {also} is what else is put in this order and "
        f"has the same shape; for the order itself an {jnp}.arange"
    )
