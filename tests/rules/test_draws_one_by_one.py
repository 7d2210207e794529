"""draws-one-by-one: which draws one draw could make."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

class Walker:
    def reset(self, key):
        return key

    def step(self, state, key, extra):
        k1, k2, k3 = jax.random.split(key, 3)
        speed = {first}
        side = {second}
        turn = {third}
        return state, speed, side, turn
"""
UNIFORM = "jax.random.uniform({})".format


@pytest.mark.parametrize(
    ("first", "second", "third", "count"),
    [
        (UNIFORM("k1"), UNIFORM("k2"), UNIFORM("k3"), 1),
        # A field that is called as a variable is none of it.
        (UNIFORM("k1"), UNIFORM("k2, maxval=self.config.speed[1]"), UNIFORM("k3, maxval=self.speed"), 1),
        (UNIFORM("k1"), UNIFORM("k2, maxval=speed"), UNIFORM("k3"), 0),
        (UNIFORM("k1"), UNIFORM("k1"), UNIFORM("k3"), 0),
        (UNIFORM("k1"), UNIFORM("k2"), "jax.random.normal(k3)", 0),
        (UNIFORM("k1"), UNIFORM("k2"), UNIFORM("k3, dtype=jnp.float16"), 0),
        (UNIFORM("k1"), UNIFORM("k2"), UNIFORM("k3, (4,)"), 1),
        (UNIFORM("k1"), UNIFORM("k2"), UNIFORM("k3") + " if state else 0.0", 0),
        (UNIFORM("k1, extra.shape"), UNIFORM("k2, (self.n, 2)"), UNIFORM("k3"), 1),
        (UNIFORM("k1, (self.n, self.m)"), UNIFORM("k2, (self.n, self.m)"), UNIFORM("k3, (self.n, self.m)"), 0),
        ("jax.random.bernoulli(k1, 0.1)", "jax.random.bernoulli(k2, 0.2)", "jax.random.bernoulli(k3, extra.p)", 1),
    ],
)
def test_draws_are_counted_that_need_nothing_of_each_other(first: str, second: str, third: str, count: int) -> None:
    code = CODE.format(first=first, second=second, third=third)
    assert len(check_text(code.encode(), "m.py", Scope(("draws-one-by-one",)))) == count


def test_bounds_that_differ_become_arrays() -> None:
    code = CODE.format(first=UNIFORM("k1, minval=-1.0"), second=UNIFORM("k2"), third=UNIFORM("k3, maxval=2.0"))
    (found,) = check_text(code.encode(), "m.py", Scope(("draws-one-by-one",)))
    assert found.suggestion is not None
    assert "(3,), minval=jnp.array([-1.0, 0.0, 0.0]), maxval=jnp.array([1.0, 1.0, 2.0]))" in found.suggestion.text


def test_a_reset_that_no_step_makes_runs_once() -> None:
    code = CODE.replace("def step(", "def _perturbed(").format(
        first=UNIFORM("k1"), second=UNIFORM("k2"), third=UNIFORM("k3")
    )
    assert not check_text(code.encode(), "m.py", Scope(("draws-one-by-one",)))
