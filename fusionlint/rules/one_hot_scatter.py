"""`jax.nn.one_hot(i, n).T @ x`: a product with zeros that moves rows, where a scatter writes each of them once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.elementwise import is_worked_on
from fusionlint.patterns.operations.one_hot import (
    MAKERS,
    factors,
    factors_of_einsum,
    has_many_classes,
    is_einsum,
    making_one_hots,
    one_hot,
)
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_TRANSPOSES = ("jax.numpy.transpose", "jax.numpy.matrix_transpose")
_MESSAGE = "a product with a one-hot multiplies every row with every place, to put each into one"
_KEPT = "all of a cache is read, multiplied and written, to put one token into it"
_DEPTH = 4
_LONG = 40
_ADDED = "a product with a one-hot adds zeros to all of an array, to add to a few places"


@rule.source("BinaryOperation", "Call", when=making_one_hots, needs=MAKERS)
def put_by_a_product(node: cst.BinaryOperation | cst.Call, source: Source) -> Iterator[Finding]:
    """`one_hot(i, n).T @ x`, `jnp.matmul`, `jnp.dot` and the einsums that do so."""
    if (sides := factors(node, source)) is not None:
        yield from _put(node, *sides, source)
    elif is_einsum(node, source):
        yield from _put_by_einsum(node, source)


@rule.source("BinaryOperation", when=making_one_hots, needs=MAKERS)
def added_to_a_cache(node: cst.BinaryOperation, source: Source) -> Iterator[Finding]:
    """`cached.value + token * one_hot(i, length)`, where `cached` is a variable that a flax module keeps."""
    match node:
        case cst.BinaryOperation(
            left=cst.Attribute(value=cst.Name() as kept, attr=cst.Name("value")),
            operator=cst.Add(),
            right=cst.BinaryOperation(left=one, operator=cst.Multiply(), right=two),
        ) if _is_a_variable(kept, source):
            for token, places in ((one, two), (two, one)):
                if found := one_hot(_spread(places, source), source):
                    index = brief(source.code(found.index), _LONG, "i")
                    yield source.finding(
                        node,
                        _KEPT,
                        write=f"jax.lax.dynamic_update_slice_in_dim({kept.value}.value, {source.code(token)}, {index}, "
                        f"axis); for a place of its own in each row {kept.value}.value.at[rows, ..., {index}].set(...)",
                        pair=2,
                    )
                    return


def _is_a_variable(name: cst.Name, source: Source) -> bool:
    """Whether the name stands for `self.variable("cache", "key", ...)`."""
    match source.value(name):
        case cst.Call(func=cst.Attribute(value=cst.Name("self"), attr=cst.Name("variable"))):
            return True
    return False


def _spread(node: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """What axes are added to: `expand_dims(x, 1)`, or a name for it."""
    for _ in range(_DEPTH):
        node = source.meant(node)
        if not source.calls(node, "jax.numpy.expand_dims") or not node.args:
            break
        node = node.args[0].value
    return node


def _put(node: cst.CSTNode, left: cst.BaseExpression, rows: cst.BaseExpression, source: Source) -> Iterator[Finding]:
    match left:
        case cst.Attribute(value=inner, attr=cst.Name("T" | "mT")):
            pass
        case cst.Call(args=[cst.Arg(value=inner)]) if source.calls(left, *_TRANSPOSES):
            pass
        case _:
            return
    yield from _put_into(node, inner, rows, source)


def _put_by_einsum(node: cst.Call, source: Source) -> Iterator[Finding]:
    for places, axes, rows, others, result in factors_of_einsum(node):
        if not _puts(axes, others, result):
            continue
        if not set(axes[:-1]) & set(result):
            yield from _put_into(node, places, rows, source, is_plain=axes[:-1] == others[:1])
        elif is_worked_on(node, source):
            yield from _put_into(node, places, rows, source, is_plain=False, pair=1)


def _puts(places: str, rows: str, result: str) -> bool:
    """Whether the einsum sums over rows, each of which goes to one of the places that the last axis of `places` is.

    Without an axis of its own a row is a number, and what is left is a sum that fuses.
    """
    distinct = len(set(places)) == len(places) and len(set(rows)) == len(rows)
    place, before = places[-1:], set(places[:-1])
    summed, own = before - set(result), set(rows) - set(places)
    known = place not in ("", ".") and place in result and place not in rows
    return distinct and known and bool(summed) and summed <= set(rows) and bool(own) and own <= set(result)


def _put_into(
    node: cst.CSTNode,
    places: cst.BaseExpression,
    rows: cst.BaseExpression,
    source: Source,
    *,
    is_plain: bool = True,
    pair: int = 0,
) -> Iterator[Finding]:
    """The finding, where there are many places; a sum over each of a batch's own rows is added to something: `pair`.
    Rows that a `vmap` gives to each of a batch go to places of its own: sequences, for which a scatter is no better."""
    found = one_hot(places, source)
    if found is None or found.classes is None or not has_many_classes(found, source):
        return
    if one_hot(rows, source) is not None or (not pair and under_vmap(node, source)):
        return
    x, index, count = source.code(rows), source.code(found.index), source.code(found.classes)
    if pair:
        yield source.finding(node, _ADDED, write=f"array.at[..., {index}].add({x}), with every axis indexed", pair=1)
    elif is_plain:
        yield source.finding(node, _MESSAGE, write=f"jax.ops.segment_sum({x}, {index}, {count})")
    else:
        write = (
            f'a scatter: zeros, of numbers, with `.at[...].add({x}, mode="drop")`, and `{index}` as the index of the '
            "places; places below 0, for which a one-hot has no 1, sent past the end"
        )
        yield source.finding(node, _MESSAGE, write=write)
