"""A general solve of a matrix that is seen to be positive definite: `jnp.linalg.solve(x.T @ x + damping * eye, b)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.calls import argument, as_argument, brief, has_only
from fusionlint.rule import Rule
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

rule = Rule(__name__, harm="fusion")

_SOLVES = ("jax.numpy.linalg.solve", "jax.scipy.linalg.solve")
_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")
_IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")
_TRANSPOSES = frozenset(("T", "mT"))
_LONG = 40


@rule.source("Call", calls=_SOLVES)
def solved_by_elimination(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is a Gram matrix and more on its diagonal."""
    if not source.calls(node, *_SOLVES) or not has_only(node, 2) or len(node.args) != 2:
        return
    if not source.is_traced(node) or is_idle(source.project, source.place(node)):
        return
    matrix, right = node.args[0].value, node.args[1].value
    if not _is_definite(_meant(matrix, source), source):
        return
    solve = f"{source.alias('jax.scipy.linalg') or 'jax.scipy.linalg'}.solve"
    edits: tuple[Edit, ...] = ()
    if source.alias("jax") == "jax" and not holds_comment(node):
        text = f'{solve}({as_argument(matrix, source)}, {as_argument(right, source)}, assume_a="pos")'
        edits = (source.replace(node, text),)
    yield source.finding(
        node,
        "the matrix is symmetric and positive definite: elimination with pivots does twice the work of Cholesky",
        write=f'{solve}({_shown(matrix, source)}, {_shown(right, source)}, assume_a="pos")',
        edits=edits,
    )


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
    """`damping * jnp.eye(n)`, whose factor does not stand there as negative."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            if isinstance(left, cst.UnaryOperation) or isinstance(right, cst.UnaryOperation):
                return False
            return _is_diagonal(left, source) or _is_diagonal(right, source)
    return source.calls(node, *_IDENTITIES)


def _is_gram(node: cst.BaseExpression, source: Source) -> bool:
    """`x.T @ x` or `x @ x.T`, divided by a number or not, or what a kernel calls its Gram matrix."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("gram"))):
            return True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("as_matrix" | "to_dense" | "todense"))):
            return _is_gram(owner, source)
        case cst.BinaryOperation(left=left, operator=cst.Divide()):
            return _is_gram(left, source)
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return _are_transposes(left, right)
    if isinstance(node, cst.Call) and source.calls(node, *_PRODUCTS):
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
            return value if attr.value in _TRANSPOSES else None
        case cst.Attribute(value=value, attr=cst.Name(attr)) if attr in _TRANSPOSES:
            return value
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("transpose")), args=[]):
            return value
    return None


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(source.code(node), _LONG)
