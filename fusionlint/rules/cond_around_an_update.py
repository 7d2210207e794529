"""A `lax.cond` that skips an optimizer's update where a gradient is not finite."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import inside
from fusionlint.patterns.branch_tests import FINITENESS
from fusionlint.patterns.branches import CONDITIONALS, Branch, conditional
from fusionlint.patterns.cheap import is_cheap
from fusionlint.patterns.under import under_vmap
from fusionlint.rule import Rule
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

# How many variables away the test may be computed.
_DEPTH = 3


@rule.source("Call", calls=CONDITIONALS)
def update_or_nothing(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One branch is `optimizer.update(gradient, state, ...)` and no more, the other elementwise work or none."""
    found = conditional(node, source)
    if found is None or not _asks_if_finite(found.test, source, _DEPTH):
        return
    updates = [branch for branch in found.branches if _is_update(branch)]
    if len(updates) != 1 or not all(
        is_cheap(b, source) or _makes_zeros(b) for b in found.branches if b is not updates[0]
    ):
        return
    if not source.is_traced(node) or is_idle(source.project, source.place(node)) or under_vmap(node, source):
        return
    yield source.finding(
        node,
        "parameters and state go through a conditional in every step, to skip an update that is seldom skipped",
        write="update always; keep with jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, old)",
    )


def _is_update(branch: Branch) -> bool:
    """Whether a branch returns what `optimizer.update(gradient, state)` does."""
    match branch.result:
        case cst.Call(func=cst.Attribute(attr=cst.Name("update")), args=[_, _, *_]):
            return True
    return False


def _makes_zeros(branch: Branch) -> bool:
    """Whether all that a branch calls makes zeros, by a function of any library."""
    calls = (part for part in inside(branch.function.body) if isinstance(part, cst.Call))
    return all(isinstance(c.func, cst.Attribute) and c.func.attr.value.endswith("zeros_like") for c in calls)


def _asks_if_finite(test: cst.BaseExpression, source: Source, depth: int) -> bool:
    for part in inside(test):
        if isinstance(part, cst.Call) and source.qualified_name(part.func) in FINITENESS:
            return True
        value = source.value(part) if depth and isinstance(part, cst.Name) else None
        if value is not None and _asks_if_finite(value, source, depth - 1):
            return True
    return False
