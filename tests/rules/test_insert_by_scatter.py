"""insert-by-scatter: what is written instead, by the place, the axis and the value."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("insert-by-scatter",))
ONE = "; of an array of more axes insert makes one axis first, of several values without the `[None]`"
OF_ROWS = ", of several values without the `[None]`"
ALONG = ", x and v what stands there, v with a length of one along the axis"


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("jnp.insert(x, 0, v)", f"jnp.concatenate([v[None], x]){ONE}"),
        ("jnp.insert(x * 2, 0, v + 1)", f"jnp.concatenate([(v + 1)[None], x * 2]){ONE}"),
        ("jnp.insert(x * 2, 3, 0.0)", f"jnp.concatenate([(x * 2)[:3], jnp.array([0.0]), (x * 2)[3:]]){ONE}"),
        ("jnp.insert(x, -1, v)", f"jnp.concatenate([x[:-1], v[None], x[-1:]]){ONE}"),
        ("jnp.insert(x, 0, v, axis=None)", f"jnp.concatenate([v[None], x]){ONE}"),
        ("jnp.insert(x, 0, v, axis=0)", f"jnp.concatenate([v[None], x]){OF_ROWS}"),
        ("jnp.insert(x, 0, v, axis=1)", f"jnp.concatenate([v, x], axis=1){ALONG}"),
        (
            "jnp.insert(x, 2, v, axis=-1)",
            f"`before, after = jnp.split(x, [2], axis=-1)`, then jnp.concatenate([before, v, after], axis=-1){ALONG}",
        ),
    ],
)
def test_parts_are_joined_at_the_place(call: str, instead: str) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x, v):\n    return {call}\n"
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert found.suggestion.text == instead


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("jnp.insert(x, 0, 0).reshape(-1, 1)", "jnp.pad(jnp.ravel(x), (1, 0))"),
        ("jnp.insert(x, 0, 0)[:, None]", "jnp.pad(jnp.ravel(x), (1, 0))"),
        ("jnp.insert(x, 0, 0)", "jnp.pad(x, (1, 0))"),
    ],
)
def test_what_is_laid_out_anew_at_once_may_have_had_more_axes(call: str, text: str) -> None:
    """A pad of a column would pad both axes."""
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x):\n    return {call}\n"
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert [edit.text for edit in found.suggestion.edits] == [text]
