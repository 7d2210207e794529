"""Products with an inverse, and the solve that each of them is.

In: a call in a Source that makes an inverse. Out: the product that it is a factor of, and the code that solves instead,
as far as it is seen which of the factors have to be transposed for that.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import as_argument, as_operand
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.operations.products import is_product, product_of
from fusionlint.patterns.values.factors import axes_of
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.matrices import PRODUCTS, TRANSPOSES
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_CHAIN = "jax.numpy.linalg.multi_dot"


class Multiplied(NamedTuple):
    """A product with an inverse, or its transpose: what that is multiplied by on its right or, where nothing stands
    there, on its left (then the inverse is the right factor); `behind` both what the product is multiplied by, and
    `before` the inverse what stands there, where it is multiplied on either side."""

    whole: cst.BaseExpression
    other: cst.BaseExpression
    is_right: bool
    is_transposed: bool = False
    behind: cst.BaseExpression | None = None
    before: cst.BaseExpression | None = None


def multiplied(inverse: cst.BaseExpression, source: Source) -> Multiplied | None:
    """The product that `inverse`, or its transpose, is a factor of; where it stands between two others, that with the
    factor behind it."""
    found = product_of(inverse, source)
    match found.whole if found is not None else source.parent(inverse):
        case cst.BinaryOperation() as whole if found is not None:
            made = Multiplied(whole, found.other, found.is_right, found.factor is not inverse)
            behind = _behind(whole, source)
            if not found.is_right:
                return made._replace(behind=behind)
            return made if behind is None else made._replace(other=behind, is_right=False, before=found.other)
        case cst.Call(func=function, args=[_, _, *more]) as whole if found is not None:
            # A solve is as precise as is asked for in any case.
            is_asked = all(arg.keyword is not None and arg.keyword.value == "precision" for arg in more)
            is_plain = source.qualified_name(function) in PRODUCTS and is_asked
            return Multiplied(whole, found.other, found.is_right, found.factor is not inverse) if is_plain else None
    return _in_a_chain(inverse, source)


def _behind(product: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """`c` of `inverse @ b @ c`."""
    match source.parent(product):
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right) if left is product:
            return right
    return None


def _in_a_chain(inverse: cst.BaseExpression, source: Source) -> Multiplied | None:
    """`jnp.linalg.multi_dot([b, inverse, c])`."""
    above = source.parent(inverse)
    is_transposed = isinstance(above, cst.Attribute) and above.value is inverse and above.attr.value in TRANSPOSES
    element = source.parent(above) if above is not None and is_transposed else above
    if not isinstance(element, cst.Element):
        return None
    factors = source.parent(element)
    call = source.handed_to(factors) if isinstance(factors, cst.List | cst.Tuple) else None
    if not isinstance(factors, cst.List | cst.Tuple) or not source.calls(call, _CHAIN):
        return None
    place = factors.elements.index(element)
    is_right = place == len(factors.elements) - 1
    return Multiplied(factors, factors.elements[place - 1 if is_right else place + 1].value, is_right, is_transposed)


class Solved(NamedTuple):
    """What to write instead of a product with an inverse, and the edits that do."""

    text: str
    edits: tuple[Edit, ...]


def solved(node: cst.Call, found: Multiplied, solve: str, source: Source, *, half: str | None = None) -> Solved | None:
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
    is_turned = found.is_right and axes_of(found.other, source) == "matrix"
    behind = f".{_transpose(matrix, found.other, source)}" if is_turned else ""
    edit = in_place_of(whole, call, source)
    return Solved(f"{before}{call}{behind}", (edit._replace(text=f"{before}{edit.text}{behind}"), *line))


def _replaced(found: Multiplied, source: Source) -> cst.CSTNode | None:
    """What is replaced: with a factor behind it the larger product, of which that is part."""
    is_larger = found.before is not None or _takes_both(found, source)
    return source.parent(found.whole) if is_larger else found.whole


def _takes_both(found: Multiplied, source: Source) -> bool:
    """Whether what stands behind `inverse @ b` is multiplied by b first: of a product with a vector alone the system is
    solved then, and not for each column of b."""
    return found.behind is not None and axes_of(found.other, source) == "matrix"


def _line_to_go(
    node: cst.Call, matrix: cst.BaseExpression, found: Multiplied, source: Source
) -> tuple[Edit, ...] | None:
    """The line that gives the inverse a name goes; None where it cannot, or where the matrix is another by then."""
    name, statement = source.assigned_name(node), source.parent(node)
    if name is None:
        return ()
    line = whole_line(statement, source) if isinstance(statement, cst.Assign) else None
    if line is None or not is_same_at(matrix, found.whole, source, dropped=name):
        return None
    is_its_own = all(source.written(read) is name for read in source.reads(name))
    return (Edit(line, ""),) if is_its_own and not source.has_comment(statement or node) else None


def _solve(
    matrix: cst.BaseExpression, found: Multiplied, solve: str, source: Source, half: str | None
) -> Called | None:
    is_turned = found.is_transposed is not found.is_right
    is_numpy = any(kind(each, source) == "numpy" for each in (matrix, found.other))  # which may have no `mT`
    axes = axes_of(found.other, source) if found.is_right else None
    if ((is_turned or found.is_right) and is_numpy) or (found.is_right and axes is None):
        return None
    transpose = _transpose(matrix, found.other, source)
    a = _turned(matrix, transpose, source) if is_turned and half is None else as_argument(matrix, source)
    b = _turned(found.other, transpose, source) if axes == "matrix" else as_argument(found.other, source)
    if _takes_both(found, source) and found.behind is not None:
        b = f"{_factor(found.other, source)} @ {_factor(found.behind, source)}"
    trans = ("trans=1",) if is_turned and half is not None else ()
    return Called(solve, (a, b, *trans, *((half,) if half else ())))


def _transpose(matrix: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> str:
    """What the code around calls a transpose: of a stack of matrices `T` would be another, and no `T` is asked of."""
    return "T" if all(_is_one_matrix(each, source) for each in (matrix, other)) else "mT"


def _is_one_matrix(node: cst.BaseExpression, source: Source, depth: int = 2) -> bool:
    """Whether an array is seen to have two axes, or is made of what is asked for its `T`: `p @ h.T`."""
    if is_matrix(node, source):
        return True
    parts = [*inside(node)]
    names = [part for part in parts if isinstance(part, cst.Name)]
    if any(isinstance(part, cst.Attribute) and part.attr.value == "T" for part in parts):
        return True
    values = (source.value(name) for name in names if depth)
    return any(
        value is not None and is_product(value, source) and _is_one_matrix(value, source, depth - 1) for value in values
    )


def _turned(matrix: cst.BaseExpression, transpose: str, source: Source) -> str:
    """The transpose of a matrix: of `x.T` it is x, of `p @ h.T` `h @ p.T`."""
    match matrix:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return as_argument(inner, source)
        case cst.BinaryOperation(
            left=cst.Name() | cst.Attribute() as left,
            operator=cst.MatrixMultiply(),
            right=cst.Attribute(value=inner, attr=cst.Name(attr)),
        ) if attr in TRANSPOSES:
            return f"{as_operand(inner, source.code(inner))} @ {_turned(left, transpose, source)}"
    return f"{as_operand(matrix, source.code(matrix))}.{transpose}"


def _factor(node: cst.BaseExpression, source: Source) -> str:
    """A factor as it stands in its product."""
    return f"({source.code(node)})" if node.lpar else source.code(node)
