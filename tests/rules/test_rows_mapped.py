"""rows-one-by-one and sum-over-array: what a fix maps over is what was read row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.compiling.counting import agree_many, agreeing_job
from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

CODE = """import jax
import jax.numpy as jnp

def of_row(row, other=1.0):
    return jnp.sort(row) * other

@jax.jit
def run(x: jax.Array, w: jax.Array, v: jax.Array):
    n, k = x.shape
    return {}
"""
ROWS = [
    ("jnp.array([v + x[:, i] for i in range(k)])", "jax.vmap(lambda column: v + column, 1)(x)"),
    ("jnp.array([v - 2 * x[..., i] for i in range(5)])", "jax.vmap(lambda column: v - 2 * column, -1)(x[..., :5])"),
    ("jnp.stack([of_row(x[i]) for i in range(n)])", "jax.vmap(of_row)(x)"),
    ("jnp.stack([of_row(x[i], w[i]) for i in range(n)], axis=1)", "jax.vmap(of_row, out_axes=1)(x, w[:n])"),
    (
        "jnp.stack([of_row(x[i], other=w[i]) for i in range(n)], axis=-1)",
        "jax.vmap(lambda x_i, w_i: of_row(x_i, other=w_i), out_axes=-1)(x, w[:n])",
    ),
    ("jnp.stack([of_row(w[i], x[i]) for i in range(n)])", "jax.vmap(of_row)(w[:n], x)"),
    ("jnp.stack([jnp.sort(x[:, i]) * 2 for i in range(k)])", "jax.vmap(lambda column: jnp.sort(column) * 2, 1)(x)"),
    ("jnp.stack([of_row(x[i] - x[0]) for i in range(n)])", "jax.vmap(lambda row: of_row(row - x[0]))(x)"),
    ("jnp.stack([of_row(x[i], i) for i in range(n)])", None),
    ("jnp.stack([of_row(x[n - 1 - i]) for i in range(n)])", None),
    ("jnp.stack([of_row(x[i]) for i in range(n)], dtype=jnp.float16)", None),
    ("jnp.concatenate([of_row(x[i]) for i in range(n)])", None),
]
SUMS = [
    ("sum(x)", "x.sum(0)"),
    ("sum(x > 0)", "(x > 0).sum(0)"),
    ("sum(of_row(row, row[0]) for row in x)", "jax.vmap(lambda row: of_row(row, row[0]))(x).sum(0)"),
    ("sum(row * jnp.max(row) for row in x)", "jax.vmap(lambda row: row * jnp.max(row))(x).sum(0)"),
    ("sum((of_row(row) for row in x), 1.0)", None),
    ("sum(other(row) for row in x)", None),
]
ALL = [*(("rows-one-by-one", *pair) for pair in ROWS), *(("sum-over-array", *pair) for pair in SUMS)]


def fixed(rule: str, code: str) -> str:
    """The code after `check --fix --unsafe-fixes`."""
    data, scope = code.encode(), Scope((rule,))
    return fix_text("m.py", data, check_text(data, "m.py", scope), scope, join({}), unsafe=True).after.decode()


@pytest.mark.parametrize(("rule", "before", "after"), ALL)
def test_rows_that_are_read_by_their_number_are_mapped_over(rule: str, before: str, after: str | None) -> None:
    assert fixed(rule, CODE.format(before)) == CODE.format(after or before)


def test_what_is_mapped_is_the_same(tmp_path: Path) -> None:
    jobs = []
    pairs = [(before, after) for _, before, after in ALL if after is not None]
    for i, pair in enumerate(pairs):
        paths = [tmp_path / f"{name}_{i}.py" for name in ("before", "after")]
        for path, made in zip(paths, pair, strict=True):
            path.write_text(CODE.format(made))
        jobs.append(agreeing_job(*paths, "run(f32[7,7], f32[9,7], f32[7])"))
    told = zip(pairs, agree_many(jobs), strict=True)
    assert [(pair, said) for pair, said in told if said is not None] == []


def test_on_the_host_the_function_of_jax_takes_the_array() -> None:
    code = "import jax.numpy as jnp\n\ndef shape(z, w):\n    z, w = jnp.abs(z), jnp.abs(w)\n    return {}\n"
    for before, after in (("max(z)", "jnp.max(z)"), ("max(min(z), max(w))", "max(jnp.min(z), jnp.max(w))")):
        assert fixed("sum-over-array", code.format(before)) == code.format(after)
    assert fixed("sum-over-array", code.format("sorted(z)")) == code.format("sorted(z)")
