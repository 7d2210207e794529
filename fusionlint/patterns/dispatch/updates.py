"""Where parameters get what an optimizer makes of their gradients.

In: calls, by the facts of a file or in a Source. Out: whether they apply updates, and which gradients they are handed.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.calls import keyword
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.source.facts import RawValue
from fusionlint.source.tree import Source

APPLY = "optax.apply_updates"
# jax's own, of which each is three functions: `init`, `update` and `get_params`.
TRIPLES = tuple(
    f"{module}.{name}"
    for module in ("jax.example_libraries.optimizers", "jax.experimental.optimizers")
    for name in ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "rmsprop_momentum", "adam", "adamax", "sm3")
)
# flax's TrainState, which does both. What other libraries call so takes pairs, and no `grads=`.
_METHOD = "apply_gradients"


def may_apply(name: str | None, called: RawValue) -> bool:
    """Whether a call of `called`, whose qualified name is `name`, may apply updates: asked of the facts."""
    return name == APPLY or (isinstance(called, str) and called.endswith(f".{_METHOD}"))


def applied_by_a_state(call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The state and the gradients of `state.apply_gradients(grads=grads)`; None of anything else."""
    match call.func:
        case cst.Attribute(value=state, attr=cst.Name(method)) if method == _METHOD:
            grads = keyword(call, "grads")
            return (state, grads) if grads is not None else None
    return None


def applied_by_a_triple(call: cst.Call, source: Source) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The state and the gradients of `update(i, grads, state)`, where `_, update, _ = adam(1e-3)` of jax's own
    optimizers is what `update` stands for, not compiled since; None of anything else."""
    match call:
        case cst.Call(
            func=cst.Name() as update,
            args=[
                cst.Arg(keyword=None, star=""),
                cst.Arg(value=grads, keyword=None, star=""),
                cst.Arg(value=state, keyword=None, star=""),
            ],
        ):
            made = unpacked_at(source.written(update), source)
            if made is not None and made[1:] == (1, 3) and source.calls(made[0], *TRIPLES):
                return state, grads
    return None
