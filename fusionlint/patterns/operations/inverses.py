"""Products with an inverse, and the solve that each of them is.

In: a call in a Source that makes an inverse. Out: the product that it is a factor of, and the code that solves instead,
as far as it is seen which of the factors have to be transposed for that.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.calls import as_argument, as_operand
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.values.factors import axes_of
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.matrices import PRODUCTS, TRANSPOSES
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_CHAIN = "jax.numpy.linalg.multi_dot"


class Product(NamedTuple):
    """A product with an inverse, or its transpose: what that is multiplied by on its right or, where nothing stands
    there, on its left (then the inverse is the right factor); `behind` both what the product is multiplied by, and
    `before` the inverse what stands there, where it is multiplied on either side."""

    whole: cst.BaseExpression
    other: cst.BaseExpression
    is_right: bool
    is_transposed: bool = False
    behind: cst.BaseExpression | None = None
    before: cst.BaseExpression | None = None


def product_of(inverse: cst.BaseExpression, source: Source) -> Product | None:
    """The product that `inverse`, or its transpose, is a factor of; where it stands between two others, that with the
    factor behind it."""
    match source.parent(inverse):
        case cst.Attribute(value=value, attr=cst.Name("T" | "mT")) as transposed if value is inverse:
            found = _product_of(transposed, source)
            return found and found._replace(is_transposed=True)
    return _product_of(inverse, source)


def _product_of(factor: cst.BaseExpression, source: Source) -> Product | None:
    match source.parent(factor):
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right) as product:
            if left is factor:
                return Product(product, right, is_right=False, behind=_behind(product, source))
            if (behind := _behind(product, source)) is not None:
                return Product(product, behind, is_right=False, before=left)
            return Product(product, left, is_right=True)
        case cst.Arg(keyword=None, star="") as arg:
            match source.parent(arg):
                case cst.Call(func=func, args=[first, second]) as call if second.keyword is None and not second.star:
                    if source.qualified_name(func) in PRODUCTS and not first.star:
                        is_right = second is arg
                        return Product(call, (first if is_right else second).value, is_right)
        case cst.Element() as element:
            return _in_a_chain(element, source)
    return None


def _behind(product: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """`c` of `inverse @ b @ c`."""
    match source.parent(product):
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right) if left is product:
            return right
    return None


def _in_a_chain(element: cst.Element, source: Source) -> Product | None:
    """`jnp.linalg.multi_dot([b, inverse, c])`."""
    factors = source.parent(element)
    call = source.handed_to(factors) if isinstance(factors, cst.List | cst.Tuple) else None
    if not isinstance(factors, cst.List | cst.Tuple) or call is None or not source.calls(call, _CHAIN):
        return None
    place = factors.elements.index(element)
    is_right = place == len(factors.elements) - 1
    return Product(factors, factors.elements[place - 1 if is_right else place + 1].value, is_right)


class Solved(NamedTuple):
    """What to write instead of a product with an inverse, and the edits that do."""

    text: str
    edits: tuple[Edit, ...]


def solved(node: cst.Call, found: Product, solve: str, source: Source, *, half: str | None = None) -> Solved | None:
    """The solve with the matrix that `node` inverts, by the function `solve`, in place of the product `found`; None
    where it is not seen what to transpose, or where the matrix is another by then. `half` are the arguments that say
    which half of a triangular factor is solved with, which is not transposed but asked for so.

    Not safe: the last digits differ.
    """
    matrix, whole = node.args[0].value, _replaced(found, source)
    if not isinstance(whole, cst.BinaryOperation | cst.Call) or source.has_comment(whole) or holds_comment(node):
        return None
    line = _line_to_go(node, matrix, found, source)
    call = _solve(matrix, found, solve, source, half)
    if line is None or call is None:
        return None
    before = f"{_factor(found.before, source)} @ " if found.before is not None else ""
    behind = ".mT" if found.is_right and axes_of(found.other, source) == "matrix" else ""
    edit = in_place_of(whole, call, source)
    return Solved(f"{before}{call}{behind}", (edit._replace(text=f"{before}{edit.text}{behind}"), *line))


def _replaced(found: Product, source: Source) -> cst.CSTNode | None:
    """What is replaced: with a factor behind it the larger product, of which that is part."""
    is_larger = found.before is not None or _takes_both(found, source)
    return source.parent(found.whole) if is_larger else found.whole


def _takes_both(found: Product, source: Source) -> bool:
    """Whether what stands behind `inverse @ b` is multiplied by b first: of a product with a vector alone the system is
    solved then, and not for each column of b."""
    return found.behind is not None and axes_of(found.other, source) == "matrix"


def _line_to_go(node: cst.Call, matrix: cst.BaseExpression, found: Product, source: Source) -> tuple[Edit, ...] | None:
    """The line that gives the inverse a name goes; None where it cannot, or where the matrix is another by then."""
    name, statement = source.assigned_name(node), source.parent(node)
    if name is None:
        return ()
    line = whole_line(statement, source) if isinstance(statement, cst.Assign) else None
    if line is None or not is_same_at(matrix, found.whole, source, dropped=name):
        return None
    is_its_own = all(source.written(read) is name for read in source.reads(name))
    return (Edit(line, ""),) if is_its_own and not source.has_comment(statement or node) else None


def _solve(matrix: cst.BaseExpression, found: Product, solve: str, source: Source, half: str | None) -> Called | None:
    is_turned = found.is_transposed is not found.is_right
    is_numpy = any(kind(each, source) == "numpy" for each in (matrix, found.other))  # which may have no `mT`
    axes = axes_of(found.other, source) if found.is_right else None
    if ((is_turned or found.is_right) and is_numpy) or (found.is_right and axes is None):
        return None
    a = _turned(matrix, source) if is_turned and half is None else as_argument(matrix, source)
    b = _turned(found.other, source) if axes == "matrix" else as_argument(found.other, source)
    if _takes_both(found, source) and found.behind is not None:
        b = f"{_factor(found.other, source)} @ {_factor(found.behind, source)}"
    trans = ("trans=1",) if is_turned and half is not None else ()
    return Called(solve, (a, b, *trans, *((half,) if half else ())))


def _turned(matrix: cst.BaseExpression, source: Source) -> str:
    """The transpose of a matrix: of `x.T` it is x."""
    match matrix:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return as_argument(inner, source)
    return f"{as_operand(matrix, source.code(matrix))}.mT"


def _factor(node: cst.BaseExpression, source: Source) -> str:
    """A factor as it stands in its product."""
    return f"({source.code(node)})" if node.lpar else source.code(node)
