"""Of what shape an array is whose diagonal is written: square, of more axes, made longer than it is written.

In: the array, and the length of its diagonal as the write says it. Unknown is a matrix, which need not be square.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, TO_ARRAY, constant, elements, inside, is_none
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import meant_in_the_end, unpacked
from fusionlint.patterns.writes.places import DIAGONAL_OF
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_COPIES = tuple(f"jax.numpy.{name}" for name in ("repeat", "tile"))
_SHAPED = ("jax.numpy.reshape", "jax.numpy.broadcast_to")
_IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")
_PRODUCTS = ("jax.numpy.matmul", "jax.numpy.dot")
_TAKES_IT = ("jax.numpy.diag", "jax.numpy.diagonal")
# A name seldom stands for more names than this.
_DEPTH = 6
# More axes than a matrix has.
_AXES = 3


def is_the_shorter(length: cst.BaseExpression, source: Source) -> bool:
    """`min(a.shape[-2:])`, under whatever name a module keeps Python's own: the matrix need not be square."""
    said = meant_in_the_end(length, source)
    return isinstance(said, cst.Call) and dotted(said.func).strip("_") == "min"


def is_of_two(length: cst.BaseExpression, source: Source) -> bool:
    """Whether the length is one of two that a matrix may have, `shape[0]` of `shape: tuple[int, int]`."""
    match length:
        case cst.Subscript(value=cst.Name() as shape):
            match source.binder(shape):
                case cst.Param(annotation=cst.Annotation(annotation=said)):
                    return source.code(said).lower() == "tuple[int, int]"
    return False


def has_more_axes(array: cst.BaseExpression, source: Source) -> bool:
    """Whether the array is seen to be copies of another, one for each row, `jnp.repeat(x[None], n, axis=0)`: whoever
    writes on the diagonal of those writes rows of x, which may have axes of their own. Or it is arithmetic with
    something of three axes, `forces / distances[:, :, None]`, or `einsum("ijk,jlk->ijl", ...)`."""
    made = meant_in_the_end(array, source)
    if isinstance(made, cst.Call):
        return source.calls(made, *_COPIES) or _is_of_three_letters(made, source)
    return isinstance(made, cst.BaseExpression) and _has_three_axes(made)


def _is_of_three_letters(made: cst.Call, source: Source) -> bool:
    match made.args:
        case [cst.Arg(value=cst.SimpleString() as said), *_] if source.calls(made, "jax.numpy.einsum"):
            _, arrow, axes = str(said.evaluated_value).partition("->")
            return bool(arrow) and sum(map(str.isalpha, axes)) >= _AXES
    return False


def is_a_row(value: cst.BaseExpression, length: cst.BaseExpression, source: Source) -> bool:
    """Whether a few numbers are written to each place, `jnp.array([far, far, far])` where n is not seen to be as many:
    no vector of the diagonal."""
    match meant_in_the_end(value, source):
        case cst.Call(args=[cst.Arg(value=cst.List()), *_]) as made if source.calls(made, *TO_ARRAY):
            return constant(length) is None
    return False


def _has_three_axes(made: cst.BaseExpression) -> bool:
    match made:
        case cst.BinaryOperation(operator=operator, left=left, right=right):
            return not isinstance(operator, cst.MatrixMultiply) and any(map(_has_three_axes, (left, right)))
        case cst.UnaryOperation(expression=inner):
            return _has_three_axes(inner)
        case cst.Subscript(slice=slices):
            parts = elements(slices)
            if any(isinstance(part, cst.Ellipsis) for part in parts):  # x[..., None, None]
                return sum(map(is_none, parts)) >= _AXES - 1
            return len(parts) >= _AXES and all(isinstance(part, cst.Slice) or is_none(part) for part in parts)
    return False


def is_as_long(array: cst.BaseExpression, size: str, source: Source) -> bool:
    """Whether what is made is not seen to be longer than its diagonal is written: `jnp.zeros((n, n))`."""
    match meant_in_the_end(array, source):
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=sizes)), *_]):
            return all(source.code(each.value) == size for each in sizes[-2:])
    return True


def is_square(array: cst.BaseExpression, length: cst.BaseExpression, at: cst.Call, source: Source) -> bool:
    """Whether an array is seen to have as many rows as are written of its diagonal, and as many columns: it was asked
    for its length, is made so long, or what is written is made of its diagonal."""
    asked = _asked_for(length, source)
    if asked is not None and source.code(asked) == source.code(array):
        return is_same_at(asked, at, source)
    size = source.code(length)
    if _is_made_so_long(array, size, at, source, _DEPTH) or _is_of_itself(array, asked, source):
        return True
    return _is_of_its_diagonal(at, array, source)


def _is_made_so_long(array: cst.BaseExpression, size: str, at: cst.Call, source: Source, depth: int) -> bool:
    """`jnp.zeros((b, n, n))`, `jnp.reshape(x, [n, n])`, and what an identity of that length goes into."""
    made = meant_in_the_end(array, source)
    if depth == 0 or not isinstance(made, cst.BaseExpression):
        return False
    match made:
        case cst.BinaryOperation(operator=operator, left=left, right=right):
            sides = () if isinstance(operator, cst.MatrixMultiply) else (left, right)
            return any(_is_made_so_long(side, size, at, source, depth - 1) for side in sides)
        case cst.Subscript(value=inner, slice=slices) if is_none(elements(slices)[0]) and len(elements(slices)) == 1:
            return _is_made_so_long(inner, size, at, source, depth - 1)
        case cst.Call(args=[_, one, other]) if source.calls(made, "jax.numpy.where"):
            return any(_is_made_so_long(each.value, size, at, source, depth - 1) for each in (one, other))
        case cst.Call(args=[cst.Arg(value=said), *_]) if source.calls(made, *_IDENTITIES):
            return source.code(said) == size and is_same_at(said, at, source) and len(made.args) == 1
    shape = _shape(made, source)
    if not isinstance(shape, cst.Tuple | cst.List) or len(shape.elements) < 2:
        return False
    return {source.code(each.value) for each in shape.elements[-2:]} == {size} and is_same_at(shape, at, source)


def _shape(made: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    if not isinstance(made, cst.Call):
        return None
    place = 0 if source.calls(made, *FRESH_BY_SHAPE) else 1 if source.calls(made, *_SHAPED) else None
    return argument(made, place, "shape") if place is not None else None


def _is_of_itself(array: cst.BaseExpression, asked: cst.BaseExpression | None, source: Source) -> bool:
    """`a @ a.T`, of the length of `a`."""
    made = meant_in_the_end(array, source)
    match made:
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right):
            pass
        case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=right)]) if source.calls(made, *_PRODUCTS):
            pass
        case _:
            return False
    return (
        asked is not None and source.code(left) == source.code(asked) and source.code(right) == f"{source.code(left)}.T"
    )


def _is_of_its_diagonal(write: cst.Call, array: cst.BaseExpression, source: Source) -> bool:
    """Whether what is written is made of the diagonal that is there: `x.at[i, i].set(jnp.diag(x)[order])`."""
    todo = [(arg.value, _DEPTH) for arg in write.args[:1]]
    while todo:
        value, depth = todo.pop()
        for part in inside(value):
            if source.calls(part, *_TAKES_IT) and part.args:
                return source.code(part.args[0].value) == source.code(array)
            if isinstance(part, cst.Name) and depth and (stands_for := source.value(part)) is not None:
                todo.append((stands_for, depth - 1))
    return False


def _asked_for(length: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """The array whose length this is: x of `x.shape[0]`, `len(x)`, `n, _ = x.shape` and `diag_indices_from(x)`."""
    if source.calls(source.handed_to(length) or length, DIAGONAL_OF):
        return length
    said = meant_in_the_end(length, source)
    if isinstance(said, cst.Name):
        said = unpacked(source.written(said), source) or said
    match said:
        case cst.Attribute(value=of, attr=cst.Name("shape")):
            return of
        case cst.Subscript(value=cst.Attribute(value=of, attr=cst.Name("shape"))):
            return of
        case cst.Call(func=cst.Name("len"), args=[cst.Arg(value=of)]):
            return of
    return None
