"""A `lax.cond` in the body of a loop that asks whether this is the first step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.branches.conditional import CONDITIONALS, conditional
from fusionlint.patterns.branches.first_step import asks_for_first_step
from fusionlint.patterns.runs.loop_bodies import is_small
from fusionlint.patterns.runs.under import is_vectorized
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


@rule.source("Call", calls=CONDITIONALS)
def first_step_in_the_loop(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`cond(i == 0, ...)` in small steps; what runs side by side under a `vmap` may count something else."""
    found = conditional(node, source)
    if found is None or not asks_for_first_step(found, source):
        return
    if source.is_idle(node):
        return
    if is_vectorized(node, source) or not _is_small(node, source):
        return
    yield source.finding(
        node,
        "every step runs a conditional to find out whether it is the first",
        write="do the first step before the loop, and start the loop at 1",
    )


def _is_small(node: cst.Call, source: Source) -> bool:
    """Whether the step is no loop, gradient or factorization, next to which a conditional is nothing."""
    function = source.function(node)
    place = source.body_place(function) if function is not None else None
    return place is not None and is_small(source.project, place, is_step=True)
