"""Functions that are there for one caller: numpy, which makes an array of its own of what they return, or a
decomposition, beside which they take no time.

In: nodes of a Source. Out: whether all that call the function around stand in the same file and do so at once, `return
np.asarray(difference(jnp.asarray(x)))`, `return eigh(from_diagonals(d, e))`. No trace of the first gets there, which is
no proof of host code, for somebody else may call it.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from fusionlint.patterns.values.reads import FETCHES
from fusionlint.source.traced import calls_in_use
from fusionlint.source.tree import Source

# Of 512 matrices of 60 rows on a CPU the eigenvalues take 343 ms, what puts the matrices together 1.
_DECOMPOSES = tuple(
    f"jax.{where}.linalg.{name}"
    for where in ("numpy", "scipy")
    for name in ("eig", "eigh", "eigvals", "eigvalsh", "schur", "svd", "svdvals")
)
# A helper of a helper is seldom further away than this.
_DEPTH = 2


def is_for_numpy(node: cst.CSTNode, source: Source) -> bool:
    """Whether each call of the function around `node` is handed to numpy as it stands, or stands in such a function."""
    return source.context(node) != "traced" and _is_for(FETCHES, node, source, _DEPTH)


def is_for_a_decomposition(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` returns that, and each call of it is handed to a decomposition."""
    ends = source.readers(node)
    is_returned = bool(ends) and all(isinstance(source.parent(end), cst.Return) for end in ends)
    return is_returned and _is_for(_DECOMPOSES, node, source, 0)


def _is_for(takers: Collection[str], node: cst.CSTNode, source: Source, depth: int) -> bool:
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    place = source.body_place(function)
    callers = {caller for caller, _ in calls_in_use(source.project, place)}
    if not callers or any(caller.path != source.path for caller in callers):
        return False
    made = source.calls_of((source.project.name_of(place),))
    calls = [call for call in made if source.place(call) in callers]
    return bool(calls) and all(_is_taken(takers, call, source, depth) for call in calls)


def _is_taken(takers: Collection[str], call: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether one of `takers` is handed `call` in a function, or that is itself there for that."""
    taken = source.handed_to(call)
    if taken is not None and source.calls(taken, *takers):
        return source.function(call) is not None
    return depth > 0 and source.context(call) != "traced" and _is_for(takers, call, source, depth - 1)
