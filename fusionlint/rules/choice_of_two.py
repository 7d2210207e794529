"""`jax.random.choice(key, jnp.array([a, b]))`: random integers and a gather, where a coin and a `where` fuse."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.choice import CHOICE, choice, coin, listed
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


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
