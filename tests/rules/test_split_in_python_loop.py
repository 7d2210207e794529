"""split-in-python-loop: the draw that is mapped is called as it was."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


@pytest.mark.parametrize(
    ("draw", "advice"),
    [
        ("initializer()(sub, shape=(1, 2))", "jax.vmap(lambda key: initializer()(key, shape=(1, 2)))(keys)"),
        ("initializer()(sub)", "jax.vmap(initializer())(keys)"),
        ("jax.random.normal(sub, (3,))", "jax.random.normal(key, (n, ...))"),
    ],
)
def test_a_draw_is_mapped_with_all_that_it_is_called_with(draw: str, advice: str) -> None:
    code = f"""\
import jax
import jax.numpy as jnp

@jax.jit
def f(key):
    out = []
    for _ in range(64):
        key, sub = jax.random.split(key)
        out.append({draw})
    return jnp.array(out)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("split-in-python-loop",)))
    assert found.suggestion is not None
    assert f"`{advice}`" in found.suggestion.text
