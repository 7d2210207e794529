"""One matrix factored several times: `jnp.linalg.solve(m, a), jnp.linalg.solve(m.T, b)`, or by Cholesky and then by a
general solve, `jnp.linalg.solve(jnp.linalg.cholesky(m), b)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at, is_unchanged_between
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.compiled.factorizations import factored_needlessly
from fusionlint.patterns.operations.quadratic import SOLVES
from fusionlint.patterns.values.matrices import TRANSPOSES, side_of_factor
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Two triangular solves each; of one alone, `solve_triangular`, putting the sides together costs what it saves.
_BY_FACTOR = ("jax.scipy.linalg.cho_solve",)
_BOTH_WAYS = "factors = lu_factor(m) of jax.scipy.linalg, and lu_solve(factors, b, trans=1) for the transpose"
_SCIPY = "jax.scipy.linalg"
_SIDE_BY_SIDE = (
    "one solve with the right-hand sides side by side, jnp.concatenate([a, b], axis=-1), a vector as b[..., None], "
    "split after it"
)
# The pairs of the page about a matrix and its transpose, and about a factor of Cholesky that is factored again.
_TRANSPOSED, _AGAIN = 1, 3
_TURNS = ("transpose", "swapaxes", "reshape", "astype")
# A right-hand side seldom goes through more names than this.
_DEPTH = 8


@rule.source("FunctionDef", "Lambda", calls=SOLVES)
def solved_several_times(body: Function, source: Source) -> Iterator[Finding]:
    """The solves of one function's own code, by the variables that their matrix is made of; each told once."""
    groups: dict[tuple[object, tuple[str, ...]], list[tuple[cst.Call, bool]]] = {}
    for node in inside(body.body, cst.Call):
        if source.calls(node, *SOLVES) and source.function(node) is body:
            matrix, transposed = _matrix(node, source)
            if matrix is not None:
                groups.setdefault((matrix, _options(node, source)), []).append((node, transposed))
    for solves in groups.values():
        yield from _told(solves, source)


@rule.source("FunctionDef", "Lambda", calls=_BY_FACTOR)
def solved_by_factors_several_times(body: Function, source: Source) -> Iterator[Finding]:
    """The same, of what is factored already: by the factors, how they are used, and the loop."""
    groups: dict[tuple[object, ...], list[cst.Call]] = {}
    for node in inside(body.body, cst.Call):
        if source.calls(node, *_BY_FACTOR) and source.function(node) is body:
            factors = argument(node, 0, "c_and_lower")
            written = _written_in(factors, source) if factors is not None else ()
            if factors is not None and written:
                told = (source.code(factors), written, _options(node, source), source.loop(node))
                groups.setdefault(told, []).append(node)
    for first, *later in groups.values():
        if not source.is_traced(first) or source.is_idle(first):
            continue
        beside = [call for call in later if not source.apart(first, call) and _is_another(call, first, source)]
        if beside:
            yield source.finding(
                beside[0],
                "one more solve with these factors is one more chain of library calls",
                write=_SIDE_BY_SIDE,
                pair=2,
            )


@rule.source("Call", calls=SOLVES)
def factor_solved_by_elimination(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is a factor of Cholesky, or the transpose of one; of two in a row, which solve with what was factored,
    the outer one is told."""
    found = _by_a_factor(node, source)
    if found is None or source.is_idle(node):
        return
    if _undone_by(node, found, source) is not None:
        return
    inner = source.meant(found.right)
    before = _by_a_factor(inner, source)
    if before is not None and _undone_by(inner, before, source) is not node:
        before = None
    text = _by_one(found, source) if before is None else _by_both(before, source)
    again = "is" if before is None else "and its transpose, triangular both, are"
    yield source.finding(
        node,
        f"a factor of Cholesky {again} factored once more, by elimination with pivots",
        write=text,
        edits=_edits(node, found, text, before, source),
        pair=4 if before is None else 3,
    )


def _edits(node: cst.Call, found: _ByFactor, text: str, before: _ByFactor | None, source: Source) -> tuple[Edit, ...]:
    """The solve by the factor, with the import that it takes; the line of an inner one that has a name goes with it."""
    jax = imported("jax", node, source)
    if jax is None or jax.name != "jax" or holds_comment(node):
        return ()
    edits = (*jax.edits, source.replace(node, text))
    if before is None or not isinstance(found.right, cst.Name):
        return edits
    name = source.written(found.right)
    statement = assignment(name, source)
    line = whole_line(statement, source) if statement is not None and not source.has_comment(statement) else None
    is_same = name is not None and is_same_at(before.right, node, source, dropped=name)
    is_known = is_same and line is not None and is_same_at(before.factor, node, source, dropped=name)
    return (*edits, Edit(line, "")) if is_known and line is not None else ()


class _ByFactor(NamedTuple):
    """A general solve with a factor of Cholesky, which half that is, and whether it is turned."""

    factor: cst.BaseExpression
    is_lower: bool
    is_turned: bool
    right: cst.BaseExpression


@rule.barrier
def solved_side_after_side(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory around several solutions by one factorization, none of which needs another."""
    return _SIDE_BY_SIDE if factored_needlessly(barrier, module, "sides") else None


@rule.barrier(pair=_TRANSPOSED)
def factored_both_ways(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same around two eliminations of one matrix: XLA makes one of them but for a transpose."""
    return f"factor once: {_BOTH_WAYS}" if factored_needlessly(barrier, module, "twice") else None


@rule.barrier(pair=_AGAIN)
def factor_eliminated(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same around an elimination of what Cholesky's has just made."""
    if not factored_needlessly(barrier, module, "factor"):
        return None
    return "solve_triangular(factor, b, lower=True), or cho_solve((factor, True), b): a factor is not factored again"


def _by_a_factor(node: cst.CSTNode | None, source: Source) -> _ByFactor | None:
    if not source.calls(node, *SOLVES) or not has_only(node, 2) or len(node.args) != 2:
        return None
    factor, is_turned = _untransposed(node.args[0].value)
    side = side_of_factor(factor, source)
    return None if side is None else _ByFactor(factor, side == "lower", is_turned, node.args[1].value)


def _undone_by(node: cst.CSTNode, inner: _ByFactor, source: Source) -> cst.Call | None:
    """The solve that takes what `node` gives, and it alone, where both in a row solve with the matrix that was
    factored: `solve(l.T, solve(l, b))`."""
    name = source.assigned_name(node)
    reads = source.reads(name) if name is not None else ()
    around = source.handed_to(reads[0] if len(reads) == 1 else node)
    outer = _by_a_factor(around, source)
    if outer is None or outer.is_turned is not outer.is_lower or inner.is_turned is outer.is_turned:
        return None
    return around if is_unchanged_between(inner.factor, outer.factor, source) else None


def _by_both(inner: _ByFactor, source: Source) -> str:
    return f"{_SCIPY}.cho_solve(({source.code(inner.factor)}, {inner.is_lower}), {as_argument(inner.right, source)})"


def _by_one(found: _ByFactor, source: Source) -> str:
    options = ", trans=1" * found.is_turned + ", lower=True" * found.is_lower
    return f"{_SCIPY}.solve_triangular({source.code(found.factor)}, {as_argument(found.right, source)}{options})"


def _written_in(factor: cst.BaseExpression, source: Source) -> tuple[cst.Name, ...]:
    """The writes of the variables that a factor is told by, `(l, True)` or `l.T`; nothing where one is not seen."""
    match factor:
        case cst.Name() | cst.Attribute() | cst.Tuple():
            found = [source.written(name) for name in names_read(factor) if name.value not in ("True", "False")]
            return tuple(each for each in found if each is not None) if None not in found else ()
    return ()


def _told(solves: list[tuple[cst.Call, bool]], source: Source) -> Iterator[Finding]:
    first, flipped = solves[0]
    if not source.is_traced(first) or source.is_idle(first):
        return
    if _by_a_factor(first, source) is not None:
        return  # told one by one: no solve of these has anything to factor
    later = [(call, turned) for call, turned in solves[1:] if not source.apart(first, call)]
    later = [(call, turned) for call, turned in later if _is_of_the_same(call, first, source)]
    turned = [call for call, other in later if other != flipped]
    beside = [call for call, other in later if other == flipped and _is_another(call, first, source)]
    if turned:
        yield source.finding(
            turned[0],
            "the matrix and its transpose are factored apart, with a chain of library calls each",
            write=_BOTH_WAYS,
            pair=1,
        )
    elif beside:
        yield source.finding(
            beside[0],
            "one more solve with this matrix is one more chain of library calls",
            write=_SIDE_BY_SIDE,
        )


def _options(call: cst.Call, source: Source) -> tuple[str, ...]:
    """What else the call is told, `assume_a` say: other methods share nothing."""
    return tuple(sorted(source.code(arg) for arg in call.args[2:]))


def _matrix(call: cst.Call, source: Source) -> tuple[object, bool]:
    """The matrix, by where its variable got its value or by what is written, and whether it is transposed; None where
    another one may be meant each time."""
    given = argument(call, 0, "a")
    matrix, is_turned = _untransposed(given) if given is not None else (None, False)
    match matrix:
        case cst.Name():
            return source.written(matrix), is_turned
        case cst.Call() | cst.BinaryOperation() if all(_is_of_jax(part, source) for part in inside(matrix)):
            return source.code(matrix), is_turned
    return None, False


def _is_of_jax(part: cst.CSTNode, source: Source) -> bool:
    """Whether a part of a matrix, if it is a call, is one of jax's functions, or a method that turns an array round."""
    match part:
        case cst.Call(func=cst.Attribute(attr=cst.Name(method))) if method in _TURNS:
            return True
        case cst.Call(func=function):
            return (source.qualified_name(function) or "").startswith("jax.numpy.")
    return True


def _is_of_the_same(call: cst.Call, first: cst.Call, source: Source) -> bool:
    """Whether the matrix of `call`, which is written as that of `first` is, is made of the same values."""
    matrix = argument(first, 0, "a")
    return matrix is not None and (isinstance(_untransposed(matrix)[0], cst.Name) or is_same_at(matrix, call, source))


def _untransposed(matrix: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
    """x, of `x` and of `x.T`, and whether it is transposed."""
    match matrix:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return inner, True
    return matrix, False


def _is_another(call: cst.Call, first: cst.Call, source: Source) -> bool:
    """Whether `call` has a right-hand side that could stand beside that of `first`: another one, for XLA makes one of
    two calls that are the same, and not made of what `first` returned."""
    return _right(call, source) != _right(first, source) and not _needs(call, source, _DEPTH)


def _right(call: cst.Call, source: Source) -> tuple[str, tuple[cst.Name | None, ...]]:
    """The right-hand side as written, and where the variables in it got their values."""
    right = argument(call, 1, "b")
    if right is None:
        return "", ()
    return source.code(right), tuple(source.written(name) for name in names_read(right))


def _needs(call: cst.Call, source: Source, depth: int) -> bool:
    """Whether the right-hand side is, near or far, made of what a solve returned; where nobody can see, it is."""
    right = argument(call, 1, "b")
    return right is None or _is_of_a_solve(right, source, depth)


def _is_of_a_solve(node: cst.CSTNode, source: Source, depth: int) -> bool:
    if depth == 0:
        return True
    for part in inside(node):
        if source.calls(part, *SOLVES, *_BY_FACTOR):
            return True
        value = source.value(part) if isinstance(part, cst.Name) else None
        if value is not None and _is_of_a_solve(value, source, depth - 1):
            return True
    return False
