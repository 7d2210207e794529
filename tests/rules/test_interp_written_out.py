"""The fix of `jnp.interp` gives the file one function that searches without a loop, and interpolates as that does."""

from __future__ import annotations

import fixes
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlint.source.scope import Scope

SCOPE = Scope(("default-searchsorted",))
HEAD = '"""A module."""\nimport jax\nimport jax.numpy as jnp\n\nN = 3\n\n\n'
MAPPED = "    return jax.vmap(lambda x: {})(xs)\n"
RUN = "# of many points\n@jax.jit\ndef run(xs, xp, fp):\n" + MAPPED
INTERP = "jnp.interp(x, xp, fp)"


def fixed(code: str) -> str:
    return fixes.fixed("default-searchsorted", code)


@pytest.mark.parametrize("integers", [False, True])
def test_it_interpolates_as_jax_does(integers: bool) -> None:
    chance = np.random.default_rng(0)
    xp = np.sort(chance.integers(0, 9, 12)) if integers else np.sort(chance.normal(size=12)).astype(np.float32)
    fp, x = chance.normal(size=12).astype(np.float32), chance.normal(size=(5, 40)).astype(np.float32) * 3
    x[0, :12], x[1, 0] = xp, np.nan
    before = HEAD + RUN.format(INTERP)
    after = fixed(before)
    assert "jnp.interp(" not in after
    np.testing.assert_allclose(
        fixes.returned(before, x, xp, fp), fixes.returned(after, x, xp, fp), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(fixes.returned(before, x[:, :0], xp, fp), fixes.returned(after, x[:, :0], xp, fp))
    slopes = [jax.grad(lambda fp, code=code: fixes.returned(code, x[2:], xp, fp).sum())(fp) for code in (before, after)]
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-4)


def test_the_function_stands_once_before_the_first_def_and_what_is_said_of_that() -> None:
    code = HEAD + RUN.format(INTERP) + "\n\n@jax.jit\ndef more(xs, xp, fp):\n" + MAPPED.format(INTERP)
    after = fixed(code)
    assert after.startswith(HEAD + "@jax.jit\ndef _interp(x, xp, fp):\n    ")
    assert ", y))\n\n\n# of many points\n@jax.jit\ndef run" in after
    assert after.count("def _interp") == 1
    assert after.count(": _interp(x, xp, fp)") == 2


def test_all_that_look_up_the_same_call_it() -> None:
    several = RUN.format(f"{INTERP} * jnp.interp(x, xp, fp + 1)")
    assert fixed(HEAD + several).endswith("lambda x: _interp(x, xp, fp) * _interp(x, xp, fp + 1))(xs)\n")


@pytest.mark.parametrize(
    "code",
    [
        RUN.format("jnp.interp(x, xp, fp, left=0.0)"),
        RUN.format("jnp.interp(x, xp, fp, 0.0)"),
        f"_interp = None\n\n\n{RUN.format(INTERP)}",
        f"run = jax.jit(lambda xs, xp, fp: jax.vmap(lambda x: {INTERP})(xs))\n\n\ndef later():\n    pass\n",
    ],
)
def test_where_it_would_mean_something_else_there_is_advice(code: str) -> None:
    assert fixed(HEAD + code) == HEAD + code


def test_it_is_indented_as_the_file_is() -> None:
    assert "\n  x, xp, fp = jnp.asarray(x)" in fixed((HEAD + RUN.format(INTERP)).replace("    ", "  "))


def test_jax_numpy_is_called_as_the_file_calls_it() -> None:
    code = (HEAD + RUN.format(INTERP)).replace("jnp", "jp")
    assert "jp.searchsorted(xp, x" in fixed(code)
    assert jnp.shape(fixes.returned(fixed(code), np.ones((2, 2)), np.arange(3.0), np.arange(3.0))) == (2, 2)
