"""cond-around-an-update: updates that are made now and then."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp
import optax
from functools import partial

class Agent:
    def update(self, state, grads):
        tx = optax.adam(state.rate)

        def apply():
            changes, opt = {update}
            return {applied}, opt

        kept = (state.params, state.opt)
        return jax.lax.cond({test}, lambda _: apply(), lambda _: kept, None)

    def make(self):
        run = partial(jax.lax.scan, {handed})
        return {made}
"""
SAID = {
    "update": "tx.update(grads, state.opt)",
    "applied": "optax.apply_updates(state.params, changes)",
    "test": "state.steps % state.delay == 0",
    "handed": "self.update",
    "made": "run",
}


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ({}, 1),
        ({"applied": "jax.tree.map(jnp.add, state.params, changes)"}, 1),
        ({"applied": "changes"}, 0),  # of a Hessian, perhaps
        ({"update": "tx.update(jax.grad(state.loss)(state.params), state.opt)"}, 0),
        ({"test": "state.steps > 100"}, 0),
        ({"made": "jax.vmap(run)"}, 0),  # a choice already
        ({"made": "jax.vmap(run)", "handed": "self.play"}, 1),
    ],
)
def test_what_applies_a_gradient_that_is_there_is_best_done_always(said: dict[str, str], count: int) -> None:
    code = CODE.format(**{**SAID, **said})
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-an-update",)))) == count
