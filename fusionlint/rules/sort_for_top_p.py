"""A sort of a whole vocabulary for its likeliest part: `jnp.cumsum(jax.nn.softmax(jnp.sort(logits))) < p`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import argument, as_argument
from fusionlint.patterns.code.lands import argument_of, lands
from fusionlint.patterns.operations.softmax import SOFTMAX
from fusionlint.patterns.operations.sort import SORTS
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_TOP_K = "jax.lax.top_k"
_REDUCTIONS = tuple(f"jax.numpy.{name}" for name in ("sum", "mean", "max", "min", "linalg.norm"))
_COMPARED = frozenset(("LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual"))


@rule.source("Call", calls=(*SORTS, _TOP_K))
def sorted_for_threshold(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All of an array in order, whose running sum of probabilities is held against a threshold."""
    array = _sorted_array(node, source)
    if array is None or not _reaches_threshold(node, source):
        return
    if _is_reduced(array, source):
        return  # a number for each row, as of tokens by their entropy, is no vocabulary
    lax = source.alias("jax.lax") or "jax.lax"
    yield source.finding(
        node,
        "a whole vocabulary is sorted, and only its likeliest part is read",
        write=f"{lax}.top_k({as_argument(array, source)}, k) with a k that holds that part, and the running sum over"
        " these, as on the page",
    )


def _sorted_array(node: cst.Call, source: Source) -> cst.BaseExpression | None:
    """What is sorted: `top_k` of as many as there are is a sort too."""
    if source.calls(node, *SORTS):
        array = argument(node, 0, "a")
        return array.expression if isinstance(array, cst.UnaryOperation) else array
    if not source.calls(node, _TOP_K):
        return None
    array, count = argument(node, 0, "operand"), argument(node, 1, "k")
    if array is None or count is None:
        return None
    return array if source.code(count) == f"{source.code(array)}.shape[-1]" else None


def _is_reduced(array: cst.BaseExpression, source: Source) -> bool:
    """Whether `array` is, or is a name for, a reduction: `-jnp.sum(p * jnp.log(p), axis=-1)`."""
    value = source.meant(array)
    while isinstance(value, cst.UnaryOperation):
        value = value.expression
    return source.calls(value, *_REDUCTIONS)


def _reaches_threshold(node: cst.Call, source: Source) -> bool:
    return any(
        _is_compared(sums, source) and (softened or _draws(node, source))
        for place in _in_order(node, source)
        for sums, softened in _summed(place, source)
    )


def _in_order(node: cst.Call, source: Source) -> Iterator[cst.CSTNode]:
    """Where the sorted values stand: of an `argsort` where it is the index of the array."""
    for place in lands(node, source):
        if not source.calls(node, "jax.numpy.argsort"):
            yield place
            continue
        found = argument_of(place, source)
        if found and found[1] == 1 and source.calls(found[0], "jax.numpy.take_along_axis"):
            yield from lands(found[0], source)
        elif isinstance(index := source.parent(place), cst.Index):
            picked = source.parent(source.parent(index) or index)
            yield from lands(picked, source) if isinstance(picked, cst.Subscript) else ()


def _summed(place: cst.CSTNode, source: Source, softened: bool = False) -> Iterator[tuple[cst.CSTNode, bool]]:
    """The running sums over a sorted value, and whether a softmax made probabilities of it first."""
    found = argument_of(place, source)
    if found is None or found[1] != 0:
        return
    if source.calls(found[0], "jax.numpy.cumsum"):
        yield from ((sums, softened) for sums in lands(found[0], source))
    elif source.calls(found[0], *SOFTMAX) and not softened:
        for probabilities in lands(found[0], source):
            yield from _summed(probabilities, source, softened=True)


def _is_compared(sums: cst.CSTNode, source: Source) -> bool:
    """Whether a running sum, or what it was one place before (`sums - probabilities`), is held against something."""
    match source.parent(sums):
        case cst.BinaryOperation(operator=cst.Subtract(), left=left) as before if left is sums:
            return any(isinstance(source.parent(place), cst.Comparison) for place in lands(before, source))
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return type(operator).__name__ in _COMPARED
        case cst.ComparisonTarget(operator=operator):
            return type(operator).__name__ in _COMPARED
    return False


def _draws(node: cst.Call, source: Source) -> bool:
    """Whether the function around `node` draws random numbers, as who samples does."""
    function = source.function(node)
    calls = inside(function, cst.Call) if function else ()
    return any((source.qualified_name(call.func) or "").startswith("jax.random.") for call in calls)
