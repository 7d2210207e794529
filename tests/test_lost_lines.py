"""The line of work that XLA rewrote without its metadata is that where it was written, not that of what feeds it."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.explained import Report

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def one(x):
    y = jnp.sin(x) + 1.0
    z = jnp.cumsum(y)  # one
    return z * 3.0

def two(x, y):
    a = jnp.sin(x)
    b = jnp.cos(y)
    c = jnp.cumsum(a)  # first
    d = jnp.cumprod(b)  # second
    return c * d

def within(x, y):
    a = jnp.sin(x)
    b = jnp.cos(y)
    c = twice(a)  # called first
    d = twice(b)  # called second
    return c * d

def added(x, y):
    a = jnp.cumsum(x, axis=0)  # first
    b = jnp.cumsum(y, axis=1)  # second
    return a * b

def one_is_made_of_something(x):
    a = jnp.cumsum(x, axis=0)  # first
    b = jnp.cumsum(  # second
        x * 2, axis=1  # something
    )
    return a * b

def by_another_operation(x):
    a = jnp.cumsum(x, axis=0)  # first
    b = jnp.cumprod(x, axis=1)  # second
    return a * b

def summed(x, y):
    both = jnp.stack([jnp.sin(x), y * 2.0])
    both = both * jnp.cumsum(jnp.cos(both), axis=1)  # running
    return both.sum()  # whole

def layers(x, weights, bias):
    def layer(x):
        x = weights @ x  # product
        return x + bias
    return jnp.sum(jax.nn.gelu(jax.vmap(layer)(x)))

def slopes(x, weights, bias):
    return jax.grad(layers)(x, weights, bias)

@jax.jit
def twice(x):
    return jnp.cumsum(x) * 2.0  # inner
"""


@pytest.fixture(scope="module", params=["h100", "v5e", "cpu"])
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    calls = ["one(f32[10000])", *(f"{name}(f32[10000], f32[10000])" for name in ("two", "within", "summed"))]
    calls += ["added(f32[256,256], f32[256,256])"]
    calls += [f"{name}(f32[256,128], f32[512,128], f32[512])" for name in ("layers", "slopes")]
    calls += [f"{name}(f32[256,256])" for name in ("one_is_made_of_something", "by_another_operation")]
    reports = compilers.explained(compilers.written(CODE, calls, tmp_path_factory.mktemp("code")), request.param)
    return {call.partition("(")[0]: report for call, report in reports.items()}


def _comments(report: Report) -> set[str]:
    """What the lines of the sums over windows are called, from the innermost frame out."""
    lines = CODE.splitlines()
    sums = [one.barrier for one in report.barriers if "reduce-window" in one.barrier.opcodes]
    stacks = [barrier.stack for barrier in sums if barrier.cause != "concatenate"]
    assert stacks
    return {" < ".join(lines[frame.line - 1].partition("# ")[2] for frame in stack) for stack in stacks}


def test_a_cumulative_sum_is_shown_where_it_is_written(reports: dict[str, Report]) -> None:
    assert _comments(reports["one"]) == {"one"}


def test_each_of_two_is_shown_at_its_own_line(reports: dict[str, Report]) -> None:
    assert _comments(reports["two"]) == {"first", "second"}


def test_what_takes_arguments_of_the_program_is_told_apart_by_them(reports: dict[str, Report]) -> None:
    assert _comments(reports["added"]) == {"first", "second"}
    assert _comments(reports["one_is_made_of_something"]) == {"first", "second"}


def test_a_running_product_is_no_running_sum_of_the_same_argument(reports: dict[str, Report]) -> None:
    assert _comments(reports["by_another_operation"]) == {"first", "second"}


def test_one_that_is_called_twice_is_shown_with_each_of_its_calls(reports: dict[str, Report]) -> None:
    assert _comments(reports["within"]) == {"inner < called first", "inner < called second"}


def test_a_sum_in_two_steps_is_not_taken_for_the_running_one_beside_it(reports: dict[str, Report]) -> None:
    assert "running" in _comments(reports["summed"])
    assert _comments(reports["summed"]) <= {"running", "whole"}


@pytest.mark.parametrize("name", ["layers", "slopes"])
def test_a_mapped_product_is_shown_where_it_is_written_not_where_its_axes_are_turned(
    reports: dict[str, Report], name: str
) -> None:
    """jax.vmap turns them for what is added next, and XLA makes one product of both."""
    barriers = [one.barrier for one in reports[name].barriers]
    lines = {barrier.stack[0].line for barrier in barriers if "dot" in (barrier.cause, barrier.detail)}
    (written,) = (number for number, line in enumerate(CODE.splitlines(), 1) if line.endswith("# product"))
    assert lines <= {written}
    gradients = {barrier.of_gradient for barrier in barriers if "dot" in (barrier.cause, barrier.detail)}
    assert gradients <= ({True, False} if name == "slopes" else {False})


STACKS = """
import jax.numpy as jnp

def rows(a, b):
    found = [b[:, 0]]
    for i in range(1, 6):
        before = jnp.stack(found, axis=1)  # joined
        found.append(b[:, i] - jnp.sum(a[:, i, :i, None] * before, axis=1))
    return jnp.stack(found, axis=1)  # at the end
"""


def test_what_a_tpu_joins_by_writing_part_after_part_is_a_concatenate_at_the_line_of_the_join(tmp_path: Path) -> None:
    """It was an in-place update that nobody wrote, at the lines of the parts, and a custom call `AllocateBuffer`."""
    call = "rows(f32[8,16,16], f32[8,16,32])"
    (report,) = compilers.explained(compilers.written(STACKS, [call], tmp_path), "v5e").values()
    barriers = [one.barrier for one in report.barriers if one.barrier.cause != "copy"]
    lines = STACKS.splitlines()
    shown = {lines[barrier.stack[0].line - 1].partition("# ")[2] for barrier in barriers}
    assert ({barrier.cause for barrier in barriers}, shown) == ({"concatenate"}, {"joined", "at the end"})
