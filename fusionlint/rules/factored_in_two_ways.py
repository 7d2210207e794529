"""A matrix that is factored in several ways: by Cholesky for a solve, and once more in the density of a Gaussian or by
`slogdet`, `inv` and their like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.compiled.factorizations import factored_needlessly
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.matrices import few_rows
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FINITE = ("jax.numpy.isnan", "jax.numpy.isfinite")
_SCIPY = "jax.scipy.linalg"
_LONG = 40
_Way: TypeAlias = 'Literal["cholesky", "elimination", "density"]'

_CHOLESKY = ("jax.numpy.linalg.cholesky", "jax.scipy.linalg.cholesky", "jax.lax.linalg.cholesky",
             "jax.scipy.linalg.cho_factor")  # fmt: skip
_SOLVE = "jax.scipy.linalg.solve"
# `det` is not among them: jax writes it out for up to three rows.
_ELIMINATIONS = ("jax.numpy.linalg.solve", _SOLVE, "jax.numpy.linalg.inv", "jax.scipy.linalg.inv",
                "jax.numpy.linalg.slogdet", "jax.scipy.linalg.lu_factor")  # fmt: skip
# Where the covariance stands among the arguments, and what it is called.
_DENSITIES = {
    "jax.scipy.stats.multivariate_normal.logpdf": (2, "cov"),
    "jax.scipy.stats.multivariate_normal.pdf": (2, "cov"),
    "tensorflow_probability.substrates.jax.distributions.MultivariateNormalFullCovariance": (1, "covariance_matrix"),
    "distrax.MultivariateNormalFullCovariance": (1, "covariance_matrix"),
    "numpyro.distributions.MultivariateNormal": (1, "covariance_matrix"),
}
_HELPER = regex(r"(^|_)solve(_|$)")


@rule.source("FunctionDef", "Lambda", calls=(*_DENSITIES, *_ELIMINATIONS))
def factored_in_two_ways(body: Function, source: Source) -> Iterator[Finding]:
    """Two calls, neither in another branch than the other, that factor the matrix which one variable holds."""
    groups: dict[cst.Name, list[_Factored]] = {}
    for node in inside(body.body, cst.Call):
        if source.function(node) is body and (found := _factored(node, source)):
            written = source.written(found.matrix) if isinstance(found.matrix, cst.Name) else None
            if written is not None:
                groups.setdefault(written, []).append(found)
    for group in groups.values():
        pairs = ((one, other) for place, one in enumerate(group) for other in group[place + 1 :])
        ways = ((a, b) for a, b in pairs if a.way != b.way and _are_both_reached(a.call, b.call, source))
        if (two := next(ways, None)) and _is_loud(two[0], source) and not _looks_for_nan(body, source):
            yield _told(*two, source)


@rule.barrier
def factored_by_two_calls(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory around a matrix that is factored by Cholesky and once more."""
    if not factored_needlessly(barrier, module, "two ways"):
        return None
    return (
        "one Cholesky factor of the matrix, for both calls that factor it: cho_solve solves with it, solve_triangular "
        "whitens, and its diagonal has the determinant"
    )


def _are_both_reached(one: cst.Call, other: cst.Call, source: Source) -> bool:
    """Whether one run may get to both: not in two branches of an `if`, nor of two that ask the same."""
    if source.apart(one, other):
        return False
    asked = _answers(other, source)
    return all(asked.get(test, answer) is answer for test, answer in _answers(one, source).items())


def _answers(node: cst.CSTNode, source: Source) -> dict[str, bool]:
    """What has to be true, or false, for code to get to `node`, by the tests of the branches around."""
    found: dict[str, bool] = {}
    for below, above in source.outward(node):
        if isinstance(above, cst.If) and below is not above.test:
            found[source.code(above.test)] = below is above.body
    return found


def _is_loud(first: _Factored, source: Source) -> bool:
    if not source.is_traced(first.call) or source.is_idle(first.call):
        return False
    return few_rows(first.matrix, source) is None and not is_concrete(first.call, source)


def _looks_for_nan(body: Function, source: Source) -> bool:
    """Whether the function asks if something is finite: where Cholesky fails, elimination stands in for it."""
    return any(source.calls(part, *_FINITE) for part in inside(body.body))


def _told(first: _Factored, other: _Factored, source: Source) -> Finding:
    matrix, ways = source.code(first.matrix), {first.way, other.way}
    shown = brief(source.code(first.call), _LONG, f"{brief(source.code(first.call.func), _LONG)}(...)")
    numpy = source.jnp
    write = f"f = {numpy}.linalg.cholesky({matrix}) once; {_SCIPY}.cho_solve((f, True), b) solves, "
    if "density" in ways:
        write += (
            f"and with z = {_SCIPY}.solve_triangular(f, x - mean, lower=True) the log density is, but for a constant, "
            f"-0.5 * z @ z - {numpy}.log({numpy}.diagonal(f)).sum()"
        )
    else:
        write += f"and the log determinant is 2 * {numpy}.log({numpy}.diagonal(f)).sum()"
    return source.finding(
        other.call,
        f"`{matrix}` is factored once more than in `{shown}`, in another way, which XLA does not merge",
        write=write,
        pair=0 if "density" in ways else 1,
    )


class _Factored(NamedTuple):
    """A call, the matrix that it factors, and how."""

    call: cst.Call
    matrix: cst.BaseExpression
    way: _Way


def _factored(call: cst.Call, source: Source) -> _Factored | None:
    name = source.qualified_name(call.func)
    if name in _DENSITIES:
        matrix = argument(call, *_DENSITIES[name])
        return _Factored(call, matrix, "density") if matrix is not None else None
    matrix = argument(call, 0, "a")
    if name is None or matrix is None:
        return None
    if name in _CHOLESKY or (name == _SOLVE and _is_said_to_be_definite(call)) or _is_a_helper(name, source):
        return _Factored(call, matrix, "cholesky")
    return _Factored(call, matrix, "elimination") if name in _ELIMINATIONS else None


def _is_said_to_be_definite(call: cst.Call) -> bool:
    match argument(call, 99, "assume_a"):
        case cst.SimpleString() as text:
            return text.evaluated_value in ("pos", "positive definite")
    return False


def _is_a_helper(name: str, source: Source) -> bool:
    """Whether this is a function of the project that is called as what solves, and factors by Cholesky itself."""
    place = source.project.find(name)
    if place is None or not _HELPER.search(place.scope.rpartition(".")[2]):
        return False
    return any(own == place and called in _CHOLESKY for own, called, _ in source.project.named_calls(place.path))
