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


FACTORED = """
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

@jax.jit
def solved(m, a, b):
    l, u = jnp.linalg.cholesky(m), jsl.cholesky(m)
    y = {first}
    return {second}
"""
ONE, BOTH = "jax.scipy.linalg.solve_triangular", "jax.scipy.linalg.cho_solve"


@pytest.mark.parametrize(
    ("first", "second", "advice"),
    [
        ("jnp.linalg.solve(l, a)", "jnp.linalg.solve(l.T, y)", [f"{BOTH}((l, True), a)"]),
        ("jnp.linalg.solve(u.T, a)", "jnp.linalg.solve(u, y)", [f"{BOTH}((u, False), a)"]),
        ("a", "jnp.linalg.solve(l.T, jnp.linalg.solve(l, y))", [f"{BOTH}((l, True), y)"]),
        # The half-way result is wanted too, or it is another matrix that is solved with.
        (
            "jnp.linalg.solve(l, a)",
            "y, jnp.linalg.solve(l.T, y)",
            [f"{ONE}(l, a, lower=True)", f"{ONE}(l, y, trans=1, lower=True)"],
        ),
        (
            "jnp.linalg.solve(l.T, a)",
            "jnp.linalg.solve(l, y)",
            [f"{ONE}(l, a, trans=1, lower=True)", f"{ONE}(l, y, lower=True)"],
        ),
        ("jnp.linalg.solve(u, a)", "jnp.linalg.solve(m, y)", [f"{ONE}(u, a)"]),
        ("jsl.solve(l, a, assume_a='pos')", "jsl.solve_triangular(l, y, lower=True)", []),
    ],
)
def test_a_factor_of_cholesky_is_not_factored_again(first: str, second: str, advice: list[str]) -> None:
    code = FACTORED.format(first=first, second=second)
    found = check_text(code.encode(), "m.py", Scope(("factored-twice",)))
    assert [each.suggestion.text for each in found if each.suggestion is not None] == advice


@pytest.mark.parametrize(
    ("between", "second", "count"),
    [
        ("pass", "jnp.linalg.solve(m.transpose(a), b)", 1),
        ("m = m + b", "jnp.linalg.solve(m.transpose(a), b)", 0),
        ("pass", "jnp.linalg.solve(m.transpose(b), b)", 0),
        ("pass", "jnp.linalg.solve(jnp.eye(3) + m @ a, b)", 0),
        ("y = jnp.linalg.solve(jnp.eye(3) + m @ a, a)", "(y, jnp.linalg.solve(jnp.eye(3) + m @ a, b))", 1),
        ("y = jnp.linalg.solve(kernel(m), a)", "(y, jnp.linalg.solve(kernel(m), b))", 0),
    ],
    ids=["the same", "of another value", "turned otherwise", "another", "a sum", "made by somebody else's function"],
)
def test_a_matrix_is_the_same_where_the_same_work_of_jax_makes_it(between: str, second: str, count: int) -> None:
    code = CODE.format(first="jnp.linalg.solve(m.transpose(a), a)", between=between, second=second)
    assert len(check_text(code.encode(), "m.py", Scope(("factored-twice",)))) == count


def test_a_matrix_may_be_written_in_a_branch_before_both() -> None:
    code = CODE.format(first="None", between="if b is not None:\n        m += b", second="PAIR").replace(
        "PAIR", "jnp.linalg.solve(m.transpose(a), a), jnp.linalg.solve(m.transpose(a), b)"
    )
    assert len(check_text(code.encode(), "m.py", Scope(("factored-twice",)))) == 1
