"""A running sum over a mask to find its first hit: `mask & (jnp.cumsum(mask) == 1)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import constant, names_in
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, beside, has_only
from fusionlint.patterns.code.lands import argument_of, lands
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.values.masks import is_mask
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_CUMSUM = "jax.numpy.cumsum"
_AND = "jax.numpy.logical_and"
_SUMS = ("jax.numpy.sum", "jax.numpy.count_nonzero")


@rule.source("Call", calls=(_CUMSUM,))
def sums_of_a_mask(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The running sum is only held against 0 or 1: to keep the first hit, to find it, or to count what is before it."""
    mask = argument(node, 0, "a")
    if mask is None:
        return
    argmax = beside(node.func, "argmax", source) or "jnp.argmax"
    axis = argument(node, 1, "axis")
    where = f", axis={source.code(axis)}" if axis is not None else ""
    first = f"{argmax}({source.code(_bare(mask))}{where})"
    places = list(lands(node, source))
    if any(_keeps_first(place, mask, source) for place in places):
        message, pair = "a running sum over all of a mask keeps its first hit", 0
        write = f"{first}, and take that one, where there is any: without a hit it is 0"
    elif places and is_mask(mask, source, as_numbers=True) and all(_counts_before(place, source) for place in places):
        message = "a running sum over all of a mask counts what is before its first hit"
        write, pair = f"{first}, and the length where there is none", 1
    else:
        return
    instead = _counted(node, mask, places, source) if pair else None
    yield source.finding(
        node,
        message,
        write=instead.text if instead else write,
        edits=instead.edits if instead else (),
        pair=pair,
    )


class _Counted(NamedTuple):
    """How many are before the first hit, and the edits that write it."""

    text: str
    edits: tuple[Edit, ...]


def _counted(
    node: cst.Call, mask: cst.BaseExpression, places: Sequence[cst.CSTNode], source: Source
) -> _Counted | None:
    """`jnp.where(m.any(-1), jnp.argmax(m, -1), m.shape[-1])` for `jnp.sum(jnp.cumsum(m, axis=-1) == 0, axis=-1)`."""
    zeros = source.parent(node)
    total = source.handed_to(zeros) if len(places) == 1 and places[0] is node and zeros is not None else None
    axis = argument(node, 1, "axis")
    if total is None or axis is None or not has_only(total, 2, "a", "axis") or not has_only(node, 2, "a", "axis"):
        return None
    along, over = constant(axis), argument(total, 1, "axis")
    bare = _bare(mask)
    if along is None or over is None or constant(over) != along or source.has_comment(total) or bare is not mask:
        return None
    is_named = isinstance(bare, cst.Name)
    hits = source.code(bare) if is_named else free_name("hits", node, source)
    before = line_before(node, f"{hits} = {source.code(bare)}", source) if not is_named else None
    if not is_named and before is None:
        return None
    numpy = named("jax.numpy", node, source)
    parts = (f"{hits}.any(axis={along})", f"{numpy}.argmax({hits}, axis={along})", f"{hits}.shape[{along}]")
    called = Called(f"{numpy}.where", parts)
    text = str(called) if is_named else f"{hits} = {source.code(bare)}; {called}"
    return _Counted(text, (*([before] if before is not None else ()), in_place_of(total, called, source)))


def _keeps_first(sums: cst.CSTNode, mask: cst.BaseExpression, source: Source) -> bool:
    """Whether `sums` is compared with 1 and joined with the mask, or joined with what it was not one place before."""
    one = _compared(sums, source)
    if one is not None and one[1] == "=1":
        return any(_joined_with(place, _bare(mask), source) for place in lands(one[0], source))
    other = _other_of_and(sums, source)
    if other is None or (inner := _negated(other, source)) is None:
        return False
    shifted = (source.value(inner) if isinstance(inner, cst.Name) else inner) or inner
    return isinstance(sums, cst.Name) and any(name.value == sums.value for name in names_in(shifted))


def _compared(sums: cst.CSTNode, source: Source) -> tuple[cst.Comparison, str] | None:
    """`sums == 1` as "=1"; `sums == 0`, `sums < 1` and `sums <= 0` as "=0"."""
    match above := source.parent(sums):
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=bound)]) if (
            left is sums
        ):
            match operator, constant(bound):
                case cst.Equal(), 1:
                    return above, "=1"
                case (cst.Equal() | cst.LessThanEqual(), 0) | (cst.LessThan(), 1):
                    return above, "=0"
    return None


def _joined_with(hit: cst.CSTNode, mask: cst.BaseExpression, source: Source) -> bool:
    other = _other_of_and(hit, source)
    return other is not None and source.code(_bare(other)) == source.code(mask)


def _other_of_and(node: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """b of `a & b`, `a * b` and `jnp.logical_and(a, b)`, where `node` is a; or the other way round."""
    match source.parent(node):
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.Multiply(), right=right):
            return right if left is node else left
    if (found := argument_of(node, source)) and source.calls(found[0], _AND) and len(found[0].args) == 2:
        return found[0].args[1 - found[1]].value
    return None


def _negated(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    match node:
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return inner
        case cst.Call(args=[cst.Arg(value=inner)]) if source.calls(node, "jax.numpy.logical_not"):
            return inner
    return None


def _counts_before(sums: cst.CSTNode, source: Source) -> bool:
    zero = _compared(sums, source)
    if zero is None or zero[1] != "=0":
        return False
    found = argument_of(zero[0], source)
    if found is not None:
        return found[1] == 0 and source.calls(found[0], *_SUMS)
    match source.parent(zero[0]):
        case cst.Attribute(attr=cst.Name("sum")):
            return True
    return False


def _bare(mask: cst.BaseExpression) -> cst.BaseExpression:
    """`mask` of `mask.astype(jnp.int32)`."""
    match mask:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))):
            return inner
    return mask
