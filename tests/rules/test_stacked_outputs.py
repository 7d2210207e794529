"""What scan-keeps-all-outputs says of stacks in the compiled program: copies of one value, and copies of a stack."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import ExplainedBarrier, Report
from fusionlint.rule import one_of_ours

CODE = """
import jax
import jax.numpy as jnp

def carried(traj, x):
    def step(carry, _):
        traj, x = carry
        x = jnp.sin(x) + traj[:, 0]
        return (traj, x), {"state": (traj, x)}
    return jax.lax.scan(step, (traj, x), None, length=32)[1]

def carried_beside(traj, x):
    def step(x, _):
        x = jnp.sin(x) + traj[:, 0]
        return x, x
    return traj, jax.lax.scan(step, x, None, length=32)[1]

def computed(w, x):
    def step(x, _):
        x = jnp.sin(x) * w[:, 0]
        return x, (x, jnp.sin(w))
    return jax.lax.scan(step, x, None, length=32)[1]

def read(traj, x):
    def step(carry, _):
        traj, x = carry
        x = jnp.sin(x) + traj[:, 0]
        return (traj, x), (traj, x)
    trajs, xs = jax.lax.scan(step, (traj, x), None, length=32)[1]
    return jnp.sort(trajs, axis=0).sum(-1) * xs

def nothing(w, x):
    return jax.lax.scan(lambda x, _: (jnp.sin(x), (x, jnp.zeros_like(w))), x, None, length=32)[1]

def of_the_inner(w, x):
    def outer(x, _):
        def step(x, _):
            x = jnp.sin(x) * w[:, 0]
            return x, (x, w)
        return jax.lax.scan(step, x, None, length=8)
    return jax.lax.scan(outer, x, None, length=4)[1]

def replaced(traj, x):
    def step(carry, _):
        traj, x = carry
        x = jnp.sin(x) + traj[:, 0]
        return (traj * 1.0001, x), (traj, x)
    return jax.lax.scan(step, (traj, x), None, length=32)[1]

def by_hand(w, x):
    def step(i, carry):
        out, x = carry
        return out.at[i].set(w), jnp.sin(x) * w[:, 0]
    return jax.lax.fori_loop(0, 32, step, (jnp.zeros((32, *w.shape)), x))

def small(w, x):
    return jax.lax.scan(lambda x, _: (jnp.sin(x), (x, w[:2])), x, None, length=32)[1]

def of_the_gradient(w, x):
    def step(carry, _):
        w, x = carry
        return (w, jnp.sin(x * w[:, 0])), None
    return jax.grad(lambda w: jax.lax.scan(step, (w, x), None, length=32)[0][1].sum())(w)

def twice(w, x):
    def step(x, _):
        x = jnp.sin(x) * w[:, 0]
        return x, {"state": x, "observation": x}
    return jax.lax.scan(step, x, None, length=32)[1]

def once(w, x):
    return jax.lax.scan(lambda x, _: (jnp.sin(x) * w[:, 0], x), x, None, length=32)

def read_and_returned(w, x):
    xs = jax.lax.scan(lambda x, _: (jnp.sin(x) * w[:, 0], x), x, None, length=32)[1]
    return xs, xs.sum()
"""
GIVEN = "(f32[4096,8], f32[4096])"
SAME = {
    "carried": ("`traj`, f32[4096,8], is the same in all 32 turns", 10),
    "computed": ("an output, f32[4096,8], is the same in all 32 turns", 22),
    "read": ("`traj`, f32[4096,8], is the same in all 32 turns", 29),
    "nothing": ("an output, f32[4096,8] of 0, is the same in all 32 turns", 33),
    "of_the_inner": ("`w`, f32[4096,8], is the same in all 8 turns", 40),
}
QUIET = ["carried_beside", "replaced", "by_hand", "small", "of_the_gradient", "once", "read_and_returned"]


@pytest.fixture(scope="module", params=compilers.each("cpu", "h100"))
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    calls = [f"{name}{GIVEN}" for name in (*SAME, *QUIET, "twice")]
    specs = compilers.written(CODE, calls, tmp_path_factory.mktemp("stacks"))
    return compilers.explained(specs, request.param, [one_of_ours("scan-keeps-all-outputs")])


def said(name: str, reports: dict[str, Report]) -> list[ExplainedBarrier]:
    return [one for one in reports[f"{name}{GIVEN}"].barriers if one.rule]


@pytest.mark.parametrize("name", SAME)
def test_what_is_stacked_in_every_turn_and_always_the_same_is_told_at_the_scan(
    name: str, reports: dict[str, Report]
) -> None:
    what, line = SAME[name]
    (one,) = said(name, reports)
    assert one.advice == f"{what}, and stacked in each: return it once, beside the scan's outputs"
    assert (one.barrier.stack[0].line, one.barrier.launches) == (line, 32)


@pytest.mark.parametrize("name", QUIET)
def test_of_what_changes_or_is_small_or_stacked_by_hand_nothing_is_said(name: str, reports: dict[str, Report]) -> None:
    assert said(name, reports) == []


def test_a_stack_that_is_returned_twice_is_copied_where_xla_makes_one_of_two(
    reports: dict[str, Report],
) -> None:
    advice = {one.advice for one in said("twice", reports)}
    is_on_cpu = reports[f"twice{GIVEN}"].target == "cpu"  # there both are stacked
    expected = "the stacked output is returned 2 times, all but once as a copy: return it once"
    assert advice == (set() if is_on_cpu else {expected})


def test_what_nobody_reads_has_no_readers_and_the_bytes_of_what_is_written(reports: dict[str, Report]) -> None:
    (one,) = said("carried", reports)
    assert one.barrier.readers == ()
    assert (one.barrier.bytes, one.barrier.crossings) == (4096 * 8 * 4, 32)
