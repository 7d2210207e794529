"""Gradients of a compiled function that Python applies by itself, leaf by leaf: `optimizer.update` outside of a jit."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.dispatch.anew import repeats
from fusionlint.patterns.dispatch.host import is_short
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.dispatch.updates import APPLY, TRIPLES, applied_by_a_state, applied_by_a_triple, may_apply
from fusionlint.patterns.loops.carry import Carry, Write, calls, read
from fusionlint.patterns.loops.loop_gates import is_left_out
from fusionlint.patterns.loops.pictures import is_filmed
from fusionlint.rule import Rule
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

# Steps that take some milliseconds longer each: all of them together nobody waits for.
_UNDER_A_SECOND = 200
_GRADIENTS = ("jax.grad", "jax.value_and_grad")


def _applying_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes that apply updates in a loop of host code: asked of the facts."""
    has_triples = any(name in source.names for name in TRIPLES)
    for _, name, ((called, _, _), scope, loops, _) in source.project.named_calls(source.path):
        applies = name in TREE_MAPS or may_apply(name, called) or (has_triples and isinstance(called, str))
        if loops and applies and source.runs(scope, "host"):
            yield scope


@rule.source("Call", where="host", when=_applying_in_a_loop)
def applied_in_python(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`params = optax.apply_updates(params, updates)` in a loop of host code, or what does the same, where a compiled
    function of the loop has computed the gradients of these parameters."""
    loop, taken = source.loop(node), _taken(node, source)
    if taken is None or not isinstance(loop, cst.For | cst.While) or source.context(node) != "host":
        return
    if repeats(node, source) is not loop or is_left_out(node, loop, source):
        return
    carry = Carry(loop)
    own = carry.write_of(node, source)
    if own is None or own.value is not node or set(own.names).isdisjoint(read(taken[0])):
        return
    update = _first_of_python(node, taken[1], own, carry, source)
    if update is None or is_filmed(loop, source) or is_short(loop, source, _UNDER_A_SECOND):
        return
    what = f"`{dotted(update.func)}`" if dotted(update.func) and not source.calls(update, *TREE_MAPS) else "the update"
    yield source.finding(
        update,
        f"{what} is outside of the compiled function: every iteration dispatches several programs for each leaf",
        write="one jitted step that computes the gradients and applies them, with the parameters and the optimizer's "
        "state donated",
        pair=1 if applied_by_a_triple(node, source) else 0,
    )


def _taken(node: cst.Call, source: Source) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The parameters, or the state that holds them, and the gradients or updates that `node` applies to them."""
    if (by_a_state := applied_by_a_state(node) or applied_by_a_triple(node, source)) is not None:
        return by_a_state
    match node:
        case cst.Call(args=[cst.Arg(value=params), cst.Arg(value=updates)]) if source.calls(node, APPLY):
            return params, updates
        case cst.Call(args=[_, cst.Arg(value=params), *_, cst.Arg(value=updates)]) if source.calls(node, *TREE_MAPS):
            return params, updates
    return None


def _first_of_python(
    node: cst.Call, updates: cst.BaseExpression, own: Write, carry: Carry, source: Source
) -> cst.Call | None:
    """The first call of Python's that takes the gradients on their way to `node`, which may be `node` itself; None
    where no compiled function of the loop computes them of what `node` writes, or where one makes the updates too."""
    steps = [c for c in calls(carry.loop.body) if source.loop(c) is carry.loop and _is_compiled(c.func, source)]
    steps = [step for step in steps if set(own.names) & carry.behind(list(step.args), gated=True)[1]]
    gradients = {name for write in carry.writes if write.value in steps for name in write.names}
    if gradients.intersection(read(updates)) or any(call in steps for call in calls(updates)):
        return node if not source.calls(node, APPLY) else None
    made = next((w.value for w in carry.writes if w.always and not set(w.names).isdisjoint(read(updates))), None)
    if not isinstance(made, cst.Call) or is_jitted(made.func, source):
        return None
    takes = gradients.intersection(read(made)) or any(call in steps for call in calls(made))
    return made if takes else None


def _is_compiled(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether `callee` is compiled, or the gradient of what is: `jax.grad(compiled_loss)`."""
    meant = source.meant(callee)
    if isinstance(meant, cst.Call) and meant.args and source.calls(meant, *_GRADIENTS):
        return is_jitted(meant.args[0].value, source)
    return is_jitted(callee, source)
