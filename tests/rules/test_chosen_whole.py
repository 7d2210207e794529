"""What while-loop-under-vmap says of the compiled program: arrays that are written in part and chosen whole."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import ExplainedBarrier, Report
from fusionlint.rule import one_of_ours

CODE = """
import jax
import jax.numpy as jnp

def counted(xs, n):
    def one(x, n):
        def turn(carry):
            i, x, at = carry
            at = (at * 7 + i) % 1024
            return i + 1, x.at[at].add(1.0), at
        return jax.lax.while_loop(lambda carry: carry[0] < n, turn, (0, x, 0))[1]
    return jax.vmap(one)(xs, n)

def counted_together(xs, n):
    rows = jnp.arange(len(xs))
    def turn(carry):
        i, xs, at = carry
        goes_on = i < n
        at = (at * 7 + i) % 1024
        return i + 1, xs.at[rows, at].add(jnp.where(goes_on, 1.0, 0.0)), at
    start = (jnp.zeros_like(n), xs, jnp.zeros_like(n))
    return jax.lax.while_loop(lambda carry: (carry[0] < n).any(), turn, start)[1]

def sliced(xs, n):
    def one(x, n):
        def turn(carry):
            i, x = carry
            row = jax.lax.dynamic_slice(x, (i,), (16,)) * 2
            return i + 1, jax.lax.dynamic_update_slice(x, row, (i + 16,))
        return jax.lax.while_loop(lambda carry: carry[0] < n, turn, (0, x))[1]
    return jax.vmap(one)(xs, n)

def made_anew(xs, n):
    turn = lambda carry: (carry[0] + 1, jnp.tanh(carry[1]) * 2)
    one = lambda x, n: jax.lax.while_loop(lambda carry: carry[0] < n, turn, (0, x))[1]
    return jax.vmap(one)(xs, n)

def of_known_length(xs, n):
    one = lambda x, n: jax.lax.fori_loop(0, 50, lambda i, x: x.at[(i * 7 + n) % 1024].add(1.0), x)
    return jax.vmap(one)(xs, n)

def chosen_by_hand(xs, n):
    rows = jnp.arange(len(xs))
    def turn(carry):
        i, xs = carry
        return i + 1, jnp.where((i < n)[:, None], xs.at[rows, i].add(1.0), xs)
    return jax.lax.while_loop(lambda carry: (carry[0] < n).any(), turn, (jnp.zeros_like(n), xs))[1]
"""
LARGE, SMALL = "(f32[256,1024], i32[256])", "(f32[8,1024], i32[8])"
LOUD = {f"counted{LARGE}": (11, "1.0 kB"), f"sliced{LARGE}": (30, "16.4 kB")}
QUIET = [f"{name}{LARGE}" for name in ("counted_together", "made_anew", "of_known_length", "chosen_by_hand")] + [
    f"counted{SMALL}"
]


@pytest.fixture(scope="module", params=compilers.each("cpu", "h100"))
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    specs = compilers.written(CODE, [*LOUD, *QUIET], tmp_path_factory.mktemp("chosen"))
    return compilers.explained(specs, request.param, [one_of_ours("while-loop-under-vmap")])


def said(call: str, reports: dict[str, Report]) -> list[ExplainedBarrier]:
    return [one for one in reports[call].barriers if one.rule]


@pytest.mark.parametrize("call", LOUD)
def test_the_copy_the_write_and_the_choice_are_told_with_what_of_it_was_needed(
    call: str, reports: dict[str, Report]
) -> None:
    line, part = LOUD[call]
    found = said(call, reports)
    choice = "copies 1.0 MB in every turn and chooses all of it between old and new, for"
    said_of_all = {one.advice.partition(" that are")[0] for one in found}
    assert said_of_all == {f"vectorized, the loop at code.py:{line} {choice} {part}"}
    assert {one.barrier.cause for one in found} == {"copy", "scatter", "loop carry"}


@pytest.mark.parametrize("call", QUIET)
def test_of_what_is_written_in_place_made_anew_or_small_nothing_is_said(call: str, reports: dict[str, Report]) -> None:
    assert said(call, reports) == []
