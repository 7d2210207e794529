"""What the writes of a loop cost a GPU hangs on what they make and on what reads it: so do the targets."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ROWS = """\
import jax
import jax.numpy as jnp

@jax.jit
def scored(x, y, w, idx):
    out = jnp.zeros((16, 64))
    for i in range(16):
        out = out.at[i].set(jnp.sin(x[i]) * y[i])
    return 2.0 * out
"""
GAINS = """\
import jax
import jax.numpy as jnp

@jax.jit
def gains(rewards, values, last, w):
    gain = 0.0
    found = jnp.zeros_like(rewards)
    for i in reversed(range(16)):
        following = values[i + 1] if i < 15 else last
        gain = rewards[i] - values[i] + 0.99 * (following + 0.95 * gain)
        found = found.at[i].set(gain)
    return found + values, found - found.mean()
"""


def targets(code: str) -> tuple[str, ...]:
    (found,) = check_text(code.encode(), "env.py", Scope(("chained-at-set",)))
    return found.targets


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(16)", "[0, 3, 5]"),
        ("2.0 * out", "jnp.where(x > 0, out, x)"),
        ("2.0 * out", "out[0] * out[1] - w @ out[2]"),
        (".at[i].set", ".at[i, :].set"),
        ("jnp.zeros((16, 64))", "jnp.zeros(x.shape)"),
    ],
)
def test_rows_of_a_new_array_that_elementwise_work_reads_are_no_cost_on_a_gpu(old: str, new: str) -> None:
    assert targets(ROWS) == ("cpu", "v5e")
    code = ROWS.replace(old, new)
    assert targets(code if "shape" not in new else code.replace(".at[i].set", ".at[..., i, :].set")) == ("cpu", "v5e")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0 * out", "out"),  # handed out as it is
        ("2.0 * out", "out @ w"),  # by a library
        ("2.0 * out", "2.0 * out.T, out @ w"),
        (".at[i].set(jnp.sin(x[i]) * y[i])", ".at[:, i].set(jnp.sin(x[:, i]) * y[:, i])"),  # columns
        ("jnp.zeros((16, 64))", "jnp.zeros_like(x)"),  # numbers, for all that is seen
        ("jnp.zeros((16, 64))", "jnp.zeros(16)"),
        ("jnp.zeros((16, 64))", "x"),
        (".at[i].set", ".at[i].add"),
        ("range(16)", "idx"),  # an array's numbers are not known
    ],
)
def test_others_are_a_kernel_each_there_too(old: str, new: str) -> None:
    code = ROWS.replace(old, new).replace("x, y, w, idx", "x, y, w, idx: jax.Array")
    assert "h100" in targets(code)


def test_an_elementwise_recurrence_is_told_of_a_cpu_alone() -> None:
    assert targets(GAINS) == ("cpu",)
    assert targets(GAINS.replace("return found + values, found - found.mean()", "return found.mean()")) == ("cpu",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return found + values, found - found.mean()", "return found"),
        ("0.95 * gain", "w @ gain"),
        ("0.95 * gain", "advance(gain)"),
        ("jnp.zeros_like(rewards)", "rewards"),
    ],
)
def test_a_recurrence_that_is_handed_out_or_made_by_libraries_is_told_of_a_gpu_too(old: str, new: str) -> None:
    assert "h100" in targets(GAINS.replace(old, new))


GRID = """\
import jax
import jax.numpy as jnp

@jax.jit
def neighbours(color, mask, start):
    h, w = color.shape
    steps = jnp.array([[-1, 0], [0, 1]])
    places = jnp.mgrid[:h, :w].transpose(1, 2, 0)[:, :, None, :] + steps[None, None]
    none = jnp.iinfo(places.dtype).max
    places = places.at[0, :, 0, :].set(none)
    places = places.at[h - 1, :, 1, :].set(none)
    places = jnp.where(mask[:, :, None, None], places, none)
    return color.at[places[..., 0], places[..., 1]].get(mode="fill", fill_value=0)
"""


@pytest.mark.parametrize(("start", "is_known"), [("steps[None, None]", True), ("start", False)])
def test_a_grid_of_places_a_gpu_makes_where_it_looks_up(start: str, is_known: bool) -> None:
    assert ("h100" not in targets(GRID.replace("steps[None, None]", start))) == is_known
