"""Functions that are there for one caller: numpy, which makes an array of its own of what they return, or a
decomposition, beside which they take no time.

In: nodes of a Source. Out: whether all that call the function around stand in the same file and do so at once, `return
np.asarray(difference(jnp.asarray(x)))`, `return eigh(from_diagonals(d, e))`, or the function hands on to the latter
itself. No trace of the first gets there, which is no proof of host code, for somebody else may call it.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_ARRAY
from fusionlint.patterns.code.elementwise import worked_on
from fusionlint.patterns.values.reads import FETCHES
from fusionlint.source.traced import calls_in_use
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Of 512 matrices of 60 rows on a CPU the eigenvalues take 343 ms, what puts the matrices together 1.
_DECOMPOSES = tuple(
    f"jax.{where}.linalg.{name}"
    for where in ("numpy", "scipy")
    for name in ("eig", "eigh", "eigvals", "eigvalsh", "schur", "svd", "svdvals")
)
# Of whatever library: a sparse matrix, whose factors take far longer.
_FACTORIZES = regex(r"(^|[._])(factori[sz]e|splu|spsolve)(_|$)")
# A helper of a helper is seldom further away than this.
_DEPTH = 2
# A matrix is seldom worked on in more statements before that.
_STEPS = 4


def is_for_numpy(node: cst.CSTNode, source: Source) -> bool:
    """Whether each call of the function around `node` is handed to numpy as it stands, or stands in such a function; or
    hands over what numpy has just made and nothing else, `assemble(jnp.asarray(areas))`."""
    if source.context(node) == "traced":
        return False
    calls = _calls_of(source.function(node), source)
    if calls and all(_hands_over_numpy(call, source) for call in calls):
        return True
    return _is_for(FETCHES, node, source, _DEPTH)


def is_for_a_decomposition(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` returns that, and each call of it is handed to a decomposition."""
    ends = source.readers(node)
    is_returned = bool(ends) and all(isinstance(source.parent(end), cst.Return) for end in ends)
    return is_returned and _is_for(_DECOMPOSES, node, source, 0)


def is_decomposed(value: cst.CSTNode, source: Source, depth: int = _STEPS) -> bool:
    """Whether `value`, or what elementwise work of the same function makes of it, is handed to a decomposition there:
    the same matrix as a whole takes far longer than what is written in it."""
    made = worked_on(value, source)
    name = source.assigned_name(made)
    for read in source.reads(name) if name is not None else (made,):
        taken = source.handed_to(read)
        if taken is not None and (source.calls(taken, *_DECOMPOSES) or _FACTORIZES.search(dotted(taken.func))):
            return True
        is_worked_on = worked_on(read, source) is not read and source.function(read) is source.function(value)
        if name is not None and depth and is_worked_on and is_decomposed(read, source, depth - 1):
            return True
    return False


def _is_for(takers: Collection[str], node: cst.CSTNode, source: Source, depth: int) -> bool:
    calls = _calls_of(source.function(node), source)
    return bool(calls) and all(_is_taken(takers, call, source, depth) for call in calls)


def _calls_of(function: cst.CSTNode | None, source: Source) -> list[cst.CSTNode]:
    """All calls of a function, where they stand in this file; none if others do too."""
    if not isinstance(function, cst.FunctionDef):
        return []
    place = source.body_place(function)
    callers = {caller for caller, _ in calls_in_use(source.project, place)}
    if any(caller.path != source.path for caller in callers):
        return []
    return [call for call in source.calls_of((source.project.name_of(place),)) if source.place(call) in callers]


def _hands_over_numpy(call: cst.CSTNode, source: Source) -> bool:
    if not isinstance(call, cst.Call) or not call.args:
        return False
    return all(
        source.calls(arg.value, *TO_ARRAY)
        and bool(arg.value.args)
        and _is_of_numpy(arg.value.args[0].value, source, _STEPS)
        for arg in call.args
    )


def _is_of_numpy(value: cst.BaseExpression, source: Source, depth: int) -> bool:
    """Whether numpy makes a value: a call of it, arithmetic with one, a part of one, and a name for it."""
    match value:
        case cst.Call():
            return (source.qualified_name(value.func) or "").startswith("numpy.")
        case cst.BinaryOperation(left=left, right=right):
            return any(_is_of_numpy(side, source, depth) for side in (left, right))
        case cst.Subscript(value=whole):
            return _is_of_numpy(whole, source, depth)
        case cst.Name() if depth and (made := source.value(value)) is not None:
            return _is_of_numpy(made, source, depth - 1)
    return False


def _is_taken(takers: Collection[str], call: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether one of `takers` is handed `call` in a function, or that is itself there for that."""
    taken = source.handed_to(call)
    if source.calls(taken, *takers):
        return source.function(call) is not None
    return depth > 0 and source.context(call) != "traced" and _is_for(takers, call, source, depth - 1)
