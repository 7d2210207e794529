"""`x[jnp.argsort(x)]`: what is told where, and what is no such gather."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

_HEAD = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\n"
ADVICE = {
    "with the order": (
        "def f(x, y):\n    o = jnp.argsort(x)\n    return x[o], y[o]",
        "`jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))`",
    ),
    "rows": (
        "def f(x, y):\n    o = jnp.argsort(x, axis=-1)\n    return jnp.take_along_axis(x, o, axis=-1), o",
        "`jax.lax.sort_key_val(x, jax.lax.broadcasted_iota(int, x.shape, len(x.shape) - 1))`",
    ),
    "falling": (
        "def f(x, y):\n    o = jnp.argsort(-x)\n    return x[o], y[o]",
        "`jax.lax.sort_key_val(-x, jnp.arange(x.shape[0]))`, which gives both, -x sorted, to be negated again,",
    ),
    "alone": ("def f(x):\n    return x[jnp.argsort(x)]", "`jnp.sort(x)`"),
    "alone, falling": ("def f(x):\n    return x[jnp.argsort(-x)]", "`-jnp.sort(-x)`"),
}
QUIET = {
    "along another axis": "def f(x):\n    return jnp.take_along_axis(x, jnp.argsort(x, axis=0), axis=0)",
    "of the rows": "def f(x):\n    return x[:, jnp.argsort(x[0])]",
    "another way round": "def f(x):\n    return x[jnp.argsort(x, descending=True)]",
    "what a loop changes": "def f(x):\n    o = jnp.argsort(x)\n    for _ in range(4):\n        x = x[o]\n    return x",
    "of a matrix": "def f(m):\n    w, _ = jnp.linalg.eigh(m)\n    w = w * 2\n    o = jnp.argsort(w)\n    return w[o]",
}


@pytest.mark.parametrize(("code", "advice"), ADVICE.values(), ids=ADVICE)
def test_what_to_write(code: str, advice: str) -> None:
    (finding,) = check_text((_HEAD + code).encode(), "m.py", Scope(("gather-by-argsort",)))
    assert finding.suggestion is not None
    assert advice in finding.suggestion.text


@pytest.mark.parametrize("code", QUIET.values(), ids=QUIET)
def test_what_is_no_such_gather(code: str) -> None:
    assert not check_text((_HEAD + code).encode(), "m.py", Scope(("gather-by-argsort",)))
