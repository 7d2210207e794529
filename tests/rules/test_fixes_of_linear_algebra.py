"""What fixes write for products with matrices that need not be made computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fusionlint.compiling.counting import agree_many, agreeing_job
from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

# What a fix leaves without a reader goes, and jnp is to stay.
HEAD = "import jax\nimport jax.numpy as jnp\n\nArray = jnp.ndarray\n\n"


def fixed(rule: str, code: str) -> str:
    """The code after `check --fix --unsafe-fixes`."""
    data, scope = code.encode(), Scope((rule,))
    return fix_text("m.py", data, check_text(data, "m.py", scope), scope, join({}), unsafe=True).after.decode()


def assert_all_compute_the_same(codes: Sequence[tuple[str, str]], call: str, folder: Path) -> None:
    """That the second of each two computes what the first does, all in one process."""
    jobs = []
    for i, pair in enumerate(codes):
        paths = [folder / f"{name}_{i}.py" for name in ("before", "after")]
        for path, code in zip(paths, pair, strict=True):
            path.write_text(code)
        jobs.append(agreeing_job(*paths, call))
    told = zip((after for _, after in codes), agree_many(jobs), strict=True)
    assert [(after, said) for after, said in told if said is not None] == []


# diag-then-matmul


SCALED = [
    ("return a @ jnp.diag(v)", "return a * v"),
    ("return v @ jnp.diag(v + 1)", "return v * (v + 1)"),
    ("return a @ jnp.diag(v**2) @ a.T", "return (a * v**2) @ a.T"),
    ("return -(a @ jnp.diag(v)).T", "return -(a * v).T"),
    ("return a.T + a @ jnp.diag(v).T", "return a.T + a * v"),
    ("return jnp.dot(jnp.dot(a, jnp.diag(v)), w)", "return jnp.dot(a * v, w)"),
    ("return a.dot(jnp.diag(v)).dot(w)", "return (a * v).dot(w)"),
    ("return jnp.diag(v) @ w @ w.T", "return (v[:, None] * w) @ w.T"),
    ("return jnp.diag(jnp.exp(v)) @ (w - w[:, :1])", "return jnp.exp(v)[:, None] * (w - w[:, :1])"),
    ("return jnp.diag(v) @ jnp.zeros(6)", "return v * jnp.zeros(6)"),
    ("return a @ (jnp.diag(v) @ jnp.linalg.inv(a))", "return a @ (v[:, None] * jnp.linalg.inv(a))"),
    ("return jnp.diag(v) @ a @ jnp.diag(1 / v), a.T", "return v[:, None] * a * (1 / v), a.T"),
    (
        "d = jnp.diag(1 / v)\n    return d @ jnp.linalg.inv(a) @ d",
        "d = 1 / v\n    return d[:, None] * jnp.linalg.inv(a) * d",
    ),
    ("d = jnp.diag(v)\n    return a @ d @ a.T @ d", "return ((a * v) @ a.T) * v"),
    ("d = jnp.diag(v)\n    v = 2 * v\n    return a @ d + v", "d = v\n    v = 2 * v\n    return a * d + v"),
    (
        "d = jnp.diag(v)\n    e = jnp.diag(v + 1)\n    return a @ d, a @ e @ a @ d",
        "return a * v, ((a * (v + 1)) @ a) * v",
    ),
]


def scaled(body: str) -> str:
    return f"{HEAD}def run(a, v, w):\n    {body}\n"


@pytest.mark.parametrize(("before", "after"), SCALED)
def test_a_vector_multiplies_rows_or_columns(before: str, after: str) -> None:
    assert fixed("diag-then-matmul", scaled(before)) == scaled(after)


def test_that_is_the_same_product(tmp_path: Path) -> None:
    codes = [(scaled(before), scaled(after)) for before, after in SCALED]
    assert_all_compute_the_same(codes, "run(f32[6,6], f32[6], f32[6,9])", tmp_path)


@pytest.mark.parametrize(
    "product",
    [
        pytest.param("jnp.diag(v) @ a", id="a matrix or a vector"),
        pytest.param("jnp.diag(v) @ (a.T @ a @ a)", id="a vector times a matrix, times itself"),
        pytest.param("jnp.diag(v) @ jnp.diag(a)", id="two diagonals"),
        pytest.param("jnp.matmul(a, jnp.diag(v), preferred_element_type=jnp.float32)", id="asked for a type"),
        pytest.param("a @ jnp.diag(  # the weights\n        v)", id="a comment inside"),
    ],
)
def test_what_is_not_seen_to_be_rows_stays_a_product(product: str) -> None:
    code = f"{HEAD}def run(a, v):\n    return {product}\n"
    assert check_text(code.encode(), "m.py", Scope(("diag-then-matmul",)))
    assert fixed("diag-then-matmul", code) == code


# inverse-then-matmul


SOLVED = [
    ("return jnp.linalg.inv(a) @ v", "return jnp.linalg.solve(a, v)"),
    ("return jnp.dot(jnp.linalg.inv(a), w)", "return jnp.linalg.solve(a, w)"),
    ("return -(jnp.linalg.inv(a) @ v)", "return -(jnp.linalg.solve(a, v))"),
    ("return v @ jnp.linalg.inv(a + 3) @ v", "return v @ jnp.linalg.solve(a + 3, v)"),
    ("return jnp.linalg.inv(a).T @ v", "return jnp.linalg.solve(a.mT, v)"),
    ("return jnp.linalg.inv(a) @ a.T @ v, a.shape[1]", "return jnp.linalg.solve(a, a.T @ v), a.shape[1]"),
    ("return jnp.linalg.inv(a) @ v @ w", "return jnp.linalg.solve(a, v) @ w"),
    ("return (w.T - 1) @ jnp.linalg.inv(a)", "return jnp.linalg.solve(a.T, (w.T - 1).T).T"),
    ("return w.mT @ jnp.linalg.inv(a)", "return jnp.linalg.solve(a.mT, w).mT"),
    ("return (a @ a.T) @ jnp.linalg.inv(a).T", "return jnp.linalg.solve(a, a @ a.T).T"),
    (
        "p = a @ a.T\n    return p @ a.T @ jnp.linalg.inv(p + jnp.eye(6))",
        "p = a @ a.T\n    return jnp.linalg.solve((p + jnp.eye(6)).T, a @ p.T).T",
    ),
    (
        "b = jnp.stack([a, a])\n    return b @ b.mT @ jnp.linalg.inv(b)",
        "b = jnp.stack([a, a])\n    return jnp.linalg.solve(b.mT, b @ b.mT).mT",
    ),
    ("return jnp.arange(6.0) @ jnp.linalg.inv(a), w", None),
    (
        "s = a @ a.T + jnp.eye(6)\n    return a @ a.T @ jnp.linalg.inv(s)",
        "s = a @ a.T + jnp.eye(6)\n    return jnp.linalg.solve(s.T, a @ a.T).T",
    ),
    (
        "inverse = jnp.linalg.inv(a)\n    b = 2 * w\n    return inverse @ b",
        "b = 2 * w\n    return jnp.linalg.solve(a, b)",
    ),
    ("inverse = jnp.linalg.inv(a)\n    a = 2 * a\n    return inverse @ a", None),
    ("inverse = jnp.linalg.inv(a)  # once\n    return inverse @ v", None),
    ("return w @ jnp.linalg.inv(a)", None),
    ("return w.T @ jnp.linalg.inv(a)", None),
    (
        "f = jnp.linalg.cholesky(a @ a.T + jnp.eye(6))\n    return jnp.linalg.inv(f) @ w",
        "f = jnp.linalg.cholesky(a @ a.T + jnp.eye(6))\n    return jax.scipy.linalg.solve_triangular(f, w, lower=True)",
    ),
    (
        "f = jax.scipy.linalg.cholesky(a @ a.T + jnp.eye(6))\n    return (a - 1) @ jnp.linalg.inv(f).T, a[:, 1]",
        "f = jax.scipy.linalg.cholesky(a @ a.T + jnp.eye(6))\n"
        "    return jax.scipy.linalg.solve_triangular(f, (a - 1).mT).mT, a[:, 1]",
    ),
]


@pytest.mark.parametrize(("before", "after"), SOLVED)
def test_a_system_is_solved_where_it_is_seen_what_to_transpose(before: str, after: str | None) -> None:
    assert check_text(scaled(before).encode(), "m.py", Scope(("inverse-then-matmul",)))
    assert fixed("inverse-then-matmul", scaled(before)) == scaled(after or before)


def test_that_is_the_same_solution(tmp_path: Path) -> None:
    shifted = [pair for pair in SOLVED if pair[1] is not None]
    definite = "    a = a @ a.T + 20 * jnp.eye(6)\n"
    codes = [tuple(scaled(body or "").replace("w):\n", f"w):\n{definite}") for body in pair) for pair in shifted]
    assert_all_compute_the_same([(one, other) for one, other in codes], "run(f32[6,6], f32[6], f32[6,9])", tmp_path)
