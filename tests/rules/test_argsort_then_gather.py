"""argsort-then-gather: what carries the places along."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("x, axis=-1, descending=True", "_, values, order = jax.lax.sort((-x, x, places), dimension=-1, num_keys=1)"),
        ("x, axis=0", "values, order = jax.lax.sort_key_val(x, places, dimension=0)"),
    ],
)
def test_a_falling_sort_goes_by_what_is_turned_round(given: str, advice: str) -> None:
    both = f"jnp.sort({given}), jnp.argsort({given})"
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x):\n    return {both}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("argsort-then-gather",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(f"{advice}, where places, jnp.arange along that axis,")
