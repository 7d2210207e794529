"""nonzero-as-mask: `argmax` counts through all axes of a mask, as only `flatnonzero` does."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        ("jnp.nonzero(m, size=1)[0][0]", "jnp.argmax(m), of a mask with one axis"),
        ("jnp.where(m, size=1)[0][0]", "jnp.argmax(m), of a mask with one axis"),
        ("jnp.flatnonzero(m, size=1)[0]", "jnp.argmax(m)"),
        ("jnp.flatnonzero(m, size=1, fill_value=None)[0]", "jnp.argmax(m)"),
    ],
)
def test_the_first_hit_is_argmax_of_a_mask_with_one_axis(first: str, advice: str) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(m):\n    return {first}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice
