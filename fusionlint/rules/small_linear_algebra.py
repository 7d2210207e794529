"""A library's factorization of a matrix of two or three rows: `jnp.linalg.solve(jnp.array([[a, b], [c, d]]), r)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.calls import argument
from fusionlint.patterns.matrices import small_matrix
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

# `det` is not among them: jax writes it out for up to three rows.
_CALLS = ("jax.numpy.linalg.solve", "jax.numpy.linalg.inv", "jax.scipy.linalg.solve", "jax.scipy.linalg.inv")


@rule.source("Call", calls=_CALLS)
def factored_though_small(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is written out row by row, two by two or three by three."""
    if not source.calls(node, *_CALLS) or not source.is_traced(node):
        return
    rows = small_matrix(argument(node, 0, "a"), source)
    if rows is None:
        return
    n = len(rows)
    yield source.finding(
        node,
        f"a {n} by {n} matrix goes through a library's factorization: several launches for a few products",
        write=_written_out(rows, source) if n == 2 else "the cofactors by jnp.cross of the rows, over the determinant",
    )


def _written_out(rows: list[list[cst.BaseExpression]], source: Source) -> str:
    (a, b), (c, d) = [[source.code(entry) for entry in row] for row in rows]
    if not all(text.isidentifier() for text in (a, b, c, d)):
        return "the inverse written out, [[d, -b], [-c, a]] over a * d - b * c, times the right-hand side"
    jnp = source.alias("jax.numpy") or "jnp"
    return f"the inverse {jnp}.array([[{d}, -{b}], [-{c}, {a}]]) / ({a} * {d} - {b} * {c}), and products with it"
