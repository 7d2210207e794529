"""factored-twice: which of several solves with one matrix is another one."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def solved(m, a, b):
    x = {first}
    {between}
    return x, {second}
"""


@pytest.mark.parametrize(
    ("first", "between", "second", "count"),
    [
        ("jnp.linalg.solve(m, a)", "pass", "jnp.linalg.solve(m, a)", 0),
        ("jnp.linalg.solve(m, a)", "pass", "jnp.linalg.solve(m, b)", 1),
        ("jnp.linalg.solve(m, a)", "pass", "jnp.linalg.solve(m, a.T)", 1),
        # The same text, of another value.
        ("jnp.linalg.solve(m, a)", "a = a + b", "jnp.linalg.solve(m, a)", 1),
        ("jnp.linalg.solve(m, a)", "y = jnp.linalg.solve(m, a)", "(y, jnp.linalg.solve(m, b))", 1),
        ("jnp.linalg.solve(m, a)", "y = jnp.linalg.solve(m, a)", "(y, jnp.linalg.solve(m, a))", 0),
        # Of a matrix and its transpose nothing is merged, with one right-hand side either.
        ("jnp.linalg.solve(m, a)", "pass", "jnp.linalg.solve(m.T, a)", 1),
        ("jax.scipy.linalg.cho_solve((m, True), a)", "pass", "jax.scipy.linalg.cho_solve((m, True), a)", 0),
        ("jax.scipy.linalg.cho_solve((m, True), a)", "pass", "jax.scipy.linalg.cho_solve((m, True), b)", 1),
    ],
)
def test_xla_makes_one_of_calls_that_are_the_same(first: str, between: str, second: str, count: int) -> None:
    code = CODE.format(first=first, between=between, second=second)
    assert len(check_text(code.encode(), "m.py", Scope(("factored-twice",)))) == count


def test_a_factor_of_cholesky_is_not_factored_again() -> None:
    code = CODE.format(
        first="jnp.linalg.solve(l, a)", between="y = jnp.linalg.solve(l, b)", second="jnp.linalg.solve(l.T, y)"
    ).replace("    x = ", "    l = jnp.linalg.cholesky(m)\n    x = ")
    (found,) = check_text(code.encode(), "m.py", Scope(("factored-twice",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("solve_triangular(l, b, lower=True)")
