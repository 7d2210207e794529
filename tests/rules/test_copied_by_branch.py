"""What cond-around-a-write says of the compiled program: branches in a loop that copy what they do not change."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import ExplainedBarrier, Report
from fusionlint.rule import one_of_ours

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def corrected(h, g, n):
    def step(i, carry):
        h, g = carry
        h = jax.lax.cond(g.sum() > 0, lambda h: h + jnp.outer(g, g), lambda h: h, h)
        return h, jnp.tanh(h @ g)
    return jax.lax.fori_loop(0, n, step, (h, g))

def logged(h, g, n):
    def step(i, carry):
        h, g = carry
        h = jax.lax.cond(i % 10 == 0, lambda h: h.at[i // 10].set(g), lambda h: h, h)
        return h, jnp.sin(g) * 1.01
    return jax.lax.fori_loop(0, n, step, (h, g))

def corrected_if_accepted(h, g, n):
    def accepted(carry):
        h, g = carry
        v = h @ g
        h = jax.lax.cond(g @ v > 0, lambda h: h + jnp.outer(g, v), lambda h: h, h)
        return h, jnp.tanh(h @ g)
    def step(i, carry):
        return jax.lax.cond(i % 3 == 0, accepted, lambda carry: (carry[0], carry[1] * 0.5), carry)
    return jax.lax.fori_loop(0, n, step, (h, g))

def chosen(h, g, n):
    def step(i, carry):
        h, g = carry
        h = jnp.where(g.sum() > 0, h + jnp.outer(g, g), h)
        return h, jnp.tanh(h @ g)
    return jax.lax.fori_loop(0, n, step, (h, g))

def multiplied(h, g, n):
    def step(i, carry):
        h, g = carry
        h = jax.lax.cond(i % 10 == 0, lambda h: h @ h * 1e-3, lambda h: h, h)
        return h, jnp.tanh(h @ g)
    return jax.lax.fori_loop(0, n, step, (h, g))

def without_a_loop(h, g, n):
    return jax.lax.cond(n > 0, lambda h: h + jnp.outer(g, g), lambda h: h, h)

def both_change(h, g, n):
    def step(i, carry):
        h, g = carry
        h = jax.lax.cond(g.sum() > 0, lambda h: h + jnp.outer(g, g), lambda h: h * 0.5, h)
        return h, jnp.tanh(h @ g)
    return jax.lax.fori_loop(0, n, step, (h, g))
"""
LARGE, SMALL = "(f32[512,512], f32[512], i32[])", "(f32[64,64], f32[64], i32[])"
LOUD = {f"corrected{LARGE}": 8, f"logged{LARGE}": 15, f"corrected_if_accepted{LARGE}": 23}
QUIET = [
    *(f"{name}{LARGE}" for name in ("chosen", "multiplied", "without_a_loop", "both_change")),
    *(f"{name}{SMALL}" for name in ("corrected", "logged")),
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    specs = compilers.written(CODE, [*LOUD, *QUIET], tmp_path_factory.mktemp("branches"))
    return compilers.explained(specs, "h100", [one_of_ours("cond-around-a-write")])


def said(call: str, reports: dict[str, Report]) -> list[ExplainedBarrier]:
    return [one for one in reports[call].barriers if one.rule]


@pytest.mark.parametrize("call", LOUD)
def test_the_copy_of_a_branch_that_changes_nothing_is_told_with_its_cond(call: str, reports: dict[str, Report]) -> None:
    copied = f"the branch of the cond at code.py:{LOUD[call]} that changes nothing copies all 1.0 MB: "
    told = {one.advice.startswith(copied) for one in said(call, reports) if one.advice}
    # Of a piece that is written what goes into the branches is told as well.
    assert told == ({True, False} if "logged" in call else {True})


@pytest.mark.parametrize("call", QUIET)
def test_of_long_work_of_small_arrays_and_outside_of_loops_nothing_is_said(
    call: str, reports: dict[str, Report]
) -> None:
    assert said(call, reports) == []
