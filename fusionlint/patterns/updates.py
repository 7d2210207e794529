"""Where parameters get what an optimizer makes of their gradients.

In: calls, by the facts of a file or in a Source. Out: whether they apply updates, and which gradients they are handed.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.facts import RawValue

APPLY = "optax.apply_updates"
# flax's TrainState, which does both. What other libraries call so takes pairs, and no `grads=`.
_METHOD = "apply_gradients"


def may_apply(name: str | None, called: RawValue) -> bool:
    """Whether a call of `called`, whose qualified name is `name`, may apply updates: asked of the facts."""
    return name == APPLY or (isinstance(called, str) and called.endswith(f".{_METHOD}"))


def applied_by_a_state(call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The state and the gradients of `state.apply_gradients(grads=grads)`; None of anything else."""
    match call.func:
        case cst.Attribute(value=state, attr=cst.Name(method)) if method == _METHOD:
            named = (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "grads")
            return next(((state, grads) for grads in named), None)
    return None
