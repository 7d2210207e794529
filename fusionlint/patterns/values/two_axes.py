"""Whether an array is seen to have two axes, or more than one: by what made it, what reads it, or its annotation.

In: an array of a Source. A mask of a diagonal has two; of whatever else nothing is said.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, elements, is_new_axis, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.source.tree import Source

# A name seldom stands for more names than this.
_DEPTH = 8
_MAKES = tuple(f"jax.numpy.{name}" for name in ("eye", "identity", "diag", "outer", "cov", "corrcoef", "tri"))
_SHAPED = (*FRESH_BY_SHAPE, "jax.numpy.reshape", "jax.numpy.broadcast_to")
# What takes matrices; of several at once nobody writes one diagonal.
_READS = (
    "jax.numpy.diag",
    *(f"jax.numpy.linalg.{name}" for name in ("cholesky", "inv", "solve", "eigh", "eigvalsh", "slogdet", "det")),
    *(f"jax.scipy.linalg.{name}" for name in ("cholesky", "cho_factor", "solve_triangular", "lu_factor", "expm")),
)
_FROM_A_MATRIX = ("jax.numpy.diag_indices_from", "numpy.diag_indices_from")


def is_matrix(array: cst.BaseExpression, source: Source) -> bool:
    """Whether `array` is seen to have two axes."""
    return _is_made_so(array, source, _DEPTH) or (isinstance(array, cst.Name) and _is_read_so(array, source))


def has_rows(array: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `array` is seen to have more axes than one: `jnp.zeros((3, 4)) + x`, or `x: Float[Array, "b n"]`."""
    match array if depth else None:
        case cst.Name() as name:
            said = axes_said(name, source) or ()
            return len([axis for axis in said if axis[0] not in "*."]) > 1 or has_rows(
                source.value(name), source, depth - 1
            )
        case cst.UnaryOperation(expression=inner):
            return has_rows(inner, source, depth)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            either = any(has_rows(side, source, depth - 1) for side in (left, right))
            return either and not isinstance(operator, cst.MatrixMultiply)
        case cst.Call() as call if source.calls(call, *FRESH_BY_SHAPE):
            shape = source.meant(argument(call, 0, "shape"))
            return isinstance(shape, cst.Tuple | cst.List) and sum(map(_is_one_axis, shape.elements)) > 1
        case cst.Call(args=[*given]) as call if is_elementwise(call, source):
            return any(has_rows(arg.value, source, depth - 1) for arg in given)
    return False


def is_read_by_rows(use: cst.Name, source: Source) -> bool:
    """Whether a read of an array asks for places on two axes, `x[i, j]`, `x.at[i, :]`, or for the lengths of two,
    `b, n = x.shape`."""
    read: cst.CSTNode = use
    above = source.parent(use)
    if isinstance(above, cst.Attribute) and above.attr.value == "at":
        read, above = above, source.parent(above)
    match above:
        case cst.Subscript(value=value, slice=slices) if value is read:
            return sum(not is_new_axis(part) for part in elements(slices)) > 1
        case cst.Attribute(attr=cst.Name("shape")):
            match source.parent(above):
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[_, _, *_]))], value=value):
                    return value is above
    return False


def _is_one_axis(size: cst.BaseElement) -> bool:
    return not isinstance(size, cst.StarredElement)


def _is_made_so(array: cst.BaseExpression, source: Source, depth: int) -> bool:
    if depth == 0:
        return False
    match array:
        case cst.Name():
            value = source.value(array)
            return value is not None and _is_made_so(value, source, depth - 1)
        case cst.UnaryOperation(expression=inner):
            return _is_made_so(inner, source, depth)
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return _is_transposed(left) or _is_transposed(right)
        case cst.BinaryOperation(left=left, right=right):
            return any(_is_made_so(side, source, depth - 1) for side in (left, right)) and not _has_three(array)
        case cst.Comparison(left=left):
            return _is_made_so(left, source, depth) and not _has_three(left)
        case cst.Subscript(slice=slices):
            parts = elements(slices)
            return len(parts) == 2 and any(map(is_new_axis, parts)) and any(map(is_whole, parts))
        case cst.Call():
            return _is_made_by(array, source, depth)
    return False


def _is_made_by(call: cst.Call, source: Source, depth: int) -> bool:
    if source.calls(call, *_MAKES):
        return True
    if source.calls(call, *_SHAPED):
        shape = argument(call, 1 if not source.calls(call, *FRESH_BY_SHAPE) else 0, "shape")
        return isinstance(shape, cst.Tuple | cst.List) and len(shape.elements) == 2 and not _is_starred(shape)
    match call:
        case cst.Call(func=cst.Attribute(value=value), args=[]):
            return _is_made_so(value, source, depth - 1)
        case cst.Call(args=[cst.Arg(value=value, star="", keyword=None)]):
            # What works element by element, or on nothing: `jnp.exp(x)`, `jnp.zeros_like(x)`.
            return (source.qualified_name(call.func) or "").startswith("jax.numpy.") and _is_made_so(
                value, source, depth - 1
            )
    return False


def _is_starred(shape: cst.Tuple | cst.List) -> bool:
    return any(isinstance(size, cst.StarredElement) for size in shape.elements)


def _is_transposed(node: cst.BaseExpression) -> bool:
    """`x.T`, `x.T.conj()`."""
    match node:
        case cst.Attribute(attr=cst.Name("T")):
            return True
        case cst.Call(func=cst.Attribute(value=inner)):
            return _is_transposed(inner)
    return False


def _has_three(node: cst.BaseExpression) -> bool:
    """Whether something in arithmetic is given a third axis, `x[:, :, None]`."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return _has_three(left) or _has_three(right)
        case cst.Subscript(slice=slices):
            return len(elements(slices)) > 2
    return False


def _is_read_so(array: cst.Name, source: Source) -> bool:
    """Whether the variable is somewhere asked for its diagonal, or handed to what takes a matrix."""
    for use in source.uses(array):
        match source.parent(use.node):
            case cst.Arg() as given:
                call = source.parent(given)
                if source.calls(call, *_READS, *_FROM_A_MATRIX):
                    return True
            case cst.Attribute(attr=cst.Name("diagonal" | "mT")):
                return True
    return False
