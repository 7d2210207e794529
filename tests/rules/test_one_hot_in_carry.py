"""one-hot-in-carry: where the next step multiplies what it is handed, and where not."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import haiku as hk
import jax
import jax.numpy as jnp

@jax.jit
def decode(h, first, w_in, w_out, n):
    def step(carry, seen):
        h, last = carry
        h = jnp.tanh(h + {multiplied})
        token = {drawn}
        last = jax.nn.one_hot(token, n)
        return {returned}

    return jax.lax.scan(step, (h, first), None, length=32)
"""


def found(multiplied: str = "last @ w_in", drawn: str = "jnp.argmax(h, -1)", returned: str = "(h, last), token") -> int:
    code = CODE.format(multiplied=multiplied, drawn=drawn, returned=returned)
    return len(check_text(code.encode(), "m.py", Scope(("one-hot-in-carry",))))


@pytest.mark.parametrize("multiplied", ["last @ w_in", "jnp.dot(last, w_in)", "hk.Linear(64)(last)"])
def test_what_is_carried_is_multiplied_by_the_next_step(multiplied: str) -> None:
    assert found(multiplied) == 1


@pytest.mark.parametrize("multiplied", ["w_out @ last", "jnp.concatenate([last, h]) @ w_in", "last", "h @ w_in"])
def test_what_else_is_done_with_it_is_left_alone(multiplied: str) -> None:
    assert found(multiplied) == 0


def test_the_place_in_the_carry_counts() -> None:
    assert found(returned="(last, h), token") == 0
    assert found(returned="(h, h), last") == 0


def test_a_token_that_is_read_is_none_that_is_drawn() -> None:
    assert found(drawn="seen") == 0
    assert found(drawn="jax.random.categorical(jax.random.key(0), h)") == 1
