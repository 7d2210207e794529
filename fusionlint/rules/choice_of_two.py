"""`jax.random.choice(key, jnp.array([a, b]))`, and `jax.random.permutation` of two: random integers and a gather, or a
sort, where a coin and a `where` fuse."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import RANGES, constant
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.operations.choice import CHOICE, choice, coin, listed
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_PERMUTATION = "jax.random.permutation"


@rule.source("Call", calls=(CHOICE,))
def choice_of_two(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A draw from an array whose two elements are written out, both alike."""
    made = choice(node, source)
    values = listed(made.among, source) if made is not None and made.p is None else None
    if made is None or values is None or len(values) != 2 or not source.is_traced(node):
        return
    if any(isinstance(value, cst.List | cst.Tuple) for value in values):
        return
    first, second = (source.code(value) for value in values)
    numpy = source.alias("jax.numpy") or "jax.numpy"
    yield source.finding(
        node,
        "one of two values is drawn as a random integer, and gathered",
        write=f"{numpy}.where({coin(made.key, None, made.shape, source)}, {first}, {second})",
    )


@rule.source("Call", calls=(_PERMUTATION,))
def order_of_two(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A permutation of two numbers: of numbers in a row it does not matter whether each is moved for itself."""
    if not source.calls(node, _PERMUTATION) or not has_only(node, 2, "key", "x", "independent"):
        return
    key, among = argument(node, 0, "key"), argument(node, 1, "x")
    if key is None or among is None or not source.is_traced(node) or not _is_of_two(among, source):
        return
    numpy = source.alias("jax.numpy") or "jax.numpy"
    pair = f"{numpy}.arange(2)" if isinstance(among, cst.Integer) else source.code(among)
    yield source.finding(
        node,
        "two numbers are put in a random order by sorting random bits",
        write=f"x = {pair}; {numpy}.where({coin(key, None, None, source)}, x, x[::-1])",
        pair=1,
    )


def _is_of_two(among: cst.BaseExpression, source: Source) -> bool:
    """Whether two numbers are written out: `2`, `jnp.arange(2, 4)`, `jnp.array([a, b])`."""
    values = listed(among, source)
    if values is not None:
        return len(values) == 2 and not any(isinstance(value, cst.List | cst.Tuple) for value in values)
    made = source.meant(among)
    if not isinstance(made, cst.Call) or not source.calls(made, *RANGES):
        return constant(among) == 2
    first, last = argument(made, 0, "start"), argument(made, 1, "stop")
    match [constant(bound) for bound in (first, last) if bound is not None]:
        case [length]:
            return length == 2 and has_only(made, 1, "stop", "dtype")
        case [int(start), int(stop)]:
            return stop - start == 2 and has_only(made, 2, "start", "stop", "dtype")
    return False
