"""rope-by-copies: the ways in which pairs of neighbours are taken apart, and put together again."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def turned(x, cos, sin):
    {apart}
    one, other = a * cos - b * sin, a * sin + b * cos
    return {joined}
"""
STRIDED = "a, b = x[..., ::2], x[..., 1::2]"
JOINED = "jnp.stack([one, other], axis=-1).reshape(x.shape)"


def found(apart: str = STRIDED, joined: str = JOINED) -> int:
    return len(check_text(CODE.format(apart=apart, joined=joined).encode(), "m.py", Scope(("rope-by-copies",))))


@pytest.mark.parametrize(
    "apart",
    [
        STRIDED,
        "x = x.reshape(*x.shape[:-1], -1, 2)\n    a, b = x[..., 0], x[..., 1]",
        "x = x.reshape(x.shape[:-1] + (-1, 2))\n    a, b = x[..., 0], x[..., 1]",
        "a, b = jnp.moveaxis(x.reshape(x.shape[:-1] + (-1, 2)), -1, 0)",
        "a, b = jnp.moveaxis(x.reshape(8, -1, 2), source=-1, destination=0)",
    ],
)
def test_pairs_are_taken_apart_by_strides_or_by_an_axis_of_two(apart: str) -> None:
    assert found(apart) == 1


@pytest.mark.parametrize(
    "apart",
    [
        "a, b = jnp.moveaxis(x.reshape(x.shape[:-1] + (2, -1)), -2, 0)",
        "a, b = jnp.moveaxis(x.reshape(x.shape[:-1] + (-1, n)), -1, 0)",
        "x = x.reshape(x.shape[:-1] + (2, -1))\n    a, b = x[..., 0, :], x[..., 1, :]",
        "a, b = jnp.split(x, 2, axis=-1)",
    ],
)
def test_halves_are_no_pairs(apart: str) -> None:
    assert found(apart) == 0


@pytest.mark.parametrize(
    ("joined", "count"),
    [
        ("jnp.reshape(jnp.stack([one, other], axis=-1), x.shape)", 1),
        ("jax.lax.collapse(jnp.stack([one, other], axis=-1), 2)", 1),
        ("jnp.stack([one, other], axis=-1)", 0),
        ("jnp.concatenate([one, other], axis=-1)", 0),
    ],
)
def test_they_are_interleaved_by_a_reshape_of_a_stack(joined: str, count: int) -> None:
    assert found(joined=joined) == count


def test_the_halves_are_turned_by_tables_of_half_the_width() -> None:
    """With those that the whole array was multiplied with, `x1 * cos` is an error."""
    code = """
import jax.numpy as jnp

def rotate_half(x):
    x1, x2 = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([-x2, x1], axis=-1)
"""
    (finding,) = check_text(code.encode(), "m.py", Scope(("rope-by-copies",)))
    assert finding.suggestion is not None
    assert finding.suggestion.text == (
        "rotate the halves and join once: [x1 * cos - x2 * sin, x2 * cos + x1 * sin], "
        "cos and sin of half the width, before they are doubled"
    )
