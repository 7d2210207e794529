"""Whether what stands in a product of matrices is seen to be a matrix, or a vector.

In: a factor of a Source. Out: "matrix" for two axes and for more, as those of a batch; "vector" for one; None for what
cannot be seen. By its annotation, what made it, what else reads it, and what it stands between: nobody inverts a
product that ends with a vector, nor turns one round but to multiply from the left, `r.T @ m @ r`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, constant, elements, inside, is_new_axis
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.matrices import PRODUCTS, TRANSPOSES
from fusionlint.source.tree import Source

Axes: TypeAlias = Literal["vector", "matrix"]

_DEPTH = 8
_NUMPY, _LINALG, _SCIPY = "jax.numpy.", "jax.numpy.linalg.", "jax.scipy.linalg."
# What makes a matrix, whatever it is given.
_MAKES = frozenset(
    [_NUMPY + name for name in ("eye", "identity", "outer", "cov", "corrcoef", "tri", "tril", "triu", "vstack",
                                "vander", "column_stack", "atleast_2d", "kron", "block", "swapaxes",
                                "matrix_transpose")]
    + [_LINALG + name for name in ("cholesky", "inv", "pinv")]
    + [_SCIPY + name for name in ("cholesky", "inv", "expm", "sqrtm", "block_diag")]
)  # fmt: skip
# What takes matrices, first.
_TAKES = frozenset(
    [_NUMPY + name for name in ("diagonal", "trace", "tril", "triu")]
    + [_LINALG + name for name in ("cholesky", "inv", "pinv", "solve", "eigh", "eigvalsh", "eig", "slogdet", "det",
                                   "svd", "qr", "matrix_power", "matrix_rank")]
    + [_SCIPY + name for name in ("cholesky", "cho_factor", "solve", "solve_triangular", "lu_factor", "lu", "expm",
                                  "inv", "sqrtm", "eigh", "svd", "qr")]
)  # fmt: skip
# Which of what a decomposition returns are matrices.
_PARTS = {
    **dict.fromkeys((_LINALG + "eigh", _SCIPY + "eigh", _LINALG + "eig"), (1,)),
    **dict.fromkeys((_LINALG + "svd", _SCIPY + "svd"), (0, 2)),
    **dict.fromkeys((_LINALG + "qr", _SCIPY + "qr"), (0, 1)),
}
# What keeps the axes of what it is asked of, and of what it is handed.
_KEEPS = frozenset(("astype", "conj", "conjugate", "copy"))
_CONJUGATES = ("jax.numpy.conj", "jax.numpy.conjugate")
_REDUCES = frozenset(("sum", "mean", "max", "min", "prod", "all", "any", "std", "var", "argmax", "argmin"))
_DRAWS = frozenset(f"jax.random.{name}" for name in ("normal", "uniform", "randint", "rademacher", "bernoulli"))


def axes_of(node: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> Axes | None:
    """What `node` is seen to be."""
    if depth == 0:
        return None
    match node:
        case cst.Name():
            return _of_name(node, source, depth)
        case cst.UnaryOperation(expression=inner):
            return axes_of(inner, source, depth)
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return "matrix" if _is_turned(node, source) else axes_of(inner, source, depth)
        case cst.Attribute(value=inner, attr=cst.Name("real" | "imag")):
            return axes_of(inner, source, depth)
        case cst.Attribute():
            return "matrix" if _is_read_as_one(_alike(node, source), source) else None
        case cst.Subscript(value=whole, slice=slices):
            return _of_a_part(whole, elements(slices), source, depth)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return _of_a_product(_chain(node, source), source, depth)
        case cst.BinaryOperation(left=left, right=right):
            return _of_elementwise((left, right), source, depth)
        case cst.Call():
            return _of_a_call(node, source, depth)
    return None


def _of_name(name: cst.Name, source: Source, depth: int) -> Axes | None:
    said = axes_said(name, source)
    if said is not None:
        plain = [axis for axis in said if axis[0] not in "*."]
        is_open = len(plain) < len(said)
        return "matrix" if len(plain) > 1 else None if is_open or not plain else "vector"
    written = source.written(name)
    several = unpacked_at(written, source)
    if several is not None and isinstance(several[0], cst.Call):
        return "matrix" if several[1] in _PARTS.get(source.qualified_name(several[0].func) or "", ()) else None
    value = source.value(name)
    found = axes_of(value, source, depth - 1) if value is not None else None
    if found is not None or written is None:
        return found
    return "matrix" if _is_read_as_one(source.reads(written), source) else None


def _of_a_part(whole: cst.BaseExpression, parts: tuple[Part, ...], source: Source, depth: int) -> Axes | None:
    """`x[:, :r]`, `v[:, None]` have two axes; `v[:r]` those of v."""
    if any(isinstance(part, cst.Ellipsis) for part in parts):
        return None
    kept = [part for part in parts if isinstance(part, cst.Slice) or is_new_axis(part)]
    if len(kept) > 1:
        return "matrix"
    is_first_axis = len(parts) == 1 and bool(kept) and not is_new_axis(parts[0])
    return axes_of(whole, source, depth - 1) if is_first_axis else None


def _of_elementwise(operands: Iterable[cst.BaseExpression], source: Source, depth: int) -> Axes | None:
    """Broadcasting gives the more axes; of what is not seen there may be more."""
    of_each = [_of_operand(operand, source, depth - 1) for operand in operands]
    if "matrix" in of_each:
        return "matrix"
    return "vector" if "vector" in of_each and None not in of_each else None


def _of_operand(node: cst.BaseExpression, source: Source, depth: int) -> Axes | Literal["number"] | None:
    is_number = isinstance(node, cst.Integer | cst.Float | cst.Imaginary)
    return "number" if is_number else axes_of(node, source, depth)


def _of_a_product(factors: list[cst.BaseExpression], source: Source, depth: int) -> Axes | None:
    """Of matrices alone; of what stands between a matrix and its transpose, nobody makes a vector."""
    if len(factors) > 1 and _are_transposes(factors[0], factors[-1], source):
        factors = [factors[0], factors[-1]]
    return "matrix" if all(axes_of(each, source, depth - 1) == "matrix" for each in factors) else None


def _of_a_call(call: cst.Call, source: Source, depth: int) -> Axes | None:
    name = source.qualified_name(call.func) or ""
    first = call.args[0].value if call.args else None
    if name in _MAKES or (name == "jax.numpy.transpose" and len(call.args) == 1):
        return "matrix"
    if _operands(call, source):
        return _of_a_product(_chain(call, source), source, depth)
    if name in FRESH_BY_SHAPE or name in _DRAWS or name == "jax.numpy.reshape":
        return _of_shape(argument(call, 0 if name in FRESH_BY_SHAPE else 1, "shape"))
    if is_elementwise(call, source):
        return _of_elementwise([arg.value for arg in call.args], source, depth)
    if name == _LINALG + "solve" and len(call.args) > 1:
        return axes_of(call.args[1].value, source, depth - 1)
    if name in ("jax.numpy.array", "jax.numpy.asarray", "jax.numpy.zeros_like", "jax.numpy.ones_like") and first:
        return axes_of(first, source, depth - 1)
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name(method)) if not name.startswith("jax."):
            return _of_a_method(owner, method, call, source, depth)
    return None


def _of_a_method(owner: cst.BaseExpression, method: str, call: cst.Call, source: Source, depth: int) -> Axes | None:
    if method in _KEEPS:
        return axes_of(owner, source, depth - 1)
    if method == "transpose" and not call.args:
        return "matrix"
    if method == "reshape":
        is_listed = len(call.args) == 1 and isinstance(call.args[0].value, cst.Tuple)
        return _of_shape(call.args[0].value) if is_listed else ("matrix" if len(call.args) > 1 else None)
    return None


def _of_shape(shape: cst.BaseExpression | None) -> Axes | None:
    match shape:
        case cst.Tuple(elements=sizes) | cst.List(elements=sizes):
            if any(isinstance(size, cst.StarredElement) for size in sizes):
                return "matrix" if len(sizes) > 2 else None
            return "matrix" if len(sizes) > 1 else "vector" if sizes else None
        case cst.Integer():
            return "vector"
    return None


def _alike(node: cst.Attribute, source: Source) -> Iterator[cst.CSTNode]:
    """Where the same field is read in the function around."""
    function = source.function(node)
    parts = inside(function.body) if function is not None else iter(())
    return (part for part in parts if isinstance(part, cst.Attribute) and part.deep_equals(node))


def _is_read_as_one(reads: Iterable[cst.CSTNode], source: Source) -> bool:
    """Whether one of the reads is one of a matrix."""
    return any(_is_of_a_matrix(read, source) for read in reads)


def _is_of_a_matrix(read: cst.CSTNode, source: Source) -> bool:
    match above := source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name(attr)) if value is read:
            is_turned = attr in TRANSPOSES and _is_turned(above, source)
            return is_turned or (attr == "shape" and _is_asked_for_two(above, source))
        case cst.Subscript(value=value, slice=slices) if value is read:
            parts = [part for part in elements(slices) if not is_new_axis(part)]
            return len(parts) > 1 and not any(isinstance(part, cst.Ellipsis) for part in parts)
        case cst.Arg(keyword=None):
            call = source.handed_to(read)
            if call is not None and _takes_a_matrix(call, above, source):
                return True
    return _is_a_matrix_among(read, source)


def _is_turned(transpose: cst.Attribute, source: Source) -> bool:
    """Whether `x.T` is one of a matrix: `x.mT` is; of a vector it is written on the left of a product alone."""
    if transpose.attr.value == "mT":
        return True
    node: cst.CSTNode = transpose
    while True:
        match above := source.parent(node):
            case cst.Attribute(value=value, attr=cst.Name(method)) if value is node and method in _KEEPS:
                node = source.parent(above) or above
            case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply()):
                return left is not node
            case cst.Attribute(attr=cst.Name("dot")) | cst.Assign():
                return False
            case cst.Arg():
                call = source.parent(above)
                return not (isinstance(call, cst.Call) and call.args[0] is above)
            case _:
                return True


def _is_asked_for_two(shape: cst.Attribute, source: Source) -> bool:
    """`n, m = x.shape`, `x.shape[1]`."""
    match source.parent(shape):
        case cst.Subscript(value=value, slice=slices) if value is shape:
            place = constant(elements(slices)[0])
            return place is not None and place not in (0, -1)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=several))]):
            return len(several) > 1 and not any(isinstance(each, cst.StarredElement) for each in several)
    return False


def _takes_a_matrix(call: cst.Call, arg: cst.Arg, source: Source) -> bool:
    if not call.args or call.args[0] is not arg:
        return False
    name = source.qualified_name(call.func) or ""
    if name in _TAKES or (name == "jax.numpy.transpose" and len(call.args) == 1):
        return True
    module, _, last = name.rpartition(".")
    axis = argument(call, 1, "axis") if f"{module}." == _NUMPY and last in _REDUCES else None
    return axis is not None and constant(axis) in (1, -2)


def _is_a_matrix_among(read: cst.CSTNode, source: Source) -> bool:
    """Whether a factor stands between a matrix and its transpose, `h @ read @ h.T`, or ends what is inverted."""
    whole = read
    while (above := _product_around(whole, source)) is not None:
        whole = above
    factors = _chain(whole, source) if isinstance(whole, cst.BaseExpression) else []
    if len(factors) < 2 or not any(factor is read for factor in factors):
        return False
    is_end = factors[0] is read or factors[-1] is read
    if not is_end:
        return _are_transposes(factors[0], factors[-1], source)
    return any(_is_inverted(reader, source) for reader in source.readers(whole))


def _is_inverted(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node`, or a sum with it, is handed to what takes matrices alone."""
    while isinstance(above := source.parent(node), cst.BinaryOperation) and isinstance(
        above.operator, cst.Add | cst.Subtract
    ):
        node = above
    call = source.handed_to(node)
    return call is not None and call.args[0].value is node and (source.qualified_name(call.func) or "") in _TAKES


def _are_transposes(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    (text, is_turned), (other_text, is_other_turned) = _bare(one, source), _bare(other, source)
    return text == other_text and is_turned is not is_other_turned


def _bare(node: cst.BaseExpression, source: Source, *, is_turned: bool = False) -> tuple[str, bool]:
    """`x`, of `x.T`, `x.T.conj()` and `jnp.conj(x.T)`, and whether that is its transpose."""
    match node:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return _bare(inner, source, is_turned=not is_turned)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("conj")), args=[]):
            return _bare(inner, source, is_turned=is_turned)
        case cst.Call(args=[cst.Arg(value=inner)]) if source.calls(node, *_CONJUGATES):
            return _bare(inner, source, is_turned=is_turned)
    return source.code(node), is_turned


def _product_around(factor: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """The product that `factor` is a factor of: `a @ b`, `jnp.dot(a, b)`, `a.dot(b)`."""
    match above := source.parent(factor):
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return above
        case cst.Arg() | cst.Attribute(attr=cst.Name("dot")):
            call = source.parent(above)
            is_one = isinstance(call, cst.Call) and any(each is factor for each in _operands(call, source))
            return call if is_one and isinstance(call, cst.Call) else None
    return None


def _chain(product: cst.BaseExpression, source: Source) -> list[cst.BaseExpression]:
    """The factors of `a @ b @ c`."""
    operands = _operands(product, source)
    return [factor for operand in operands for factor in _chain(operand, source)] or [product]


def _operands(product: cst.BaseExpression, source: Source) -> list[cst.BaseExpression]:
    """The two that a product is one of; none of what is none."""
    match product:
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return [left, right]
        case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=right), *_]) if source.calls(product, *PRODUCTS):
            return [left, right]
        case cst.Call(func=cst.Attribute(value=left, attr=cst.Name("dot")) as func, args=[cst.Arg(value=right)]):
            return [left, right] if source.qualified_name(func) is None else []
    return []
