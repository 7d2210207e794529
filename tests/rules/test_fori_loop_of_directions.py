"""fori-loop-without-unroll: steps that roll a board, one direction after the other."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def turned(own, other, shifts, masks):
    def towards(i, found):
        {step}

    return jax.lax.fori_loop(0, {count}, towards, jnp.zeros(64, dtype=bool))
"""


def found(step: str, count: str = "8") -> int:
    code = CODE.format(step=step, count=count)
    return len(check_text(code.encode(), "m.py", Scope(("fori-loop-without-unroll",))))


ROLLED = "return found | (jnp.roll(own, shifts[i]) & other & masks[i])"


@pytest.mark.parametrize(
    "step",
    [
        ROLLED,
        "return jax.lax.cond((jnp.roll(own, shifts[i]) & other).any(), lambda: found | own, lambda: found)",
        "return jax.lax.cond(found[shifts[i]], lambda: jnp.where(own, True, found), lambda: found)",
    ],
)
def test_moves_and_choices_are_small_steps(step: str) -> None:
    assert found(step) == 1


@pytest.mark.parametrize(
    "step",
    [
        "return found / jnp.sum(found)",
        "return found | jnp.roll(own, shifts[i]).any() | jnp.roll(other, shifts[i]).any()",
        "return jnp.roll(found, 1).at[i].set(True)",
        "return jnp.roll(found, 1) @ other",
        "return found | jax.vmap(lambda shift: jnp.roll(own, shift))(shifts).any()",
    ],
)
def test_steps_of_other_kernels_are_left_alone(step: str) -> None:
    assert found(step) == 0


def test_many_steps_are_a_loop() -> None:
    assert found(ROLLED, "64") == found(ROLLED, "own.shape[0]") == 0


@pytest.mark.parametrize(("rolls", "is_fixed"), [(4, True), (5, False)])
def test_a_step_that_rolls_what_it_rolled_many_times_is_no_fix(rolls: int, is_fixed: bool) -> None:
    """An H200's kernels take longer then: docs/fixed.md, pgx's Othello."""
    step = "own"
    for _ in range(rolls):
        step = f"(jnp.roll({step}, shifts[i]) & other)"
    code = CODE.format(step=f"return found | {step}", count="8")
    (finding,) = check_text(code.encode(), "m.py", Scope(("fori-loop-without-unroll",)))
    assert finding.suggestion is not None
    assert bool(finding.suggestion.edits) is is_fixed
    assert ("time it" in finding.suggestion.text) is not is_fixed
