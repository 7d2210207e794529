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


@pytest.mark.parametrize(("name", "count"), [("visualize_depth", 0), ("rendered_depth", 1)])
def test_a_sort_more_for_a_picture_is_nothing(name: str, count: int) -> None:
    code = f"""
import jax.numpy as jnp

def percentile(x, w, q):
    order = jnp.argsort(x)
    x, w = x[order], w[order]
    return jnp.interp(q, jnp.cumsum(w), x)

def {name}(x, w):
    return x / percentile(x, w, 0.9)
"""
    assert len(check_text(code.encode(), "m.py", Scope(("argsort-then-gather",)))) == count


@pytest.mark.parametrize(("array", "other"), [("x", "y"), ("y", "z")])
def test_what_else_is_sorted_has_another_name(array: str, other: str) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def f({array}, w):
    order = jnp.argsort({array})
    return {array}[order], w[order]
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("argsort-then-gather",)))
    assert found.suggestion is not None
    assert f"jax.lax.sort(({array}, {other}), num_keys=1)" in found.suggestion.text
