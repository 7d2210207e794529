"""What scan-without-unroll says of the compiled program, on accelerators that need not be here."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import Report
from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def advantages(rewards, values, dones, last, unroll):
    def step(carry, transition):
        gae, next_value = carry
        reward, value, done = transition
        delta = reward + 0.99 * next_value * (1 - done) - value
        gae = delta + 0.99 * 0.95 * (1 - done) * gae
        return (gae, value), gae
    return jax.lax.scan(step, (last, last), (rewards, values, dones), reverse=True, unroll=unroll)[1]

def filtered(x, rates):
    return jax.lax.scan(lambda x, rate: (x * rate + 1.0, None), x, rates)[0]

def counted(x, rates):
    def step(carry):
        i, x = carry
        return i + 1, x * rates[i] + 1.0
    return jax.lax.while_loop(lambda carry: carry[0] < 100, step, (0, x))[1]

def simulated(x):
    return jax.lax.scan(lambda x, _: (x + 0.1 * x * (1 - x), None), x, None, length=100)[0]

def masses(xs):
    return jax.lax.scan(lambda i, x: (i + 1, x * 2 + i), 0, xs)[1]

def network(x, inputs, w):
    return jax.lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), x, inputs)[0]

def centred(x, inputs):
    return jax.lax.scan(lambda h, x: (h - jnp.mean(h * x), None), x, inputs)[0]

def noisy(x, keys):
    return jax.lax.scan(lambda x, key: (x + jax.random.normal(key, x.shape), None), x, keys)[0]

def cut(images, corners):
    return jax.vmap(lambda image, y: jax.lax.dynamic_slice(image, (y, y, 0), (24, 24, 3)))(images, corners)

def shifted(window, inputs):
    return jax.lax.scan(lambda w, x: (jnp.concatenate([w[1:], x[None]]) * 0.5, None), window, inputs)[0]
"""
ROWS = ", ".join(["f32[128,1024]"] * 3 + ["f32[1024]"])
COUNTED = "counted(f32[64], f32[100,64])"
LOUD = [
    f"advantages({ROWS}, 1)",
    "advantages(f32[128], f32[128], f32[128], f32[], 1)",
    "filtered(f32[64], f32[100])",
    "simulated(f32[64])",
    "centred(f32[64], f32[100,64])",
    COUNTED,
]
# By its own estimate a TPU is no faster for several products or moves at once.
OF_A_GPU = ["network(f32[64], f32[100,64], f32[64,64])", "shifted(f32[8,64], f32[100,64])"]
QUIET = [
    f"advantages({ROWS}, 16)",
    "filtered(f32[1048576], f32[100,1048576])",  # a step takes longer than a launch
    "filtered(f32[64], f32[3,64])",
    "simulated(f32[1048576])",
    "masses(f32[100,64])",
    "network(f32[512], f32[100,512], f32[512,512])",
    "noisy(f32[64], key[100])",
    "cut(f32[16,32,32,3], i32[16])",  # a loop of XLA's own
]


@pytest.fixture(scope="module", params=["h100", "v5e", "cpu"])
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    specs = compilers.written(CODE, [*LOUD, *OF_A_GPU, *QUIET], tmp_path_factory.mktemp("code"))
    return compilers.explained(specs, request.param, all_rules())


def test_tiny_steps_are_told_where_the_page_shows_harm(reports: dict[str, Report]) -> None:
    for spec in LOUD:
        assert ("scan-without-unroll" in compilers.told(reports[spec])) == (reports[spec].target != "cpu"), spec


def test_small_products_and_moves_are_told_of_a_gpu(reports: dict[str, Report]) -> None:
    for spec in OF_A_GPU:
        is_told = "dynamic-program-without-unroll" in compilers.told(reports[spec])
        assert is_told == (reports[spec].target == "h100"), spec


def test_what_does_more_in_a_step_is_left_alone(reports: dict[str, Report]) -> None:
    for spec in QUIET:
        target = reports[spec].target
        own = {"vmapped-dynamic-slice"} if spec.startswith("cut(") and target == "v5e" else set()
        if spec.startswith("masses(") and target != "cpu":
            own = {"lax-map-for-vmap"}  # its steps only count
        if spec.startswith("noisy(") and target != "cpu":
            own = {"scalar-loop"}  # its steps only add; a CPU hashes in a loop
        assert compilers.told(reports[spec]) == own, (spec, target)


def test_a_while_loop_is_told_that_it_takes_a_scan(reports: dict[str, Report]) -> None:
    """It has no `unroll` of its own."""
    report = reports[COUNTED]
    advice = {told.advice for told in report.barriers if told.rule == "scan-without-unroll"}
    assert all(one.startswith("a scan with unroll=16") for one in advice)
    assert bool(advice) == (report.target != "cpu")


def test_the_advice_saves_what_it_says(reports: dict[str, Report]) -> None:
    one, sixteen = (reports[f"advantages({ROWS}, {times})"] for times in (1, 16))
    if one.target != "cpu":
        assert sixteen.launches < one.launches / 5
        assert sixteen.microseconds is not None
        assert one.microseconds is not None
        assert sixteen.microseconds < one.microseconds / 4
