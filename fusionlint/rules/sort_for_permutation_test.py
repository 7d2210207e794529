"""A sort that is only compared with all numbers in a row: `jnp.sort(x) == jnp.arange(n)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.code.lands import argument_of, lands
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_SORT, _RANGE, _EQUAL = "jax.numpy.sort", "jax.numpy.arange", ("jax.numpy.array_equal", "jax.numpy.equal")


@rule.source("Call", calls=(_SORT,))
def compared_with_a_range(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the sorted array holds it against a range."""
    array = argument(node, 0, "a")
    if not has_only(node, 2, "a", "axis") or array is None:
        return
    against = [_range_beside(place, source) for place in lands(node, source)]
    if not against or any(other is None for other in against):
        return
    code = as_argument(array, source)
    numbers = source.code(against[0]) if against[0] is not None else "jnp.arange(n)"
    yield source.finding(
        node,
        "everything is sorted, only to see whether each number is there once",
        write=f"({code if code.isidentifier() else 'x'}[..., None] == {numbers}).any(-2)",
    )


def _range_beside(place: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """`jnp.arange(n)`, where that is what a sorted array is held against."""
    match source.parent(place):
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual(), comparator=other)]
        ) if left is place:
            return _range(other, source)
        case cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual()) as target:
            comparison = source.parent(target)
            return _range(comparison.left, source) if isinstance(comparison, cst.Comparison) else None
    found = argument_of(place, source)
    if found and source.calls(found[0], *_EQUAL) and len(found[0].args) == 2:
        return _range(found[0].args[1 - found[1]].value, source)
    return None


def _range(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    value = source.meant(node)
    return value if source.calls(value, _RANGE) else None
