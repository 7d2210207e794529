"""What factors a matrix, and how: by Cholesky, by elimination with pivots, or in the density of a Gaussian.

In: calls of a Source. Out: the matrix, as it is handed over. A helper of the project that solves is known by what it
calls itself.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import argument
from fusionlint.source.tree import Source

Way: TypeAlias = 'Literal["cholesky", "elimination", "density"]'

_CHOLESKY = ("jax.numpy.linalg.cholesky", "jax.scipy.linalg.cholesky", "jax.lax.linalg.cholesky",
             "jax.scipy.linalg.cho_factor")  # fmt: skip
_SOLVE = "jax.scipy.linalg.solve"
# `det` is not among them: jax writes it out for up to three rows.
ELIMINATIONS = ("jax.numpy.linalg.solve", _SOLVE, "jax.numpy.linalg.inv", "jax.scipy.linalg.inv",
                "jax.numpy.linalg.slogdet", "jax.scipy.linalg.lu_factor")  # fmt: skip
# Where the covariance stands among the arguments, and what it is called.
DENSITIES = {
    "jax.scipy.stats.multivariate_normal.logpdf": (2, "cov"),
    "jax.scipy.stats.multivariate_normal.pdf": (2, "cov"),
    "tensorflow_probability.substrates.jax.distributions.MultivariateNormalFullCovariance": (1, "covariance_matrix"),
    "distrax.MultivariateNormalFullCovariance": (1, "covariance_matrix"),
    "numpyro.distributions.MultivariateNormal": (1, "covariance_matrix"),
}
_HELPER = regex(r"(^|_)solve(_|$)")


class Factored(NamedTuple):
    """A call, the matrix that it factors, and how."""

    call: cst.Call
    matrix: cst.BaseExpression
    way: Way


def factored(call: cst.Call, source: Source) -> Factored | None:
    name = source.qualified_name(call.func)
    if name in DENSITIES:
        matrix = argument(call, *DENSITIES[name])
        return Factored(call, matrix, "density") if matrix is not None else None
    matrix = argument(call, 0, "a")
    if name is None or matrix is None:
        return None
    if name in _CHOLESKY or (name == _SOLVE and _is_said_to_be_definite(call)) or _is_a_helper(name, source):
        return Factored(call, matrix, "cholesky")
    return Factored(call, matrix, "elimination") if name in ELIMINATIONS else None


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
