"""diag-then-matmul: which arguments of `jnp.diag` are vectors, which products read the matrix, what the advice says."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax.numpy as jnp

def scaled(a, v):
    return jnp.diag(v) @ a
"""


def found(code: str) -> list[tuple[int, str]]:
    findings = check_text(code.encode(), "m.py", Scope(("diag-then-matmul",)))
    return [(f.location.line, f.suggestion.text if f.suggestion else "") for f in findings]


@pytest.mark.parametrize(
    ("product", "advice"),
    [
        ("jnp.diag(v) @ a", "v[:, None] * a, or v * a where that is a vector"),
        ("a @ jnp.diag(v)", "a * v"),
        ("a.dot(jnp.diag(1 / v))", "a * (1 / v)"),
        ("jnp.diag(v).dot(a)", "v[:, None] * a, or v * a where that is a vector"),
        ("jnp.matmul(a + 1, jnp.diag(jnp.sqrt(v)))", "(a + 1) * jnp.sqrt(v)"),
        ("jnp.diag(v).T @ a", "v[:, None] * a, or v * a where that is a vector"),
        ("a @ jnp.diag(v) @ a.T", "a * v"),
        ("jnp.diag(jnp.diag(a)) @ v", "jnp.diag(a)[:, None] * v, or jnp.diag(a) * v where that is a vector"),
    ],
)
def test_the_advice_names_both_factors(product: str, advice: str) -> None:
    assert found(CODE.replace("jnp.diag(v) @ a", product)) == [(5, advice)]


@pytest.mark.parametrize(
    "product",
    [
        pytest.param("jnp.diag(v, 1) @ a", id="beside the diagonal"),
        pytest.param("jnp.diag(jnp.exp(1j * v * jnp.array([0.0, 1.0, 2.0]))) @ a", id="of three numbers"),
        pytest.param("jnp.diag(v) * a", id="no matrix product"),
        pytest.param("jnp.diag(v.T) @ a", id="of a transposed matrix"),
        pytest.param("jnp.diag(a @ v) @ a", id="of a product"),
        pytest.param("jnp.diag(v.reshape(3, 3)) @ a", id="of what has two axes"),
        pytest.param("jnp.diag(a(v)) @ v", id="of what somebody returns"),
        pytest.param("jnp.diag(v) @ a + v[0, 1]", id="read as a matrix"),
        pytest.param("jnp.diag(jnp.linalg.inv(v)) @ a", id="of an inverse"),
        pytest.param("jnp.diag(jnp.array([[1, 2], [3, 4]])) @ a", id="of rows"),
    ],
)
def test_the_diagonal_of_a_matrix_is_a_vector(product: str) -> None:
    assert found(CODE.replace("jnp.diag(v) @ a", product)) == []


def test_what_jaxtyping_says_of_the_axes_holds() -> None:
    typed = "from jaxtyping import Array, Float\n" + CODE
    assert found(typed.replace("a, v", 'a, v: Float[Array, "n n"]')) == []
    assert found(typed.replace("a, v", 'a, v: Float[Array, "3"]')) == []
    assert len(found(typed.replace("a, v", 'a, cov: Float[Array, "n"]').replace("(v)", "(cov)"))) == 1


@pytest.mark.parametrize(("spins", "count"), [("jnp.array([1.0, -1.0])", 0), ("jnp.sign(a[0])", 1)])
def test_two_eigenvalues_are_multiplied_out(spins: str, count: int) -> None:
    code = f"""
import jax.numpy as jnp

def root(a, beta):
    spins = {spins}
    values, vectors = jnp.linalg.eigh(jnp.exp(beta * jnp.outer(spins, spins)))
    return vectors @ jnp.diag(jnp.sqrt(values))
"""
    assert len(found(code)) == count


def test_a_matrix_that_is_needed_whole_is_made_anyway() -> None:
    named = "d = jnp.diag(v)\n    return d @ a"
    assert len(found(CODE.replace("return jnp.diag(v) @ a", named))) == 1
    assert found(CODE.replace("return jnp.diag(v) @ a", named + ", d")) == []


@pytest.mark.parametrize(
    ("product", "count"),
    [("jnp.eye(n) @ jnp.diag(jnp.ones(n))", 0), ("a @ jnp.diag(jnp.ones(n))", 1), ("jnp.eye(n) @ jnp.diag(v)", 1)],
)
def test_a_product_of_constants_is_what_a_search_begins_with(product: str, count: int) -> None:
    assert len(found(CODE.replace("jnp.diag(v) @ a", product).replace("a, v", "a, v, n"))) == count


START = """
import jax.numpy as jnp

def angles(c):
    u, s, v = jnp.linalg.svd(c)
    return u @ jnp.diag(jnp.arctan(s)) @ v

def main(c, step):
    angle = angles(c)
    for _ in range(100):
        angle = step(angle)
    return angle
"""


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("s", "s", 0),
        ("step(angle)", "step(angles(angle))", 1),
        ("jnp.linalg.svd(c)", "c", 1),  # of a large matrix the products are the work
        ("def main(c, step)", "def go_on(c, step)", 1),
    ],
)
def test_a_start_value_by_a_decomposition_is_made_once(old: str, new: str, count: int) -> None:
    assert len(found(START.replace(old, new))) == count
