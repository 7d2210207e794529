"""solve-for-cholesky: what is seen to be positive definite, and a Gaussian's log density in its many spellings."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """
import jax.numpy as jnp
from jax.scipy import linalg as jsl

def density(x, r, s, cov):
"""


def found(*lines: str) -> list[int]:
    code = HEAD + "".join(f"    {line}\n" for line in lines)
    return [f.location.line - 5 for f in check_text(code.encode(), "m.py", Scope(("solve-for-cholesky",)))]


@pytest.mark.parametrize(
    "form",
    [
        "r @ jnp.linalg.solve(cov, r)",
        "r.T @ jsl.solve(cov, r)",
        "jnp.dot(r, jnp.linalg.solve(cov, r))",
        "r.dot(jnp.linalg.solve(cov, r))",
        "jnp.tensordot(r, jnp.linalg.solve(cov, r), (0, 0))",
        "jnp.sum(r * jnp.linalg.solve(cov, r[..., None])[..., 0], axis=1)",
        "(x - s) @ jnp.linalg.inv(cov) @ (x - s)",
        "jnp.einsum('i,ij,j->', r, jnp.linalg.inv(cov), r)",
    ],
)
@pytest.mark.parametrize("determinant", ["jnp.linalg.slogdet(cov)[1]", "jnp.log(jnp.linalg.det(cov))"])
def test_a_matrix_between_twice_the_same_vector_is_a_covariance(form: str, determinant: str) -> None:
    assert found(f"form = {form}", f"return form + {determinant}") == [2]


def test_the_form_may_be_made_in_steps() -> None:
    steps = ("inverse = jnp.linalg.inv(cov)", "weighted = inverse @ r", "_, logdet = jnp.linalg.slogdet(cov)")
    assert found(*steps, "return r @ weighted + logdet") == [3]
    assert found(*steps, "return s @ weighted + logdet") == []


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("s @ jnp.linalg.solve(cov, r)", id="two vectors"),
        pytest.param("r @ jnp.linalg.solve(x, r)", id="another matrix"),
        pytest.param("x[0] @ jnp.linalg.solve(cov, x[1])", id="two rows"),
        pytest.param("jnp.linalg.inv(cov)", id="an inverse alone"),
        pytest.param("r @ r", id="no inverse"),
    ],
)
def test_other_matrices_are_factored_once_for_both(form: str) -> None:
    assert found(f"form = {form}", "return form + jnp.linalg.slogdet(cov)[1]") == []


def test_a_matrix_that_changed_between_is_another() -> None:
    form = "form = r @ jnp.linalg.solve(cov, r)"
    assert found(form, "cov = cov + s", "return form + jnp.linalg.slogdet(cov)[1]") == []


def test_what_is_called_a_factor_is_one() -> None:
    form = "return r @ jnp.linalg.solve(scale, r) + jnp.linalg.slogdet(scale)[1]"
    assert found("loc, scale = x.loc, x.scale_tril", form) == []
    assert found("loc, scale = x.loc, x.scale", form) == [2]


def test_of_a_solve_and_a_determinant_one_finding_is_told() -> None:
    matrix = "m = x.T @ x + jnp.eye(4)"
    assert found(matrix, "return jnp.linalg.solve(m, s)") == [2]
    assert found(matrix, "form = jnp.linalg.solve(m, s)", "return form, jnp.linalg.slogdet(m)") == [3]


@pytest.mark.parametrize(
    ("gram", "is_seen"),
    [
        ("s * (x.T @ x)", True),
        ("-s * (x.T @ x)", False),
        ("x.swapaxes(-1, -2) @ x", True),
        ("x.swapaxes(0, 1) @ x", False),
        ("x.transpose(0, 2, 1) @ x", True),
        ("x.transpose(2, 1, 0) @ x", False),
    ],
)
def test_a_gram_matrix_may_be_scaled_and_one_of_many(gram: str, is_seen: bool) -> None:
    assert bool(found(f"return jnp.linalg.solve({gram} + jnp.eye(4), s)")) is is_seen


@pytest.mark.parametrize("damping", ["1e-6", "jnp.maximum(s, 1e-6)", "max(s, 1e-8)"])
def test_damping_that_rounding_may_swallow_leaves_nothing_definite(damping: str) -> None:
    assert found(f"return jnp.linalg.solve(x.T @ x + {damping} * jnp.eye(4), r)") == []
    assert found(f"lam = {damping}", "return jnp.linalg.solve(x.T @ x + lam * jnp.eye(4), r)") == []


@pytest.mark.parametrize("damping", ["s", "0.1", "jnp.maximum(s, 0.1)"])
def test_other_damping_leaves_it_definite(damping: str) -> None:
    assert found(f"return jnp.linalg.solve(x.T @ x + {damping} * jnp.eye(4), r)") == [1]
