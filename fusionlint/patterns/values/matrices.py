"""What is seen of a matrix: its entries, where they are written out, two by two or three by three, how many rows it has
where these are few, or that it is a factor of Cholesky.

In: what a function of linear algebra is handed, in a Source.
"""

from __future__ import annotations

from typing import Literal

import libcst as cst

from fusionlint.patterns.code.at import TO_JAX_ARRAY, constant, is_literal
from fusionlint.patterns.code.calls import argument, has_only, hides_some
from fusionlint.source.tree import Source

# Products of matrices, beside `@`, and the attributes that turn one.
PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")
TRANSPOSES = frozenset(("T", "mT"))
IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")
_STACK = "jax.numpy.stack"
# Measured: of five rows, too, elimination that is written out is a kernel or two, by a library ten.
_FEW = range(2, 6)
# Behind the axes of a batch, if there are any: where stacking makes the rows, or the columns, of a matrix.
_OF_A_MATRIX = (1, -1, -2)


def small_matrix(matrix: cst.BaseExpression | None, source: Source) -> list[list[cst.BaseExpression]] | None:
    """The entries of `jnp.array([[a, b], [c, d]])`, or of a name for it; None for anything but two or three rows of as
    many, and for numbers alone, which XLA folds."""
    if isinstance(matrix, cst.Name):
        matrix = source.value(matrix)
    rows = _rows(matrix, source)
    return None if rows is None or all(is_literal(entry) for row in rows for entry in row) else rows


def is_small_matrix(matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether the entries of a matrix are written out, two by two or three by three, numbers alone too."""
    return _rows(source.meant(matrix), source) is not None


def few_rows(matrix: cst.BaseExpression | None, source: Source) -> int | None:
    """How many rows a square matrix has, two to five, that is made row by row: of lists, of `jnp.array([u, v, w])` with
    `u = jnp.array([a, b, c])`, of `jnp.stack([u, v, w], axis=1)`, whose vectors are then as long; None for any other,
    and for numbers alone."""
    made = source.meant(matrix) if matrix is not None else None
    if not source.calls(made, *TO_JAX_ARRAY, _STACK):
        return None
    match argument(made, 0, "arrays" if source.calls(made, _STACK) else "object"):
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if len(elements) in _FEW:
            rows = [element.value for element in elements]
        case _:
            return None
    if any(isinstance(element, cst.StarredElement) for element in elements) or all(map(is_literal, rows)):
        return None
    axis = argument(made, 1, "axis") if source.calls(made, _STACK) else None
    if axis is not None and constant(axis) in _OF_A_MATRIX:
        return len(rows)
    is_square = axis is None and all(_length(row, source) == len(rows) for row in rows)
    return len(rows) if is_square else None


def _length(row: cst.BaseExpression, source: Source) -> int | None:
    """How long a row is that is written out, `[a, b]`, or a name for `jnp.array([a, b])`."""
    made = source.meant(row)
    is_array = source.calls(made, *TO_JAX_ARRAY, _STACK) and bool(made.args)
    listed = made.args[0].value if is_array and isinstance(made, cst.Call) else made
    match listed:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return len(elements)
    return None


def _rows(matrix: cst.BaseExpression | None, source: Source) -> list[list[cst.BaseExpression]] | None:
    if not source.calls(matrix, *TO_JAX_ARRAY):
        return None
    match argument(matrix, 0, "object"):
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if len(elements) in (2, 3):
            rows = [
                [entry.value for entry in row.value.elements if isinstance(entry, cst.Element)]
                for row in elements
                if isinstance(row.value, cst.List | cst.Tuple)
            ]
            return rows if [len(row) for row in rows] == [len(elements)] * len(elements) else None
    return None


def side_of_factor(matrix: cst.BaseExpression, source: Source) -> Literal["lower", "upper"] | None:
    """Which half of a matrix a factor of Cholesky is; None for what is not seen to be one, or which."""
    made = source.value(matrix) if isinstance(matrix, cst.Name) else matrix
    if not isinstance(made, cst.Call):
        return None
    if source.calls(made, "jax.numpy.linalg.cholesky", "jax.lax.linalg.cholesky"):
        return "lower" if has_only(made, 1) else None
    if not source.calls(made, "jax.scipy.linalg.cholesky") or hides_some(made):
        return None
    asked = argument(made, 1, "lower")  # the upper one by default
    sides: dict[str, Literal["lower", "upper"]] = {"True": "lower", "False": "upper"}
    return "upper" if asked is None else sides.get(source.code(asked))
