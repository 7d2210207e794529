"""inverse-then-matmul: what is known of a matrix decides what is written instead."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def f(a, b):
    {made}
    return {product}
"""


def advice(made: str, product: str) -> str:
    (found,) = check_text(CODE.format(made=made, product=product).encode(), "m.py", Scope(("inverse-then-matmul",)))
    assert found.suggestion is not None
    return found.suggestion.text


FACTOR = "L = jnp.linalg.cholesky(a)"
SOLVES = {
    "jnp.linalg.inv(L) @ b": "jax.scipy.linalg.solve_triangular(L, b, lower=True)",
    "jnp.linalg.inv(L).T @ b": "jax.scipy.linalg.solve_triangular(L, b, trans=1, lower=True)",
    "b @ jnp.linalg.inv(L)": "jax.scipy.linalg.solve_triangular(L, b.mT, trans=1, lower=True).mT",
    "b @ jnp.linalg.inv(L).T": "jax.scipy.linalg.solve_triangular(L, b.mT, lower=True).mT",
}


@pytest.mark.parametrize(("product", "instead"), SOLVES.items())
def test_a_factor_of_cholesky_is_solved_as_one_on_either_side(product: str, instead: str) -> None:
    assert advice(FACTOR, product) == instead
    half = jax.random.normal(jax.random.key(0), (4, 4))
    values = {"L": jnp.linalg.cholesky(half @ half.T + jnp.eye(4)), "b": half, "jnp": jnp, "jax": jax}
    assert jnp.allclose(eval(product, values), eval(instead, values), atol=1e-4)


@pytest.mark.parametrize(("product", "instead"), SOLVES.items())
@pytest.mark.parametrize("made", ["jax.scipy.linalg.cholesky(a)", "jax.scipy.linalg.cholesky(a, lower=False)"])
def test_scipys_factor_is_the_upper_one(made: str, product: str, instead: str) -> None:
    instead = instead.replace(", lower=True", "")
    assert advice(f"L = {made}", product) == instead
    half = jax.random.normal(jax.random.key(0), (4, 4))
    values = {"L": jax.scipy.linalg.cholesky(half @ half.T + jnp.eye(4)), "b": half, "jnp": jnp, "jax": jax}
    assert jnp.allclose(eval(product, values), eval(instead, values), atol=1e-4)


def test_behind_a_product_the_system_is_solved_for_what_the_product_leaves() -> None:
    instead = "jnp.linalg.solve(a.T @ a, a.T @ b)"
    assert advice("", "jnp.linalg.inv(a.T @ a) @ a.T @ b") == instead
    a, b = jax.random.normal(jax.random.key(0), (64, 3)), jnp.arange(64.0)
    values = {"a": a, "b": b, "jnp": jnp}
    assert jnp.allclose(jnp.linalg.inv(a.T @ a) @ a.T @ b, eval(instead, values), rtol=1e-3)


@pytest.mark.parametrize(
    "made",
    [
        "_, U = jnp.linalg.eigh(a)",
        "U, s, _ = jnp.linalg.svd(a)",
        "s, _, U = jnp.linalg.svd(a)",
        "U, _ = jnp.linalg.qr(a)",
    ],
)
def test_what_a_decomposition_gave_is_transposed(made: str) -> None:
    assert advice(made, "(b * 2) @ jnp.linalg.inv(U)") == "U.mT, of a complex matrix U.mT.conj()"


@pytest.mark.parametrize(("made", "count"), [("_, U = jnp.linalg.eig(a)", 0), ("U = a + 1", 1)])
def test_the_inverse_of_the_eigenvectors_of_any_matrix_is_nothing_beside_finding_them(made: str, count: int) -> None:
    code = CODE.format(made=made, product="b @ jnp.linalg.inv(U)")
    assert len(check_text(code.encode(), "m.py", Scope(("inverse-then-matmul",)))) == count
    assert "positive definite" in advice("U = a + 1", "b @ jnp.linalg.inv(U)")


@pytest.mark.parametrize(("setting", "count"), [("precision='float32'", 1), ("out=b", 0)])
def test_a_product_that_is_asked_to_be_precise_is_a_product(setting: str, count: int) -> None:
    code = CODE.format(made="c = a + 1", product=f"jnp.matmul(b, jnp.linalg.inv(c), {setting})")
    assert len(check_text(code.encode(), "m.py", Scope(("inverse-then-matmul",)))) == count
