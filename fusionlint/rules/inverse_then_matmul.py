"""An inverse that is only multiplied, on either side: `jnp.linalg.inv(a) @ b`, `b @ jnp.linalg.inv(a)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, is_none
from fusionlint.patterns.code.calls import argument, beside, brief, has_only
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import unpacked, unpacked_at
from fusionlint.patterns.compiled.factored import is_inverse_for_a_product, rows_factored
from fusionlint.patterns.compiled.factorizations import factored_needlessly
from fusionlint.patterns.operations.inverses import Multiplied, multiplied, solved
from fusionlint.patterns.operations.quadratic import INVERSES
from fusionlint.patterns.runs.alternatives import is_one_of_several
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.matrices import IDENTITIES, few_rows, is_small_matrix, side_of_factor
from fusionlint.patterns.values.reads import attributes_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SOLVES = tuple(
    f"jax.{module}.linalg.{name}"
    for module in ("numpy", "scipy")
    for name in ("solve", "cho_solve", "cholesky", "lu_solve")
)
_EIGS = ("jax.numpy.linalg.eig",)
# What takes some ten times the steps of an inverse.
_SPECTRA = (
    *(f"jax.numpy.linalg.{name}" for name in ("eig", "eigvals", "eigh", "eigvalsh", "svd")),
    *(f"jax.scipy.linalg.{name}" for name in ("eigh", "schur", "svd", "funm", "expm", "sqrtm")),
)
# Which of what a decomposition returns are orthogonal.
_ORTHOGONAL = {"jax.numpy.linalg.eigh": (1,), "jax.scipy.linalg.eigh": (1,), "jax.numpy.linalg.svd": (0, 2),
               "jax.scipy.linalg.svd": (0, 2), "jax.numpy.linalg.qr": (0,), "jax.scipy.linalg.qr": (0,)}  # fmt: skip
_LONG, _WHOLE = 40, 80
# The pairs of the page about a product of more columns, so many times those of the matrix, and about a factor.
_WIDE, _OF_A_FACTOR = 1, 2
_TIMES = 4
# Space has no more, the one beside it that moves a point included.
_AXES = 3
_STACKS = ("jax.numpy.stack", "jax.numpy.vstack", "jax.numpy.array")
# The box of a simulation, the cell of a crystal, what turns or moves a picture, or leads from one frame to another.
_OF_SPACE = regex(
    r"(^|[._])(box|cell|lattice|lattice_vectors|affine|homography|transform_matrix|rotation|pose|(ex|in)trinsics?"
    r"|(bind|rest)_\w+|[a-z]+_to_[a-z]+)$"
)


@rule.source("Call", calls=INVERSES)
def inverted_to_multiply(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The inverse, read once, is a factor of a product."""
    if not has_only(node, 1) or not node.args:
        return
    found = multiplied(node, source)
    name = source.assigned_name(node)
    if found is None and name is not None:
        found = multiplied(reads[0], source) if len(reads := source.reads(name)) == 1 else None
        if found and (source.function(reads[0]), source.loop(reads[0])) != (source.function(node), source.loop(node)):
            return  # made once, multiplied again and again
    if found is None or is_one_of_several(node, source, *_SOLVES) or is_concrete(node, source):
        return
    matrix = node.args[0].value
    if _is_better_inverted(matrix, source):
        return
    if _is_of_rows(found, source) if found.is_right else _is_of_points(found.other, source):
        return
    if isinstance(matrix, cst.Name) and source.calls(unpacked(source.written(matrix), source) or matrix, *_EIGS):
        return  # beside finding those eigenvectors no clock sees it, and a solve is not more exact
    if _is_spread(found.other) or _goes_into_a_spectrum(found.whole, source):
        return  # one matrix for many: solving would factor it for each of them
    if (known := _of_a_kind(matrix, found, source)) is not None:
        message, write, pair = known
        yield source.finding(node, message, write=write, edits=_substituting(node, found, source), pair=pair)
        return
    solve = beside(node.func, "solve", source) or "jnp.linalg.solve"
    work = "more work and memory than solving for few columns"
    message = f"the inverse is made only to be multiplied: {work}, and less exact"
    instead = solved(node, found, solve, source) if isinstance(node.func, cst.Attribute) else None
    if instead is not None and brief(instead.text, _WHOLE) == instead.text:
        write = instead.text + (_unless_definite(matrix) if found.is_right else "")
    elif found.is_right or found.is_transposed:
        write = _turned(solve, matrix, found, source, name)
    else:
        shown = _shown(matrix, source) if is_same_at(matrix, found.whole, source, dropped=name) else "a"
        write = f"{solve}({shown}, {_right_side(found, source)})"
    edits = instead.edits if instead is not None else ()
    yield source.finding(node, message, write=write, edits=edits, pair=int(found.is_right))


def _right_side(found: Multiplied, source: Source) -> str:
    """What is solved for, from the left: of a product with a vector alone the system is solved, and not for each column
    of what is before."""
    other = _shown(found.other, source)
    return other if found.behind is None else f"{other} @ {_shown(found.behind, source)}"


@rule.barrier
def inverse_written_for_a_product(barrier: Barrier, module: hlo.Module) -> str | None:
    """An inverse that one product reads: of two or three rows small-linear-algebra speaks."""
    if not is_inverse_for_a_product(barrier, module) or (rows_factored(barrier, module) or 0) <= _AXES:
        return None
    return "jnp.linalg.solve(a, b) instead of jnp.linalg.inv(a) @ b: no whole inverse, and no product behind it"


@rule.barrier(pair=_WIDE)
def inverse_written_for_a_wide_product(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same before a product with some more columns than the matrix has: `p @ h.T @ inv(s)`."""
    if not is_inverse_for_a_product(barrier, module, _TIMES) or (rows_factored(barrier, module) or 0) <= _AXES:
        return None
    return "jnp.linalg.solve(a, b) instead of jnp.linalg.inv(a) @ b, or solve(a.T, b.T).T of b @ inv(a)"


@rule.barrier(pair=_OF_A_FACTOR)
def factor_inverted(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory around the inverse of what Cholesky's method has just made."""
    if not factored_needlessly(barrier, module, "inverse of a factor"):
        return None
    return "solve_triangular(factor, b, lower=True) instead of inv(factor) @ b: a factor is not factored again"


def _goes_into_a_spectrum(product: cst.BaseExpression, source: Source) -> bool:
    """Whether the eigenvalues of the product are looked for, `jnp.linalg.eig(jnp.linalg.inv(b) @ a)`: beside that no
    clock sees the inverse."""
    handed = (source.handed_to(read) for read in source.readers(product))
    return any(source.calls(call, *_SPECTRA) for call in handed)


def _of_a_kind(matrix: cst.BaseExpression, found: Multiplied, source: Source) -> tuple[str, str, int] | None:
    """What is said of a matrix whose inverse takes less than a solve, what to write instead, and the pair of the page:
    a number times the identity, a factor of Cholesky, what a decomposition gave."""
    if (number := _of_identity(matrix, source)) is not None:
        shown = _shown(number, source)
        as_divisor = shown if isinstance(number, cst.Name | cst.Attribute | cst.Call) else f"({shown})"
        unless = "" if kind(number, source) == "scalar" else f", where `{shown}` is one number"
        divided = f"`{_shown(found.other, source)} / {as_divisor}`{unless}"
        message = "a number times the identity is inverted and multiplied, where its reciprocal is all it takes"
        return message, divided, 3
    if (side := side_of_factor(matrix, source)) is not None:
        message = "a triangular factor is inverted only to be multiplied: it is solved without being factored again"
        return message, _substituted(matrix, side, found, source), 2
    if isinstance(matrix, cst.Name) and _is_orthogonal(matrix, source):
        shown = matrix.value
        message = "an orthogonal matrix is inverted by a factorization, where its transpose is all it takes"
        return message, f"{shown}.mT, of a complex matrix {shown}.mT.conj()", 0
    return None


def _is_better_inverted(matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether solving is no less than inverting, of a few numbers: small-linear-algebra says what is."""
    is_written_out = is_small_matrix(matrix, source) or few_rows(matrix, source) is not None
    return is_written_out or _is_said_to_be_small(matrix, source)


def _is_said_to_be_small(matrix: cst.BaseExpression, source: Source) -> bool:
    """Whether a matrix is said to be of two or three numbers by as many: by jaxtyping, `cell: Float[Array, "3 3"]`, by
    what is cut out, `mass[:3, :3]`, or called as what has the axes of space, `box`."""
    axes = axes_said(matrix, source) if isinstance(matrix, cst.Name) else None
    if axes is not None:
        return axes[-2:] in (("2", "2"), ("3", "3"))
    meant = source.meant(matrix)
    match meant:
        case cst.Subscript(slice=[*_, rows, columns]):
            return all(_is_of_few(part) for part in (rows, columns))
        case cst.Attribute(value=inner, attr=cst.Name("T" | "mT")):
            return _is_said_to_be_small(inner, source)
    return any(_OF_SPACE.search(dotted(named)) for named in (matrix, meant))


def _is_of_few(part: cst.SubscriptElement) -> bool:
    """`:2`, `0:3`."""
    match part.slice:
        case cst.Slice(upper=cst.Integer() as upper):
            return upper.evaluated_value <= _AXES
    return False


def _is_of_points(other: cst.BaseExpression, source: Source) -> bool:
    """Whether the other factor has two or three rows, one for each axis: `jnp.stack([x, y, ones])`; or a column for
    each of many points, which were those of a grid before, `mesh.reshape(*mesh.shape[:-2], -1)`."""
    made = source.meant(other)
    match made:
        case cst.Call(func=cst.Attribute(attr=cst.Name("reshape")), args=[_, *_, cst.Arg(value=columns)]):
            return constant(columns) == -1
    rows = argument(made, 0, "arrays") if source.calls(made, *_STACKS) else None
    return isinstance(rows, cst.List | cst.Tuple) and len(rows.elements) <= _AXES


def _is_of_rows(found: Multiplied, source: Source) -> bool:
    """Whether the left factor is a batch of rows, `points @ inverse`: its length is asked for, or the product is
    reduced along its rows. Of these there are many more than the matrix has."""
    if not isinstance(found.other, cst.Name):
        return False
    if any(_asks_for_rows(source.parent(each)) for each in attributes_of(found.other, source)):
        return True
    name = source.assigned_name(found.whole)
    return any(_goes_along_rows(read, source) for read in (source.reads(name) if name is not None else ()))


def _asks_for_rows(node: cst.CSTNode | None) -> bool:
    """`x.shape[:1]`, `x.shape[:-1]`, `x.shape[0]`."""
    match node:
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name("shape")), slice=[cst.SubscriptElement(slice=cst.Slice(lower=None))]
        ):
            return True
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name("shape")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))],
        ):
            return True
    return False


def _goes_along_rows(read: cst.CSTNode, source: Source) -> bool:
    """`jnp.all(x >= 0, axis=1)`."""
    call = source.nearest(read, cst.Call)
    axis = argument(call, 1, "axis") if call is not None else None
    return axis is not None and constant(axis) in (1, -1)


def _is_spread(other: cst.BaseExpression) -> bool:
    """Whether the other factor has axes made for the occasion, `grads[None, :, :, None, :]`, that the inverse is to be
    spread along; one at the end makes a column."""
    match other:
        case cst.Subscript(slice=[*before, _]):
            return any(is_none(part.slice.value) for part in before if isinstance(part.slice, cst.Index))
    return False


def _of_identity(matrix: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """What an identity is multiplied by to make `matrix`, where no array is seen there: `jnp.eye(n) * x**2`."""
    match source.meant(matrix):
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            for one, other in ((left, right), (right, left)):
                if source.calls(one, *IDENTITIES) and kind(other, source) != "array":
                    return other
    return None


def _substituted(matrix: cst.BaseExpression, side: str, found: Multiplied, source: Source) -> str:
    """A solve with a triangular factor: of the other factor's transpose where that stands on the left."""
    half = ", lower=True" if side == "lower" else ""
    factor, other = _shown(matrix, source), _shown(found.other, source)
    trans = ", trans=1" if found.is_transposed is not found.is_right else ""
    if not found.is_right:
        return f"jax.scipy.linalg.solve_triangular({factor}, {other}{trans}{half})"
    turned = f"{other}.mT" if other.isidentifier() else f"({other}).mT"
    return f"jax.scipy.linalg.solve_triangular({factor}, {turned}{trans}{half}).mT"


def _substituting(node: cst.Call, found: Multiplied, source: Source) -> tuple[Edit, ...]:
    """The same as edits."""
    side, jax = side_of_factor(node.args[0].value, source), source.alias_at(node, "jax")
    if side is None or jax is None:
        return ()
    half = "lower=True" if side == "lower" else ""
    instead = solved(node, found, f"{jax}.scipy.linalg.solve_triangular", source, half=half)
    return instead.edits if instead is not None else ()


def _is_orthogonal(matrix: cst.Name, source: Source) -> bool:
    """Whether a decomposition gave the matrix: `values, vectors = jnp.linalg.eigh(a)`."""
    match unpacked_at(source.written(matrix), source):
        case cst.Call(func=decomposition), place, _:
            return place in _ORTHOGONAL.get(source.qualified_name(decomposition) or "", ())
    return False


def _turned(solve: str, matrix: cst.BaseExpression, found: Multiplied, source: Source, made: cst.Name | None) -> str:
    """What to write where something has to be transposed for it; `made` is the name of the inverse, if any."""
    is_same = is_same_at(matrix, found.whole, source, dropped=made)
    matrix_text, other_text = source.code(matrix), source.code(found.other)
    a = matrix_text if matrix_text.isidentifier() and is_same else "a"
    b = other_text if other_text.isidentifier() else "b"
    if not found.is_right:
        return f"{solve}({a}.mT, {b})"
    turned = a if found.is_transposed else f"{a}.mT"
    either = f"{solve}({turned}, {b}.mT).mT, of a vector {solve}({turned}, {b})"
    return either + _unless_definite(matrix if a != "a" else None)


def _unless_definite(matrix: cst.BaseExpression | None) -> str:
    a = matrix.value if isinstance(matrix, cst.Name) else "a"
    return f'; where {a} is symmetric and positive definite, with `assume_a="pos"` of scipy'


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(source.code(node), _LONG)
