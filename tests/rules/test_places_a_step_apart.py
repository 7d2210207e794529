"""chained-at-set: places that are counted by a step, or are the columns of a matrix."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("chained-at-set",))
HEAD = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef seen(view, xs, ys, level, n, begins, ends):\n"


def advice(body: str) -> str:
    code = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    return found.suggestion.text


@pytest.mark.parametrize(
    ("second", "is_laid"),
    [
        ("jnp.arange(1, 3 * n, 3)", True),
        ("jnp.arange(1, 3 * n, 2)", False),
        ("jnp.arange(3 * n, 4 * n)", False),
    ],
)
def test_parts_a_step_apart_are_laid_in_between_each_other(second: str, *, is_laid: bool) -> None:
    """Measured: 512 views of eight foods by three and three are 1 launch on an H100 and 4 on a TPU v5e, joined to one
    scatter 2 and 22, by six scatters 7 and 19."""
    said = advice(f"view = view.at[jnp.arange(0, 3 * n, 3)].set(xs)\nreturn view.at[{second}].set(ys)")
    assert ("a step apart" in said) is is_laid


def test_the_columns_of_a_matrix_of_places_are_joined() -> None:
    """A mask would compare each place of the grid with one number."""
    said = advice("view = view.at[tuple(begins.T)].set(xs)\nreturn view.at[tuple(ends.T)].set(ys)")
    assert "joined by jnp.concatenate" in said
    assert "mask" in advice("view = view.at[tuple(begins)].set(1)\nreturn view.at[tuple(ends)].set(2)")
