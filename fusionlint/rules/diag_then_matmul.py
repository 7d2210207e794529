"""A vector that is made a diagonal matrix to be multiplied: `jnp.diag(v) @ a`, `a @ jnp.diag(v)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, TO_ARRAY, constant, elements, inside, is_none
from fusionlint.patterns.code.calls import argument, brief, has_only
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import readers_of, value_of, writer_of
from fusionlint.patterns.operations.diagonals import DIAGONALS, factors_of, without_diagonals
from fusionlint.patterns.operations.products import Product, product_of
from fusionlint.patterns.operations.sort import is_beside_a_decomposition
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.few_times import runs_a_few_times
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.factors import axes_of
from fusionlint.patterns.values.matrices import TRANSPOSES
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# The product with a matrix of so few rows XLA writes out.
_FEW_ROWS = 4
# What makes a matrix: of one, `jnp.diag` is its diagonal.
_MATRICES = tuple(
    f"jax.numpy.{name}"
    for name in ("matmul", "outer", "cov", "corrcoef", "eye", "identity", "vander", "tril", "triu", "tri", "block",
                 "transpose", "swapaxes", "atleast_2d", "kron", "apply_along_axis", "linalg.inv", "linalg.pinv",
                 "linalg.cholesky")
)  # fmt: skip
_TAKES_MATRICES = tuple(
    f"jax.numpy.{name}"
    for name in ("linalg.inv", "linalg.solve", "linalg.cholesky", "linalg.eigh", "linalg.svd", "linalg.slogdet",
                 "linalg.det", "trace", "tril", "triu", "diagonal")
)  # fmt: skip
_COUNTS = ("jax.numpy.arange", "jax.numpy.linspace")
_OUTER = "jax.numpy.outer"
_EIGENVALUES = ("jax.numpy.linalg.eigh", "jax.scipy.linalg.eigh")
_CONSTANTS = (*FRESH_BY_SHAPE, "jax.numpy.eye", "jax.numpy.identity")
# These keep the axes of what they are handed.
_ELEMENTWISE = tuple(
    f"jax.numpy.{name}"
    for name in ("sqrt", "exp", "log", "abs", "square", "sign", "conj", "real", "imag", "reciprocal", "clip", "maximum",
                 "minimum", "power", "where", "asarray", "nan_to_num", "sin", "cos", "tanh")
)  # fmt: skip
_SAYS_MATRIX = regex(r"(^|_)(cov|covariance|matrix|mat|hess|hessian|gram|kernel|jac|jacobian)$", re.I)
# So few elements that XLA multiplies them out itself, as measured.
_FEW = 4
_LONG = 40
_DEPTH = 6


@rule.source("Call", calls=DIAGONALS)
def vector_made_a_matrix(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix, or the name that it has, is a factor wherever it is read; of several in one product the first."""
    if len(node.args) != 1 or not has_only(node, 1):
        return
    if source.is_idle(node):
        return
    vector, name = node.args[0].value, source.assigned_name(node)
    factor = next(iter(factors_of(node, source)), None)
    product = product_of(factor, source) if factor is not None else None
    if factor is None or product is None or not _is_diagonal(node, source) or _is_short(vector, source):
        return
    if _has_one_before(factor, product, source) or is_concrete(node, source) or _is_known(vector, product, source):
        return
    if _is_seldom(node, source):
        return
    is_same = is_same_at(vector, product.whole, source, dropped=name)
    v, a = _shown(vector, "v", source) if is_same else "v", _shown(product.other, "a", source)
    yield source.finding(
        node,
        "a vector becomes a matrix of zeros around its diagonal, for a matrix product to multiply by them",
        write=_multiplied(product, v, a, source),
        edits=without_diagonals(node, lambda call: _is_diagonal(call, source), source),
        pair=0 if product_of(product.whole, source) is None else 1,
    )


def _is_diagonal(call: cst.Call, source: Source) -> bool:
    """Whether a call makes a matrix of what is not seen, or called, to be one."""
    if not source.calls(call, *DIAGONALS) or len(call.args) != 1 or not has_only(call, 1):
        return False
    return not _is_a_matrix(call.args[0].value, source, _DEPTH)


def _multiplied(product: Product, v: str, a: str, source: Source) -> str:
    """What to write instead, with `v` for the vector and `a` for what it is multiplied by."""
    if product.is_right:
        return f"{a} * {v}"
    rows, elements_alone = f"{v}[:, None] * {a}", f"{v} * {a}"
    match axes_of(product.other, source):
        case "matrix":
            return rows
        case "vector":
            return elements_alone
    return f"{rows}, or {elements_alone} where that is a vector"


def _is_seldom(node: cst.Call, source: Source) -> bool:
    """Whether the function around decomposes a matrix too, and is called by this file's host code alone, once or for a
    few cases: a start value."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.context(node) == "traced":
        return False
    if not is_beside_a_decomposition(node, source):
        return False
    calls = source.calls_of((source.project.name_of(source.body_place(function)),))
    is_of_the_host = all(source.context(call) == "host" or is_concrete(call, source) for call in calls)
    return is_of_the_host and runs_a_few_times(function, source)


@rule.barrier
def diagonal_for_products(barrier: Barrier, module: hlo.Module) -> str | None:
    """A matrix of zeros but for its diagonal that nothing reads but products."""
    dims = value_of(barrier, module).shape.dims
    if len(dims) != 2 or dims[0] != dims[1] or dims[0] <= _FEW_ROWS:
        return None
    made = [step for step in module.work_of(writer_of(barrier, module)) if is_of_call(step, ("diag", "_diag"))]
    # A diagonal beside the middle one is put there by a pad.
    if not any(step.opcode == "select" and step.shape.dims == dims for step in made):
        return None
    if any(step.opcode == "pad" for step in made) or not all(
        _multiplies(one, module) for one in readers_of(barrier, module)
    ):
        return None
    return "multiply the rows, v[:, None] * a, or the columns, a * v, in place of a product with jnp.diag(v)"


def _multiplies(kernel: hlo.Instruction, module: hlo.Module) -> bool:
    return any(step.op_name.rpartition("/")[2] == "dot_general" for step in module.work_of(kernel))


def _has_one_before(factor: cst.BaseExpression, product: Product, source: Source) -> bool:
    """Whether another such matrix stands before this one in the whole chain of products: told once."""
    whole: cst.BaseExpression | None = product.whole
    while whole is not None:
        chain = whole
        found = product_of(whole, source)
        whole = found.whole if found is not None else None
    for part in inside(chain):
        if part is factor:
            return False
        made = source.value(part) if isinstance(part, cst.Name) else part
        if source.calls(made, *DIAGONALS) and _product_of_any(part, source):
            return True
    return False


def _product_of_any(part: cst.CSTNode, source: Source) -> bool:
    return isinstance(part, cst.BaseExpression) and product_of(part, source) is not None


def _is_a_matrix(node: cst.BaseExpression, source: Source, depth: int) -> bool:
    """Whether the argument may well be a matrix, of which `jnp.diag` is the diagonal: seen to be one, called so, or
    what some function returns."""
    if depth == 0:
        return True
    match node:
        case cst.Name():
            return _is_named_a_matrix(node, source, depth)
        case cst.Attribute(attr=cst.Name(attr)):
            return attr in TRANSPOSES or _SAYS_MATRIX.search(attr) is not None
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return True
        case cst.BinaryOperation(left=left, right=right):
            return _is_a_matrix(left, source, depth - 1) or _is_a_matrix(right, source, depth - 1)
        case cst.UnaryOperation(expression=inner):
            return _is_a_matrix(inner, source, depth - 1)
        case cst.Call():
            return _makes_a_matrix(node, source, depth)
    return False


def _is_named_a_matrix(name: cst.Name, source: Source, depth: int) -> bool:
    axes = axes_said(name, source)
    if axes is not None:
        return len(axes) != 1
    if _SAYS_MATRIX.search(name.value) or any(_reads_a_matrix(use.node, source) for use in source.uses(name)):
        return True
    value = source.value(name)
    return value is not None and _is_a_matrix(value, source, depth - 1)


def _reads_a_matrix(read: cst.Name, source: Source) -> bool:
    """Whether a variable is read as only a matrix is: `x.T`, `x[i, j]`, `jnp.linalg.inv(x)`."""
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name(attr)):
            return value is read and attr in TRANSPOSES
        case cst.Subscript(value=value, slice=slices) if value is read:
            axes = [part for part in elements(slices) if not is_none(part)]
            return len(axes) > 1 and not any(isinstance(part, cst.Ellipsis) for part in axes)
        case cst.Arg() as arg:
            return source.calls(source.parent(arg) or arg, *_TAKES_MATRICES)
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left):
            return left is read and read.value.isupper()  # as matrices are called, not vectors on the left
    return False


def _makes_a_matrix(call: cst.Call, source: Source, depth: int) -> bool:
    """Whether what a call returns may be a matrix: what is not known as a function of arrays may return anything."""
    name = source.qualified_name(call.func)
    first = call.args[0].value if call.args else None
    if name in _ELEMENTWISE:
        return any(_is_a_matrix(arg.value, source, depth - 1) for arg in call.args)
    if name in TO_ARRAY or name in FRESH_BY_SHAPE:
        return _has_rows(first, source, depth)
    if name is not None and name.startswith("jax.numpy."):
        return name in _MATRICES or name.endswith(("reshape", "einsum", "dot"))
    match call.func:  # `x.sum(0)`, `w.squeeze()`
        case cst.Attribute(attr=cst.Name("sum" | "mean" | "max" | "min" | "squeeze" | "flatten" | "ravel")):
            return False
        case cst.Attribute(value=owner, attr=cst.Name("astype" | "conj" | "copy")):
            return _is_a_matrix(owner, source, depth - 1)
    return True


def _has_rows(first: cst.BaseExpression | None, source: Source, depth: int) -> bool:
    """Whether what an array is made of is a list of lists, or its shape one of two axes."""
    match first:
        case cst.List(elements=parts) | cst.Tuple(elements=parts):
            inner = [part.value for part in parts]
            nested = any(isinstance(part, cst.List | cst.Tuple) for part in inner)
            return nested or (isinstance(first, cst.Tuple) and len(inner) > 1)
    return first is not None and _is_a_matrix(first, source, depth - 1)


def _is_short(vector: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a vector is seen to have a few elements, or is made of one that has, `jnp.exp(g * PHASES)`, or counts
    them: XLA knows it when it compiles."""
    if any(source.calls(part, *_COUNTS) for part in inside(source.meant(vector))):
        return True
    if isinstance(vector, cst.Name) and (axes := axes_said(vector, source)) is not None:
        return len(axes) == 1 and axes[0].isdigit() and int(axes[0]) <= _FEW
    match source.meant(vector):
        case cst.Call(args=[cst.Arg(value=cst.List(elements=parts)), *_]) as made if source.calls(made, *TO_ARRAY):
            return len(parts) <= _FEW and not any(isinstance(part, cst.StarredElement) for part in parts)
        case cst.Call(args=[cst.Arg(value=size), *_]) as made if source.calls(made, *FRESH_BY_SHAPE):
            return (constant(size) or _FEW + 1) <= _FEW
        case cst.Call(args=args) as made if depth and source.qualified_name(made.func) in _ELEMENTWISE:
            return any(_is_short(arg.value, source, depth - 1) for arg in args)
        case cst.Call(args=[cst.Arg(value=one), cst.Arg(value=other)]) as made if source.calls(made, _OUTER) and depth:
            return all(_is_short(side, source, depth - 1) for side in (one, other))
        case cst.BinaryOperation(left=left, operator=operator, right=right) if depth:
            is_elementwise = not isinstance(operator, cst.MatrixMultiply)
            return is_elementwise and any(_is_short(side, source, depth - 1) for side in (left, right))
        case cst.Name() as name if depth and (whole := _decomposed(name, source)) is not None:
            return _is_short(whole, source, depth - 1)
    return False


def _decomposed(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """The matrix that `name` has the eigenvalues of: `values, vectors = jnp.linalg.eigh(matrix)`."""
    made = unpacked(source.written(name), source)
    return argument(made, 0, "a") if source.calls(made, *_EIGENVALUES) else None


def _is_known(vector: cst.BaseExpression, product: Product, source: Source) -> bool:
    """Whether both factors are constants, `jnp.eye(n) @ jnp.diag(jnp.ones(n))`: what a search begins with."""
    return all(source.calls(source.meant(factor), *_CONSTANTS) for factor in (vector, product.other))


def _shown(node: cst.BaseExpression, otherwise: str, source: Source) -> str:
    """Code as it can stand beside a `*`."""
    text = brief(source.code(node), _LONG, otherwise)
    is_one = text == otherwise or isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
    return text if is_one else f"({text})"
