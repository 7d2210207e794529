"""Functions that are there for numpy: whoever calls them makes an array of numpy of what they return.

In: nodes of a Source. Out: whether all that call the function around stand in the same file and do so at once, `return
np.asarray(difference(jnp.asarray(x)))`: no trace of those gets there. That is no proof of host code, for somebody else
may call it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.traced import calls_in_use
from fusionlint.source.tree import Source

_TO_NUMPY = ("numpy.asarray", "numpy.array", "jax.device_get")
# A helper of a helper is seldom further away than this.
_DEPTH = 2


def is_for_numpy(node: cst.CSTNode, source: Source, depth: int = _DEPTH) -> bool:
    """Whether each call of the function around `node` is handed to numpy as it stands, or stands in such a function."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.context(node) == "traced":
        return False
    place = source.place(function)._replace(scope=source.body_scope(function))
    callers = {caller for caller, _ in calls_in_use(source.project, place)}
    if not callers or any(caller.path != source.path for caller in callers):
        return False
    made = source.calls_of((source.project.name_of(place),))
    calls = [call for call in made if source.place(call) in callers]
    return bool(calls) and all(_is_taken(call, source, depth) for call in calls)


def _is_taken(call: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether a function makes an array of numpy of `call`, or is itself there for that."""
    taken = source.handed_to(call)
    if taken is not None and source.calls(taken, *_TO_NUMPY):
        return source.function(call) is not None
    return depth > 0 and is_for_numpy(call, source, depth - 1)
