"""A `lax.cond` that skips an optimizer's update, where a gradient is not finite or in every second step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.branches.cheap import MAPS, is_cheap, is_cheap_call
from fusionlint.patterns.branches.conditional import CONDITIONALS, Branch, conditional, is_unchanged
from fusionlint.patterns.branches.tests import FINITENESS, counts_steps
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.runs.under import VMAPS, under_vmap
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

# How many variables away the test may be computed.
_DEPTH = 3
# The pair of the page about updates that are made now and then.
_DELAYED = 1
_APPLIES, _ADD = ("optax.apply_updates", "equinox.apply_updates"), "jax.numpy.add"


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
    if source.is_idle(node) or under_vmap(node, source):
        return
    yield source.finding(
        node,
        "parameters and state go through a conditional in every step, to skip an update that is seldom skipped",
        write="update always; keep with jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, old)",
    )


@rule.source("Call", calls=CONDITIONALS)
def update_now_and_then(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`cond(step % delay == 0, ...)`, where one branch applies a gradient that is there in any case, and does no more,
    and the other hands parameters and state on as they are."""
    found = conditional(node, source)
    if found is None or not counts_steps(found.test, source):
        return
    updates = [branch for branch in found.branches if not is_unchanged(branch)]
    if len(updates) != 1 or len(found.branches) != 2:
        return
    function = updates[0].function
    if not _only_updates(function, source, _DEPTH) or not _applies(function, source, _DEPTH):
        return
    if source.is_idle(node):
        return
    if under_vmap(node, source) or _is_handed_to_a_map(node, source):
        return
    yield source.finding(
        node,
        "parameters and state go through a conditional, and are copied where nothing is updated",
        pair=_DELAYED,
        write="update always; keep with jax.tree.map(lambda a, b: jnp.where(due, a, b), new, old)",
    )


def _is_handed_to_a_map(node: cst.Call, source: Source) -> bool:
    """Whether another method hands on the one around `node`, `partial(step, update=self.update)`, and maps what it
    makes of that: a population, each of whose conditionals is a choice."""
    methods = [above.name.value for above in source.ancestors(node, cst.FunctionDef)]
    for call in source.calls_of(VMAPS):
        around = [*source.ancestors(call, cst.FunctionDef)]
        for part in inside(around[-1]) if around and methods else ():
            match part:
                case cst.Arg(value=cst.Attribute(value=cst.Name("self"), attr=cst.Name(name))) if name == methods[-1]:
                    return True
    return False


def _only_updates(function: Function, source: Source, depth: int) -> bool:
    """Whether all that a function does is `optimizer.update(gradient, state)`, itself or by a helper, and elementwise
    work around it."""
    calls = [*inside(function.body, cst.Call)]
    others = [call for call in calls if not _updates(call) and not _is_of_optax(call, source)]
    helpers = [function_named(call.func, source) for call in others if not is_cheap_call(call, source)]
    is_small = all(helper is not None and _only_updates(helper, source, depth - 1) for helper in helpers)
    return depth > 0 and is_small and (bool(helpers) or any(map(_updates, calls)))


def _applies(function: Function, source: Source, depth: int) -> bool:
    """Whether a function adds changes to parameters, itself or by a helper: what is called an update and does not may
    be a Hessian's."""
    calls = [*inside(function.body, cst.Call)] if depth else []
    helpers = (function_named(call.func, source) for call in calls)
    return any(_adds(call, source) for call in calls) or any(
        helper is not None and _applies(helper, source, depth - 1) for helper in helpers
    )


def _adds(call: cst.Call, source: Source) -> bool:
    """`optax.apply_updates(params, updates)`, `jax.tree.map(jnp.add, params, updates)`."""
    if source.calls(call, *_APPLIES):
        return True
    return source.calls(call, *MAPS) and bool(call.args) and source.qualified_name(call.args[0].value) == _ADD


def _updates(call: cst.Call) -> bool:
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("update")), args=[_, _, *_]):
            return True
    return False


def _is_of_optax(call: cst.Call, source: Source) -> bool:
    """`optax.adam(rate)`, `optax.apply_updates(params, updates)`."""
    return (source.qualified_name(call.func) or "").startswith("optax.")


def _is_update(branch: Branch) -> bool:
    """Whether a branch returns what `optimizer.update(gradient, state)` does."""
    return isinstance(branch.result, cst.Call) and _updates(branch.result)


def _makes_zeros(branch: Branch) -> bool:
    """Whether all that a branch calls makes zeros, by a function of any library."""
    calls = inside(branch.function.body, cst.Call)
    return all(isinstance(c.func, cst.Attribute) and c.func.attr.value.endswith("zeros_like") for c in calls)


def _asks_if_finite(test: cst.BaseExpression, source: Source, depth: int) -> bool:
    for part in inside(test):
        if isinstance(part, cst.Call) and source.qualified_name(part.func) in FINITENESS:
            return True
        value = source.value(part) if depth and isinstance(part, cst.Name) else None
        if value is not None and _asks_if_finite(value, source, depth - 1):
            return True
    return False
