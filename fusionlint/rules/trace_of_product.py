"""A product of matrices of which only the diagonal is read: `jnp.trace(a @ b)`, `jnp.diagonal(a @ b)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import constant, inside
from fusionlint.patterns.code.calls import argument, as_operand, brief, has_only
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.matrices import PRODUCTS, TRANSPOSES
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_TRACES = ("jax.numpy.trace", "jax.numpy.linalg.trace")
_DIAGONALS = ("jax.numpy.diagonal", "jax.numpy.linalg.diagonal")
# Of a vector this makes a matrix.
_DIAG = "jax.numpy.diag"
_LONG = 40


class _Product(NamedTuple):
    """`left @ right`."""

    whole: cst.BaseExpression
    left: cst.BaseExpression
    right: cst.BaseExpression


@rule.source("Call", calls=(*_TRACES, *_DIAGONALS, _DIAG))
def diagonal_of_a_product(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The product is made for this alone, and is one of two matrices."""
    product = _product(argument(node, 0, "a"), source)
    if product is None or not _is_of_the_middle(node) or source.is_idle(node):
        return
    if source.calls(node, _DIAG) and not _has_columns(product, source):
        return
    if is_concrete(node, source) or _is_made_again(product, node, source):
        return
    text, is_turned = _summed(product, source)
    jnp = source.jnp
    is_trace = source.calls(node, *_TRACES)
    write = f"{jnp}.sum({text}{'' if is_trace else ', axis=-1'})"
    yield source.finding(
        node,
        f"a product of matrices is made for its {'trace' if is_trace else 'diagonal'}, n times the work and the memory",
        write=write,
        edits=_edits(node, product, write, source) if is_trace else (),
        pair=(0 if is_trace else 1) if is_turned else 2,
    )


def _product(made: cst.BaseExpression | None, source: Source) -> _Product | None:
    """The product that is handed in, itself or by a name that nothing else reads."""
    if isinstance(made, cst.Name):
        value = source.value(made)
        written = source.written(made)
        if value is None or written is None or len(source.reads(written)) != 1:
            return None
        made = value
    match made:
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return _Product(made, left, right)
        case cst.Call(func=function, args=[first, second, *_]) if source.qualified_name(function) in PRODUCTS:
            if has_only(made, 2, "precision") and first.keyword is None and second.keyword is None:
                return _Product(made, first.value, second.value)
    return None


def _is_of_the_middle(node: cst.Call) -> bool:
    """Whether it is the diagonal that begins in the corner, of the first two axes or the last."""
    if not has_only(node, 1, "axis1", "axis2"):
        return False
    axes = [argument(node, 2, "axis1"), argument(node, 3, "axis2")]
    return axes == [None, None] or {constant(axis) for axis in axes if axis is not None} == {-1, -2}


def _has_columns(product: _Product, source: Source) -> bool:
    """Whether what is multiplied from the right is no vector: it is turned, seen to be a matrix, or part of what it is
    multiplied with, `q.T @ m @ q`."""
    match product.right:
        case cst.Attribute(attr=cst.Name(attr)) if attr in TRANSPOSES:
            return True
    turned = f"{source.code(product.right)}.T"
    return is_matrix(product.right, source) or any(source.code(part) == turned for part in inside(product.left))


def _is_made_again(product: _Product, node: cst.Call, source: Source) -> bool:
    """Whether the function makes the same product for something else as well: it is there."""
    function = source.function(node)
    text = source.code(product.whole)
    others = (part for part in inside(function.body) if part is not product.whole) if function is not None else ()
    return any(isinstance(part, type(product.whole)) and source.code(part) == text for part in others)


def _summed(product: _Product, source: Source) -> tuple[str, bool]:
    """What is summed up, elementwise; and whether no matrix is turned for it."""
    left, right = product.left, product.right
    match left, right:
        case _, cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return f"{_shown(left, source)} * {_shown(inner, source)}", True
        case cst.Attribute(value=inner, attr=cst.Name(attr)), _ if attr in TRANSPOSES:
            return f"{_shown(inner, source)} * {_shown(right, source)}", True
    return f"{_shown(left, source)} * {_shown(right, source)}.mT", False


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return as_operand(node, brief(source.code(node), _LONG))


def _edits(node: cst.Call, product: _Product, text: str, source: Source) -> tuple[Edit, ...]:
    """The sum, where the product stands in the call. Not safe: it adds up in another order, and of more axes than two
    it is the sum of all."""
    is_here = argument(node, 0, "a") is product.whole and len(node.args) == 1
    if not is_here or "..." in text or source.has_comment(node) or source.alias_at(node, "jax.numpy") is None:
        return ()
    return (source.replace(node, text),)
