"""Quadratic forms with an inverse, `r @ solve(m, r)` or `r @ inv(m) @ r`: what a Gaussian's density is made of.

In: expressions of a Source, and the text of a matrix. Out: whether a product solves with that matrix between twice the
same vector, through names, transposes and added axes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import elements, takes_all
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.values.matrices import TRANSPOSES
from fusionlint.source.tree import Source

SOLVES = ("jax.numpy.linalg.solve", "jax.scipy.linalg.solve")
INVERSES = ("jax.numpy.linalg.inv", "jax.scipy.linalg.inv")
_PRODUCTS = tuple(f"jax.numpy.{name}" for name in ("dot", "matmul", "vdot", "inner", "tensordot"))
_EINSUM = "jax.numpy.einsum"
# These leave the numbers of a vector as they are, or add up a product of them.
_KEEPS = tuple(f"jax.numpy.{name}" for name in ("sum", "squeeze", "transpose", "reshape", "conj", "expand_dims"))
_METHODS = frozenset(("sum", "squeeze", "transpose", "reshape", "conj"))
# Where the matrix is solved with, among the factors.
_BETWEEN = ""
_DEPTH = 8


def is_quadratic(product: cst.BaseExpression, matrix: str, source: Source) -> bool:
    """Whether a factor stands on both sides of the one inverse of `matrix`: with two of them, as in an element's
    stiffness, `(b @ inv(m)).T @ d @ (b @ inv(m))`, nothing says that the matrix is symmetric."""
    factors = list(_factors(product, matrix, source, _DEPTH))
    named = [factor for factor in factors if factor != _BETWEEN]
    return factors.count(_BETWEEN) == 1 and len(set(named)) < len(named)


def _factors(node: cst.BaseExpression, matrix: str, source: Source, depth: int) -> Iterator[str]:
    """The texts of what is multiplied, without transposes and axes of one."""
    parts = _parts(node, matrix, source) if depth > 0 or is_of(node, matrix, source) else None
    if parts is None:
        yield source.code(node)
        return
    if source.calls(node, *SOLVES, *INVERSES):
        yield _BETWEEN
    for part in parts:
        yield from _factors(part, matrix, source, depth - 1)


def _parts(node: cst.BaseExpression, matrix: str, source: Source) -> list[cst.BaseExpression] | None:
    """What a product is made of, or what stands under a name, a transpose or a sum; None for a factor."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply() | cst.Multiply(), right=right):
            return [left, right]
        case cst.Attribute(value=value, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return [value]
        case cst.Subscript(value=value, slice=slices) if all(map(takes_all, elements(slices))):
            return [value]
        case cst.Subscript(value=value) if is_of(value, matrix, source):
            return [value]  # `solve(m, y[..., None])[..., 0]`
        case cst.Name():
            made = source.value(node)
            return [made] if made is not None and _solves_somewhere(made, matrix, source, _DEPTH) else None
        case cst.Call():
            return _called(node, matrix, source)
    return None


def _called(call: cst.Call, matrix: str, source: Source) -> list[cst.BaseExpression] | None:
    values = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if is_of(call, matrix, source):
        return values[1:2]
    if source.calls(call, *_PRODUCTS):
        return values[:2]
    if source.calls(call, _EINSUM):
        return values[1:]
    if source.calls(call, *_KEEPS):
        return values[:1]
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name("dot")):
            return [owner, *values]
        case cst.Attribute(value=owner, attr=cst.Name(name)) if name in _METHODS:
            return [owner]
    return None


def is_of(call: cst.CSTNode, matrix: str, source: Source) -> bool:
    """Whether a call solves with `matrix`, or inverts it."""
    if not source.calls(call, *SOLVES, *INVERSES):
        return False
    first = argument(call, 0, "a")
    return first is not None and source.code(first) == matrix


def _solves_somewhere(node: cst.BaseExpression, matrix: str, source: Source, depth: int) -> bool:
    parts = _parts(node, matrix, source) if depth else None
    if parts is None:
        return False
    return is_of(node, matrix, source) or any(_solves_somewhere(part, matrix, source, depth - 1) for part in parts)
