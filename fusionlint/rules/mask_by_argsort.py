"""A mask scattered through an order: `jnp.zeros(n, bool).at[jnp.argsort(x)].set(jnp.arange(n) < k)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import at_write, elements, is_fresh
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.lands import lands
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARGSORT = "jax.numpy.argsort"


@rule.source("Call", calls=(_ARGSORT,))
def scattered_through_order(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The order is only an index, at which a new array is told which of the first places are in."""
    array = argument(node, 0, "a")
    if array is None:
        return
    inner = array.expression if isinstance(array, cst.UnaryOperation) else array
    places = list(lands(node, source))
    # The first of a falling order are the largest, which argsort-prefix tells.
    if not places or not all(_marks(place, source, may_be_cut=inner is array) for place in places):
        return
    numpy = source.alias("jax.numpy") or "jax.numpy"
    x = source.code(inner) if isinstance(inner, cst.Name) else "x"
    instead = f"{x} <= {numpy}.sort({x})[k - 1]" if inner is array else f"{x} >= {numpy}.sort({x})[-k]"
    yield source.finding(node, "a mask is scattered through an order", write=instead)


def _marks(place: cst.CSTNode, source: Source, *, may_be_cut: bool) -> bool:
    """Whether `place`, or its first few, is the index of a write that only says which are in."""
    above, is_part = source.parent(place), False
    if may_be_cut and isinstance(above, cst.Subscript) and above.value is place:
        match elements(above.slice):
            case [cst.Slice(lower=None, upper=cst.BaseExpression(), step=None)]:
                above, is_part = source.parent(above), True
            case _:
                return False
    if not isinstance(above, cst.Index):
        return False
    call = source.nearest(above, cst.Call)
    write = at_write(call)
    if write is None or write.method != "set" or write.value is None or len(write.index) != 1:
        return False
    if not is_fresh(write.array, source):
        return False
    if is_part:
        return isinstance(write.value, cst.Name) and write.value.value in ("True", "False")
    return _is_prefix_mask(write.value, source)


def _is_prefix_mask(node: cst.BaseExpression, source: Source) -> bool:
    """`jnp.arange(n) < k`, or a name for it."""
    value = source.meant(node)
    match value:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.LessThan() | cst.LessThanEqual())]
        ):
            return source.calls(left, "jax.numpy.arange")
    return False
