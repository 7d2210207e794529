"""What the rules about joined arrays say of the compiled program, on an accelerator that need not be here."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CARTPOLE = Path(__file__).parents[2] / "examples" / "cartpole" / "c_no_rng.py"
CODE = """
import jax
import jax.numpy as jnp

def features(a, b):
    x = jnp.concatenate([a, jnp.sin(b)], axis=1)
    return jnp.tanh(x), x * x + 1

def stacked(a, b):
    x = jnp.stack([jnp.sin(a), jnp.cos(b)], axis=1).reshape(1024, -1)
    return jnp.tanh(x), x * x

def padded(a):
    x = jnp.concatenate([jnp.zeros((1, 512)), jnp.sin(a)])
    return jnp.tanh(x), x * x

def layers(a, b, w):
    x = jnp.concatenate([jnp.sin(a), jnp.cos(b)])
    return x @ w, jnp.tanh(x) @ w

def outputs(state, xs):
    def body(state, x):
        return state * x + 1.0, state
    return jax.lax.scan(body, state, xs, unroll=8)

def walk(x, key):
    def body(carry, _):
        x, key = carry
        key, own = jax.random.split(key)
        return (x + jax.random.normal(own, x.shape), key), None
    return jax.lax.scan(body, (x, key), None, length=64)[0]

def window(state, xs):
    def body(state, x):
        state = jnp.concatenate([state[1:], jnp.sin(x)[None]])
        return state, (state * state).sum(0)
    return jax.lax.scan(body, state, xs)

def multiplied(state, weights):
    def body(state, _):
        a, b = state[..., 0], state[..., 1]
        moved = state @ weights
        return jnp.stack([a + 0.1 * b, b - 0.1 * jnp.sin(a) + moved[..., 0]], axis=-1), None
    return jax.lax.scan(body, state, None, length=64)[0]

def solved(state):
    def field(state):
        a, b, c = state[..., 0], state[..., 1], state[..., 2]
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=-1)
    def body(carry):
        state, slope = carry
        last = field(state + 0.01 * slope)
        return state + 0.005 * (slope + last), field(state + 0.005 * (slope + last))
    return jax.lax.while_loop(lambda carry: carry[0][0, 0] < 100, body, (state, field(state)))[0]
"""
CALLS = (
    "features(f32[1024,512], f32[1024,512])",
    "stacked(f32[1024,512], f32[1024,512])",
    "padded(f32[1024,512])",
    "layers(f32[1024,512], f32[1024,512], f32[512,512])",
    "outputs(f32[1024], f32[130,1024])",
    "walk(f32[1024], key)",
    "window(f32[16,256], f32[100,256])",
    "multiplied(f32[1024,2], f32[2,2])",
    "solved(f32[1024,3])",
)
RULES = tuple(rule for rule in all_rules() if rule.name in ("columns-of-a-stack", "concat-with-several-users"))


@pytest.fixture(scope="module", params=["h100", "v5e"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, str]]]:
    """Function -> (cause, rule) of the barriers that a rule explains."""
    specs = {"rollout": f"{CARTPOLE}:rollout", **compilers.written(CODE, CALLS, tmp_path_factory.mktemp("code"))}
    return {
        call.partition("(")[0]: {(one.barrier.cause, one.rule) for one in report.barriers if one.rule}
        for call, report in compilers.explained(specs, request.param, RULES).items()
    }


@pytest.mark.parametrize("told", ["h100"], indirect=True)  # a TPU copies nothing
def test_a_state_that_is_stacked_each_step_costs_a_kernel_and_a_copy(told: dict[str, set[tuple[str, str]]]) -> None:
    assert told["rollout"] == {("concatenate", "columns-of-a-stack"), ("copy", "columns-of-a-stack")}


@pytest.mark.parametrize("told", ["h100"], indirect=True)  # a TPU does both in one kernel
def test_a_concatenate_that_two_kernels_make_again(told: dict[str, set[tuple[str, str]]]) -> None:
    assert told["features"] == {("concatenate", "concat-with-several-users")}


@pytest.mark.parametrize("name", ["stacked", "padded", "layers"])
def test_what_the_page_says_is_no_case_is_none(told: dict[str, set[tuple[str, str]]], name: str) -> None:
    assert not told[name]


def test_a_key_that_goes_round_is_no_state_of_columns(told: dict[str, set[tuple[str, str]]]) -> None:
    assert {rule for _, rule in told["walk"]} <= {"key-split-in-scan"}


def test_neither_a_window_that_shifts_nor_the_outputs_of_unrolled_steps_are_a_state_of_columns(
    told: dict[str, set[tuple[str, str]]],
) -> None:
    assert "columns-of-a-stack" not in {rule for _, rule in told["window"] | told["outputs"]}


@pytest.mark.parametrize("told", ["h100"], indirect=True)  # a TPU stacks and multiplies in one kernel
def test_a_state_that_is_multiplied_too_is_to_stay_an_array(told: dict[str, set[tuple[str, str]]]) -> None:
    """Carried in parts it is stacked for the product in each step: on an H100 258 launches become 260."""
    assert not told["multiplied"]


def test_a_slope_that_the_next_step_adds_whole_is_to_stay_an_array(told: dict[str, set[tuple[str, str]]]) -> None:
    """diffrax's Dopri5 keeps the last of a step: of three variables apart an H100 launches 28 kernels instead of 17."""
    assert "columns-of-a-stack" not in {rule for _, rule in told["solved"]}
