"""The product that a matrix is a factor of: `a @ b`, `jnp.dot(a, b)`, `a.dot(b)`.

In: an expression of a Source. Out: the product, and the other factor; or the whole chain of products around one.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.values.matrices import PRODUCTS, TRANSPOSES
from fusionlint.source.tree import Source


class Product(NamedTuple):
    """A product: the factor that was asked for, or the transpose of that, the other one, and whether the first is the
    right one."""

    whole: cst.BaseExpression
    factor: cst.BaseExpression
    other: cst.BaseExpression
    is_right: bool


def is_product(node: cst.CSTNode, source: Source) -> bool:
    """Whether this is one."""
    is_matmul = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply)
    return is_matmul or source.calls(node, *PRODUCTS)


def product_of(factor: cst.BaseExpression, source: Source) -> Product | None:
    """The product that a matrix, or its transpose, is a factor of."""
    above = source.parent(factor)
    if isinstance(above, cst.Attribute) and above.value is factor and above.attr.value in TRANSPOSES:
        factor, above = above, source.parent(above)
    match above:
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right):
            return Product(above, factor, right if left is factor else left, right is factor)
        case cst.Attribute(value=value, attr=cst.Name("dot")) if value is factor:
            match source.parent(above):
                case cst.Call(func=func, args=[cst.Arg(keyword=None, star="", value=other)]) as call if func is above:
                    return Product(call, factor, other, is_right=False)
        case cst.Arg(keyword=None, star=""):
            return _product_called(factor, above, source)
    return None


def _product_called(factor: cst.BaseExpression, arg: cst.Arg, source: Source) -> Product | None:
    """`jnp.dot(a, b)`, or `a.dot(b)`."""
    match source.parent(arg):
        case cst.Call(func=func, args=[first, second, *_]) as call if source.qualified_name(func) in PRODUCTS:
            if not any(one.keyword or one.star for one in (first, second)) and arg in (first, second):
                return Product(call, factor, (first if arg is second else second).value, is_right=arg is second)
        case cst.Call(func=cst.Attribute(value=other, attr=cst.Name("dot")) as func, args=[_]) as call:
            return Product(call, factor, other, is_right=True) if source.qualified_name(func) is None else None
    return None


def chain_around(product: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """The whole chain of products that one is part of."""
    while (found := product_of(product, source)) is not None:
        product = found.whole
    return product
