"""cond-around-a-write: a buffer that is rolled to make room at its end, and what is no such buffer."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

class Queue:
    def insert(self, state, update):
        roll = jnp.minimum(0, len(state.data) - state.at - len(update))
        data = jax.lax.cond(roll < 0, lambda: jnp.roll(state.data, roll, axis=0), lambda: state.data)
        data = jax.lax.dynamic_update_slice_in_dim(data, update, state.at + roll, axis=0)
        return state.replace(data=data, at=state.at + roll + len(update))
"""


def found(code: str) -> list[tuple[str, int]]:
    findings = check_text(code.encode(), "m.py", Scope(("cond-around-a-write", "cond-for-where")))
    return [(f.rule, f.location.line) for f in findings]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("roll < 0", "roll", id="a number as the condition"),
        pytest.param(
            "jax.lax.dynamic_update_slice_in_dim(data, update, state.at + roll, axis=0)",
            "data.at[state.at + roll].set(update)",
            id="one place",
        ),
        pytest.param("lambda: state.data)", "lambda x: x, state.data)", id="by an operand"),
    ],
)
def test_a_buffer_that_makes_room_is_moved_whole(old: str, new: str) -> None:
    code = CODE.replace(old, new)
    if "lambda x: x" in code:
        code = code.replace("lambda: jnp.roll(state.data,", "lambda x: jnp.roll(x,")
    assert found(CODE) == found(code) == [("cond-around-a-write", 8)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("jnp.roll(state.data, roll,", "jnp.roll(state.data, 1,", id="by a number"),
        pytest.param("dynamic_update_slice_in_dim(data,", "dynamic_update_slice_in_dim(update,", id="not written"),
        pytest.param("lambda: state.data)", "lambda: state.data * 2)", id="nothing is handed back"),
    ],
)
def test_other_rolls_are_not(old: str, new: str) -> None:
    assert ("cond-around-a-write", 8) not in found(CODE.replace(old, new))
