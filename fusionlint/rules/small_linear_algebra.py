"""A library's factorization of a matrix of two to five rows, `jnp.linalg.solve(jnp.array([[a, b], [c, d]]), r)`, and
numbers that go through an array for a product: `x, y = jnp.dot(jnp.array([[a, b], [c, d]]), jnp.array([p, q]))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import TO_JAX_ARRAY
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import is_worked_on, worked_on
from fusionlint.patterns.compiled.factored import rows_factored
from fusionlint.patterns.operations.choice import listed
from fusionlint.patterns.runs.under import is_for_the_host, under_vmap
from fusionlint.patterns.values.matrices import PRODUCTS, few_rows, small_matrix
from fusionlint.rule import Rule
from fusionlint.source.facts import Call
from fusionlint.source.names import PARTIAL
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# `det` is not among them: jax writes it out for up to three rows.
_CALLS = ("jax.numpy.linalg.solve", "jax.numpy.linalg.inv", "jax.scipy.linalg.solve", "jax.scipy.linalg.inv")

_ADJUGATE = "the inverse written out, [[d, -b], [-c, a]] over a * d - b * c, times the right-hand side"
# The pair of the page about four rows and five.
_OF_MORE = 2
_FACTOR = "a = sqrt(m[0, 0]), b = m[1, 0] / a, c = sqrt(m[1, 1] - b * b)"
_ELIMINATION = "the elimination in Python, over rows that are lists of entries: arithmetic that fuses, without pivots"


@rule.source("Call", calls=_CALLS)
def factored_though_small(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is made row by row, of two to five."""
    matrix = argument(node, 0, "a")
    n = few_rows(matrix, source)
    if n is None or (source.context(node) == "library" and is_for_the_host(node, source)):
        return  # run eagerly it is one compiled program, and written out one for each of its products
    rows = small_matrix(matrix, source)
    if n == 2:
        write = _written_out(rows, source) if rows is not None else _ADJUGATE
    else:
        write = "the cofactors by jnp.cross of the rows, over the determinant" if n == 3 else _ELIMINATION
    yield source.finding(
        node,
        f"a {n} by {n} matrix goes through a library's factorization: several launches for a few products",
        write=write,
        pair=0 if n <= 3 else _OF_MORE,
    )


@rule.barrier
def part_of_a_small_factorization(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory around the factorization of a matrix of two or three rows."""
    if rows_factored(barrier, module, "cholesky") in (2, 3):
        return f"write the factor out, {_FACTOR} for two rows, and what it solves: arithmetic that fuses"
    rows = rows_factored(barrier, module)
    if rows not in (2, 3):
        return None
    by = "the adjugate" if rows == 2 else "the cofactors, by jnp.cross of its rows,"
    return f"write the inverse of the {rows} by {rows} matrix out, {by} over the determinant: arithmetic that fuses"


@rule.barrier(pair=_OF_MORE)
def part_of_a_factorization_of_a_few_more(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of four or five rows."""
    return _ELIMINATION if rows_factored(barrier, module) in (4, 5) else None


def _written_out(rows: list[list[cst.BaseExpression]], source: Source) -> str:
    (a, b), (c, d) = [[source.code(entry) for entry in row] for row in rows]
    if not all(text.isidentifier() for text in (a, b, c, d)):
        return _ADJUGATE
    jnp = source.jnp
    return f"the inverse {jnp}.array([[{d}, -{b}], [-{c}, {a}]]) / ({a} * {d} - {b} * {c}), and products with it"


def _lists_rows(call: Call) -> bool:
    """Whether the facts of a call say that it is handed lists in a list."""
    return any(row.arguments for given in call.value.arguments[:1] for row in given.arguments)


@rule.source("Call", calls=TO_JAX_ARRAY, like=_lists_rows)
def numbers_multiplied_as_arrays(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A small matrix and a vector are written out for one product, whose numbers are taken apart again."""
    if small_matrix(node, source) is None:
        return
    reads = source.readers(node)
    product = _product(reads[0], source) if len(reads) == 1 else None
    if product is None or not _is_computed_with(worked_on(product, source), source) or under_vmap(product, source):
        return  # of many at once a GPU and a TPU make one kernel
    yield source.finding(
        product,
        "numbers are put into a matrix and a vector for one product, and taken out again",
        write="each row of it as it is: a * x + b * y",
        pair=1,
    )


def _product(matrix: cst.CSTNode, source: Source) -> cst.Call | cst.BinaryOperation | None:
    """What multiplies `matrix` by a vector that is written out."""
    match above := source.parent(matrix):
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=vector) if left is matrix:
            return above if listed(vector, source) else None
        case cst.Arg():
            match call := source.parent(above):
                case cst.Call(args=[first, cst.Arg(keyword=None, value=vector), *_]) if first is above:
                    return call if _is_product(call.func, source) and listed(vector, source) else None
    return None


def _is_product(function: cst.BaseExpression, source: Source) -> bool:
    """`jnp.dot`, or a name for `partial(jnp.dot, precision=...)`."""
    value = source.value(function) if isinstance(function, cst.Name) else None
    match value:
        case cst.Call(func=maker, args=[cst.Arg(value=of), *_]) if source.qualified_name(maker) in PARTIAL:
            function = of
    return source.qualified_name(function) in PRODUCTS


def _is_computed_with(product: cst.CSTNode, source: Source) -> bool:
    """Whether `product` is taken apart into numbers, and elementwise work goes on with each."""
    match source.parent(product):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]):
            names = [element.value for element in elements if isinstance(element.value, cst.Name)]
            used = [any(is_worked_on(read, source) for read in source.reads(name)) for name in names]
            return len(used) == len(elements) and all(used)
    return False
