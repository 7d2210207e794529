"""A traced loop over the elements of an array: `fori_loop(0, n, lambda i, total: total + f(x[i]), 0.0)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.loop_bodies import bodies_of, definitions
from fusionlint.patterns.turns import FORI, WHILE, Walk, walk
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


@rule.source("Call", calls=(FORI, WHILE))
def element_by_element(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Each turn reads one element by the loop's counter, and does scalar work with it."""
    if not source.calls(node, FORI, WHILE) or not source.is_traced(node):
        return
    found = walk(node, source)
    if found is None or _is_said(node, found, source):
        return
    array = source.code(found.read.value)
    shown = f"`{array}`" if "\n" not in array and len(array) <= 40 else "an array"
    yield source.finding(
        _where(node, found, source),
        f"{shown} is gone through one element at a time, each in tiny kernels of its own",
        write=_advice(found, source),
    )


def _where(loop: cst.Call, found: Walk, source: Source) -> cst.CSTNode:
    """The loop, or its body where that stands apart."""
    body = found.turn.body
    if isinstance(body, cst.Lambda) or source.function(body) is source.function(loop):
        return loop
    return body.name


def _is_said(loop: cst.Call, found: Walk, source: Source) -> bool:
    """Whether an earlier loop of the file runs the same body: what stands apart is found once."""
    body = found.turn.body
    if _where(loop, found, source) is loop:
        return False
    loops = (call for call in source.calls_of((FORI, WHILE)) if isinstance(call, cst.Call) and source.is_traced(call))
    same = (call for call in loops if body in definitions(bodies_of(call, source), source))
    return next((call for call in same if call is loop or walk(call, source) is not None), loop) is not loop


def _advice(found: Walk, source: Source) -> str:
    jnp = source.alias("jax.numpy") or "jnp"
    if found.is_writing:
        return (
            "the array form: all places at once where no turn needs another's, a cumulative operation or "
            "jax.lax.associative_scan where each needs the one before; small arrays in a loop on the host"
        )
    return (
        f"the array form: all elements at once, then {jnp}.sum, {jnp}.min, {jnp}.any, or {jnp}.argmax for the first "
        "that passes a test"
    )
