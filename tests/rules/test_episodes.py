"""Episodes that a `vmap` plays beside each other, each in a loop of its own."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

_HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\n\n"


@pytest.mark.parametrize(
    "code",
    [
        """
class Evaluator:
    def _play(self, params, key):
        def turn(carry):
            state, total = carry
            state, timestep = self.eval_env.step(state, self.act(params, state))
            return state, total + timestep.reward

        start = self.eval_env.reset(key), 0.0
        return jax.lax.while_loop(lambda carry: ~carry[0].last(), turn, start)  # error

    def run(self, params, keys):
        return jax.vmap(self._play, in_axes=(None, 0))(params, keys)
""",
        """
def rollout(env, act, key):
    def goes_on(carry):
        count, state, done, rows = carry
        return (count < 100) & ~done

    def turn(carry):
        count, state, done, rows = carry
        state, done = env.step(state, act(state))
        return count + 1, state, done, rows.at[count].set(state.reward)

    return jax.lax.while_loop(goes_on, turn, (0, env.reset(key), False, jnp.zeros(100)))  # error

def rollouts(env, act, keys):
    return jax.jit(jax.vmap(functools.partial(rollout, env, act)))(keys)
""",
    ],
    ids=["a method", "a partial, with what it records"],
)
def test_an_episode_that_is_vectorized_is_found(code: str) -> None:
    text = _HEAD + code
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# error")]
    found = check_text(text.encode(), "m.py", Scope(("while-loop-under-vmap",)))
    assert [finding.location.line for finding in found] == marked
