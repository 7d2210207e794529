"""A Python loop over a traced order: `for i in jnp.argsort(distance)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.lands import lands
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARGSORT = "jax.numpy.argsort"


@rule.source("Call", calls=(_ARGSORT,))
def order_gone_through(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A loop statement goes over the order itself; a comprehension looks for nothing, it collects."""
    if any(_is_gone_over(place, source) for place in lands(node, source)):
        numpy = source.alias("jax.numpy") or "jax.numpy"
        yield source.finding(
            node,
            "a loop over a traced order slices it and gathers by it in every lap",
            write=f"{numpy}.argmin({numpy}.where(mask, distance, {numpy}.inf)) where it looks for the first that will"
            " do, else jax.lax.fori_loop",
        )


def _is_gone_over(place: cst.CSTNode, source: Source) -> bool:
    match above := source.parent(place):
        case cst.For(iter=over):
            return over is place
        case cst.Arg():
            match call := source.parent(above):
                case cst.Call(func=cst.Name("enumerate" | "reversed")) if source.context(place) != "host":
                    return _is_gone_over(call, source)
    return False
