"""A whole sort of which only k are read: `jnp.argsort(-x)[:k]`, `jnp.sort(x)[-k:]`, of rows `jnp.argsort(d)[:, :k]`;
and rows that are all put in order before k are kept and read again: `x = x[jnp.argsort(f)]`, `x[:k]`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, indexed_by, names_read
from fusionlint.patterns.code.calls import as_argument, as_operand
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.moved import is_same_before, lines_between
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.readers import bounds, first_uses, sorted_to, sorts_of, value_of, writer_of
from fusionlint.patterns.loops.stacked_rows import is_stacked_by_a_scan
from fusionlint.patterns.operations.sort import (
    SORTS,
    Sorted,
    Taken,
    end_cut,
    is_beside_a_decomposition,
    is_of_eigenvalues,
    is_of_float64,
    is_order,
    reads_of,
    sorting,
)
from fusionlint.patterns.operations.taken import is_a_share, is_at_most, is_of_a_leaf, keeps_its_own_size
from fusionlint.patterns.runs.alternatives import is_one_of_several
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.first_states import makes_the_first_state
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.values.masks import is_mask
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FEW = 8
# So many `top_k` takes by one kernel of a GPU; of more it is a sort there.
_SHORT = 16
# The pair of the page, by whether the smallest are taken and whether they are seen to be so few.
_PAIRS = {(False, True): 0, (True, True): 1, (False, False): 3, (True, False): 4}
# Of one row of 100 or 512 values an H100 takes as many launches and bytes by `top_k`; of 1024 a third of the bytes.
_LONG_ROW = 1000
_MASK = regex(r"(^|[_.])(\w*mask|valid|is_\w+|\w+_map)$")
_REPEATS = ("jax.numpy.repeat", "jax.numpy.tile")
_TOP_KS = ("jax.lax.top_k", "jax.lax.approx_max_k")


@rule.source("Call", calls=SORTS)
def largest_of_a_sort(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the sorted array takes some of the largest, along the last axis: what `top_k` takes.

    For the smallest `top_k` needs the negated array. That is a gain for the order of many rows: for one row, and for
    the values, which are negated again, it costs what it saves.
    """
    found = reads_of(node, source)
    if found is None:
        return
    made, taken = found
    counted = [one for one in taken if one.count is not None]
    if not counted or not all(_is_last_axis(made, one) for one in taken):
        return
    ends = {one.end for one in taken}
    if "smallest" in ends and (len(ends) > 1 or not made.is_order or not _is_of_rows(node, counted[0], source)):
        return
    if is_one_of_several(node, source, *_TOP_KS) or keeps_its_own_size(made, counted[0].count, source):
        return
    if makes_the_first_state(node, source):
        return
    if any(one.is_single and is_of_a_leaf(one.count, source) for one in counted):
        return  # one value can be read at a place that is computed, but `top_k` has to know how many it takes
    if all(is_a_share(one.count, source) for one in counted):
        return
    if all(one.length == 1 for one in taken) and _is_nothing_beside(node, made, source):
        return
    most = _most(counted)
    is_short = is_at_most(_SHORT, most.count, source)
    if is_of_float64(node, source) and not ("smallest" in ends and is_short):
        return
    if not is_short and made.is_order and (is_mask(made.array, source) or _is_of_truths(made, source)):
        return  # of which `top_k` is a sort too, and made floats it is one of twice the bytes
    shown = source.code(most.count) if most.count is not None else "k"
    values = _values_read(node, made, source)
    read = made if values is None else made._replace(is_order=False)
    most = most if len(taken) == 1 else replace(most, is_single=False)
    text = _instead(node, read, most, source)
    yield source.finding(
        node,
        f"everything is sorted, and only the `{shown}` {most.end} are read",
        until=values,
        write=f"{text}, which takes the first of those that are alike" if _turns_a_mask(made, most, source) else text,
        edits=_edits(node, text, values or most.node, read, taken, source),
        pair=_PAIRS["smallest" in ends, is_short],
    )


@rule.source("Subscript", when=sorting)
def rows_cut_after_the_sort(node: cst.Subscript, source: Source) -> Iterator[Finding]:
    """Every read of the rows in order takes some from one end, and something reads those more than once: the order can
    be cut, before anything is gathered. Of one reader XLA does so by itself."""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=order))]) if is_order(order, source):
            reads = source.readers(node)
            cuts = [end_cut(source.parent(read), read) for read in reads]
            ends = {cut[0] for cut in cuts if cut is not None}
            counts = [cut[1] for cut in cuts if cut is not None and cut[1] is not None]
            if not counts or None in cuts or len(ends) > 1 or all(_is_few(count) for count in counts):
                return
            if not _is_read_again([source.parent(read) or read for read in reads], source):
                return
            end, k = ends.pop(), source.code(counts[0])
            cut = f":{k}" if end == "first" else f"-{as_operand(counts[0], k)}:"
            cut_order = f"{as_operand(order, source.code(order))}[{cut}]"
            is_one = len(counts) == len(cuts) and len({source.code(count) for count in counts}) == 1
            is_known = is_one and all(is_same_before(count, node, source) for count in counts)
            yield source.finding(
                node,
                f"all rows are put in order, and only the {end} `{k}` are kept",
                write=f"cut the order, not the rows: {source.code(node.value)}[{cut_order}]",
                edits=(source.replace(order, cut_order),) if is_known and not source.has_comment(order) else (),
                safe=constant(counts[0]) is not None,
                pair=2,
            )


@rule.barrier
def sorted_for_some(barrier: Barrier, module: hlo.Module) -> str | None:
    """A sort whose readers cut several elements from it."""
    if "top_k" in writer_of(barrier, module).op_name:
        return None  # a GPU sorts for it too
    length = sorted_to(barrier, module)
    if length is None or length < 2 or _are_values_for_a_sort(barrier, module):
        return None
    what = " of the mask as float32 (of a mask itself it is a sort)" if _is_of_a_mask(barrier, module) else ""
    return f"lax.top_k{what} instead of a part of a whole sort"


def _is_of_a_mask(barrier: Barrier, module: hlo.Module) -> bool:
    keys = [step.shape.parts[0] if step.shape.parts else step.shape for step in sorts_of(barrier, module)]
    return any(shape.dtype == "pred" for shape in keys)


def _are_values_for_a_sort(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether values alone are sorted and a sort is as good: for the smallest, which `top_k` has to negate twice, and
    for one short row."""
    # That XLA sorts numbers along says nothing: it may add them.
    if any("argsort" in step.op_name for step in sorts_of(barrier, module)):
        return False
    *rows, length = value_of(barrier, module).shape.dims
    is_short = all(size == 1 for size in rows) and length < _LONG_ROW
    return is_short or any(bounds(cut)[-1][0] == 0 for cut in first_uses(barrier, module))


def _most(counted: list[Taken]) -> Taken:
    """Of several reads the one that takes most, where all say how many: `s[..., -1] - s[..., -2]` takes two."""
    numbers = [constant(one.count) for one in counted if one.count is not None]
    known = [number for number in numbers if number is not None]
    return counted[known.index(max(known))] if len(known) == len(counted) else counted[0]


def _is_read_again(cuts: list[cst.CSTNode], source: Source) -> bool:
    """Whether what is kept has more than one reader, or one that takes each row more than once."""
    reads = [read for cut in cuts for read in (source.readers(cut) if isinstance(cut, cst.Subscript) else ())]
    return len(reads) > 1 or any(_is_repeated(read, source) for read in reads)


def _is_repeated(read: cst.CSTNode, source: Source) -> bool:
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name("repeat")):
            return value is read
        case cst.Arg() as handed:
            return source.calls(source.parent(handed) or handed, *_REPEATS)
    return False


def _is_few(count: cst.BaseExpression) -> bool:
    """Whether so few rows are kept that there may be hardly more of them: the corners of a triangle."""
    number = constant(count)
    return number is not None and number < _FEW


def _is_last_axis(made: Sorted, one: Taken) -> bool:
    return made.axis == -1 or (made.axis == one.length - 1 > 0)


def _is_of_rows(node: cst.Call, one: Taken, source: Source) -> bool:
    return one.length > 1 or under_vmap(node, source)


def _is_nothing_beside(node: cst.Call, made: Sorted, source: Source) -> bool:
    """Whether the order of one row is nothing beside what is done with it, in eigenvalues, or for it, in the steps of a
    scan that stacked it; or is made once, on the host."""
    if is_beside_a_decomposition(node, source) or is_of_eigenvalues(made.array, source):
        return True
    if any(is_stacked_by_a_scan(name, source) for name in names_read(source.meant(made.array))):
        return not under_vmap(node, source)
    return is_concrete(node, source) and not under_vmap(node, source)


def _values_read(node: cst.Call, made: Sorted, source: Source) -> cst.Subscript | None:
    """Where an order is only there to read the row that it is of, the values themselves: `x[jnp.argsort(x)[-k:]]`."""
    cut: cst.CSTNode = node
    while isinstance(above := source.parent(cut), cst.Subscript) and above.value is cut:
        cut = above
    read = indexed_by(cut, source)
    if read is None or not made.is_order or len(read.slice) > 1:
        return None
    return read if source.code(read.value) == source.code(made.array) else None


def _instead(node: cst.Call, made: Sorted, one: Taken, source: Source) -> str:
    """`lax.top_k(x, k)[1]`, of `-x` for the smallest, turned round where they came last."""
    lax = named("jax.lax", node, source)
    count = source.code(one.count) if one.count is not None else "k"
    array = as_argument(made.array, source) if one.end == "largest" else _smallest_first(made.array, source)
    if made.is_order and is_mask(made.array, source):  # of anything but floats `top_k` is a sort
        whole = array if array.isidentifier() else f"({array})"
        array = f"{whole}.astype({named('jax.numpy', node, source)}.float32)"
    text = f"{lax}.top_k({made.as_mapped(array)}, {count})[{1 if made.is_order else 0}]"
    if one.is_single:
        return f"{text}[..., -1]"
    return f"{text}[..., ::-1]" if one.from_back else text


def _turns_a_mask(made: Sorted, one: Taken, source: Source) -> bool:
    return made.is_order and one.from_back and not one.is_single and is_mask(made.array, source)


def _edits(
    node: cst.Call, text: str, cut: cst.Subscript, made: Sorted, taken: list[Taken], source: Source
) -> tuple[Edit, ...]:
    """The `top_k` where the part is read, without the lines that sort; of several parts where the sort was."""
    if source.has_comment(cut) or source.has_comment(node) or "\n" in text or _is_of_truths(made, source):
        return ()
    if len(taken) > 1:
        counts = [one.count for one in taken]
        is_plain = all(count is None or constant(count) is not None for count in counts)
        is_read_there = {one.node.value for one in taken} == {*source.readers(node)}
        is_one_way = len({(one.end, one.from_back) for one in taken}) == 1
        return (source.replace(node, text),) if is_plain and is_read_there and is_one_way else ()
    lines = [*lines_between(node, cut, source)]
    if None in lines or not is_same_at(made.array, cut, source):
        return ()
    return (source.replace(cut, text), *(line for line in lines if line is not None))


def _is_of_truths(made: Sorted, source: Source) -> bool:
    """Whether an order may be one of truth values by their name: nearly all of them are alike, and which of those come
    first is all that the order says."""
    return made.is_order and not is_mask(made.array, source) and _MASK.search(dotted(made.array)) is not None


def _smallest_first(array: cst.BaseExpression, source: Source) -> str:
    """What has its largest where `array` has its smallest; of a mask its opposite, for nothing negates a bool."""
    match array:
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return as_argument(inner, source)
        case cst.Comparison() | cst.UnaryOperation(operator=cst.Not()):
            return f"~({source.code(array)})"
    if isinstance(source.meant(array), cst.Comparison):
        return f"~{source.code(array)}"
    text = source.code(array)
    return f"-{text}" if isinstance(array, cst.Name | cst.Attribute | cst.Subscript | cst.Call) else f"-({text})"
