"""write-in-fori-loop: one number is no row of values."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

WALL = -1

@jax.jit
def walled(maze, x, y, height, rows):
    return jax.lax.fori_loop(y, y + height, lambda i, maze: maze.at[i, x].set({value}), maze)
"""
MASK = "the mask of comparisons of jnp.arange along each axis with the first and the last place"


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("WALL", f"`jnp.where(mask, WALL, maze)`, {MASK}, or one `maze.at[indices].set(WALL)`"),
        ("1.0", f"`jnp.where(mask, 1.0, maze)`, {MASK}, or one `maze.at[indices].set(1.0)`"),
        (
            "rows[i]",
            "`jnp.where` of a comparison with jnp.arange, "
            "or jax.vmap for all the values of `rows[i]` and one `maze.at[indices].set(values)`",
        ),
    ],
)
def test_of_one_number_there_are_no_values_to_be_made(value: str, advice: str) -> None:
    (found,) = check_text(CODE.format(value=value).encode(), "m.py", Scope(("write-in-fori-loop",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice
