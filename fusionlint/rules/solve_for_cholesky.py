"""A general solve of a matrix that is seen to be positive definite: `jnp.linalg.solve(x.T @ x + damping * eye, b)`, or
the covariance of a Gaussian's log density."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside
from fusionlint.patterns.code.calls import argument, as_argument, brief, has_only
from fusionlint.patterns.code.layout import Called, added, in_place_of, quoted
from fusionlint.patterns.compiled.factorizations import factored_needlessly
from fusionlint.patterns.operations.quadratic import SOLVES, is_of, is_quadratic
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.options import as_given
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.matrices import IDENTITIES, PRODUCTS, TRANSPOSES, few_rows
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_DETERMINANTS = ("jax.numpy.linalg.slogdet", "jax.numpy.linalg.det")
# What is called so is a factor already, whatever is done with it.
_FACTOR = regex(r"tril|chol|root|sqrt|factor|(^|_)L$")
_SMALL = ("2", "3")
# Beside a matrix of norm one.
_ROUNDED = 1e-5
# The axes of a batch of matrices, with the last two turned.
_LAST_TWO = ([0, 2, 1], [0, 1, 3, 2])
_LONG = 40


@rule.source("Call", calls=SOLVES)
def solved_by_elimination(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is a Gram matrix and more on its diagonal."""
    if not has_only(node, 2) or len(node.args) != 2:
        return
    if source.is_idle(node):
        return
    matrix, right = node.args[0].value, node.args[1].value
    if not _is_definite(_meant(matrix, source), source) or _has_a_determinant(node, matrix, source):
        return
    solve = f"{source.alias('jax.scipy.linalg') or 'jax.scipy.linalg'}.solve"
    edits = _edits(node, solve, source) if source.alias_at(node, "jax") == "jax" and not holds_comment(node) else ()
    yield source.finding(
        node,
        "the matrix is symmetric and positive definite: elimination with pivots does twice the work of Cholesky",
        write=f'{solve}({_shown(matrix, source)}, {_shown(right, source)}, assume_a="pos")',
        edits=edits,
    )


def _edits(node: cst.Call, solve: str, source: Source) -> tuple[Edit, ...]:
    """scipy's solve in place of numpy's: what stands in several lines stays in them."""
    positive, where = quoted('assume_a="pos"', source), source.location(node)
    if where.end_line > where.line:
        return source.replace(node.func, solve), added(node, positive, source)
    given = [as_argument(arg.value, source) for arg in node.args]
    return (in_place_of(node, Called(solve, [*given, positive]), source),)


@rule.source("Call", calls=_DETERMINANTS)
def log_density_by_elimination(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The determinant of a matrix that the same function solves with, where it is seen to be definite, or between
    twice the same vector: `r @ solve(cov, r) + slogdet(cov)[1]`."""
    matrix = argument(node, 0, "a")
    function = source.function(node)
    if not isinstance(matrix, cst.Name | cst.Attribute) or function is None:
        return
    if source.is_idle(node) or is_concrete(node, source):
        return
    text = source.code(matrix)
    made = source.value(matrix) if isinstance(matrix, cst.Name) else None
    if _FACTOR.search(text) or (made is not None and _FACTOR.search(source.code(made))) or _is_small(matrix, source):
        return
    solves = [
        part for part in inside(function.body, cst.Call) if is_of(part, text, source) and _is_same(part, matrix, source)
    ]
    if not solves or not (_is_definite(_meant(matrix, source), source) or _is_of_a_form(solves, text, source)):
        return
    yield source.finding(
        node,
        f"the determinant of a positive definite matrix, and {_named(solves[0], source)}, by elimination with pivots",
        write=f"f = jnp.linalg.cholesky({text}); with z = solve_triangular(f, r, lower=True) of jax.scipy.linalg, "
        "r @ inverse @ r is z @ z, and the log determinant 2 * jnp.log(jnp.diagonal(f)).sum()",
        pair=1,
    )


@rule.barrier
def eliminated_though_definite(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory around an elimination of a product with its own transpose, and more on its diagonal."""
    if not factored_needlessly(barrier, module, "gram"):
        return None
    return (
        'jax.scipy.linalg.solve(a, b, assume_a="pos"), or one Cholesky factor where the determinant is needed as well: '
        "the matrix is a product with its own transpose, and more on its diagonal"
    )


def _is_of_a_form(solves: list[cst.Call], matrix: str, source: Source) -> bool:
    """Whether one of the solves, or what has its result, is part of a quadratic form."""
    function = source.function(solves[0])
    products = inside(function.body) if function is not None else iter(())
    return any(
        is_quadratic(part, matrix, source)
        for part in products
        if isinstance(part, cst.BinaryOperation | cst.Call) and source.function(part) is function
    )


def _is_same(solve: cst.Call, matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether two names that read alike are one variable with one value."""
    other = argument(solve, 0, "a")
    if not isinstance(matrix, cst.Name) or not isinstance(other, cst.Name):
        return True
    return source.written(matrix) is source.written(other) and not source.apart(matrix, other)


def _has_a_determinant(solve: cst.Call, matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether the determinant of the same matrix is computed too: there the better advice is given."""
    function, text = source.function(solve), source.code(matrix)
    if function is None or not isinstance(matrix, cst.Name | cst.Attribute):
        return False
    calls = (part for part in inside(function.body, cst.Call) if part.args)
    return any(source.calls(call, *_DETERMINANTS) and source.code(call.args[0].value) == text for call in calls)


def _is_small(matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether a matrix is seen to be two by two or three by three: small-linear-algebra says what to do with those."""
    axes = axes_said(matrix, source) if isinstance(matrix, cst.Name) else None
    return few_rows(matrix, source) is not None or (axes is not None and axes[-1] in _SMALL)


def _meant(node: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """What a name stands for."""
    value = source.value(node) if isinstance(node, cst.Name) else None
    return value if value is not None else node


def _is_definite(node: cst.BaseExpression, source: Source) -> bool:
    """`x.T @ x + something * eye`."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            one, other = _meant(left, source), _meant(right, source)
            return (_is_gram(one, source) and _is_diagonal(other, source)) or (
                _is_gram(other, source) and _is_diagonal(one, source)
            )
    return False


def _is_diagonal(node: cst.BaseExpression, source: Source) -> bool:
    """`damping * jnp.eye(n)`, whose factor does not stand there as negative, nor as less than rounding leaves."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            if any(_may_be_negative(part, source) or _is_tiny(part, source) for part in (left, right)):
                return False
            return _is_diagonal(left, source) or _is_diagonal(right, source)
        case cst.Call():
            return source.calls(node, *IDENTITIES) and has_only(node, 1, "N", "n", "M", "dtype")
    return False


def _may_be_negative(factor: cst.BaseExpression, source: Source) -> bool:
    return isinstance(source.meant(factor), cst.UnaryOperation)


def _is_tiny(factor: cst.BaseExpression, source: Source) -> bool:
    """Whether a factor may be as small as the rounding of a float32 matrix, `1e-6`, `jnp.maximum(damping, 1e-6)` or a
    parameter `ridge=1e-8`: what that leaves of a Gram matrix need not be definite, of which Cholesky makes NaN."""
    match as_given(factor, source):
        case cst.Float() as number:
            return number.evaluated_value < _ROUNDED
        case cst.Call(args=[_, cst.Arg(value=cst.Float() as number)]) as call:
            return source.calls(call, "jax.numpy.maximum", "max") and number.evaluated_value < _ROUNDED
    return False


def _is_gram(node: cst.BaseExpression, source: Source) -> bool:
    """`x.T @ x` or `x @ x.T`, divided by a number or not, or what a kernel calls its Gram matrix."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("gram"))):
            return True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("as_matrix" | "to_dense" | "todense"))):
            return _is_gram(owner, source)
        case cst.BinaryOperation(left=left, operator=cst.Divide(), right=right):
            return _is_gram(left, source) and not _may_be_negative(right, source)
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            factors = (left, right)
            return not any(_may_be_negative(each, source) for each in factors) and any(
                _is_gram(each, source) for each in factors
            )
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return _are_transposes(left, right)
    if source.calls(node, *PRODUCTS):
        first, second = argument(node, 0, "a"), argument(node, 1, "b")
        return first is not None and second is not None and _are_transposes(first, second)
    return False


def _are_transposes(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    bare = [_transposed(node) for node in (one, other)]
    if bare[0] is not None and bare[1] is None:
        return bare[0].deep_equals(other)
    return bare[1] is not None and bare[0] is None and bare[1].deep_equals(one)


def _transposed(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x`, where the node is `x.T`: of complex numbers `x.conj().T`."""
    match node:
        case cst.Attribute(value=cst.Call(func=cst.Attribute(value=value, attr=cst.Name("conj"))), attr=attr):
            return value if attr.value in TRANSPOSES else None
        case cst.Attribute(value=value, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return value
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("transpose")), args=args):
            return value if not args or [constant(arg.value) for arg in args] in _LAST_TWO else None
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("swapaxes")), args=[_, _] as args):
            return value if {constant(arg.value) for arg in args} in ({-1, -2}, {1, 2}) else None
    return None


def _named(solve: cst.Call, source: Source) -> str:
    """A solve as it is written, or what it calls where that is long."""
    return f"`{brief(source.code(solve), _LONG, f'{source.code(solve.func)}(...)')}`"


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(source.code(node), _LONG)
