"""Whether what chooses an action is itself a row of operations that are dispatched one by one.

In: an action that a loop hands to an environment, `env.step(action)`, and the loop. Where the function that chooses it
is seen, not compiled, and works with jax, it dispatches many times what stands beside it, and there is no compiled
function yet that could do that as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.dispatch.jit import is_jitted, value
from fusionlint.patterns.loops.carry import Loop
from fusionlint.source.facts import NOTHING
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_OPERATIONS = regex(r"^jax\.(numpy|nn|random|lax|scipy)\.")
# A network, outside of a compiled function: dozens of operations.
_NETWORK = regex(r"\.apply(_fn)?$")
# So many beside one another are more than what a loop does between two steps.
_MANY = 4


def is_chosen_by_operations(action: cst.BaseExpression, loop: Loop, source: Source) -> bool:
    """Whether a function that makes `action` in the loop is not compiled, and dispatches many operations itself."""
    return any(
        _dispatches(place, source.project)
        for call in _behind(action, loop)
        if not is_jitted(call.func, source)
        for place in source.project.functions_behind(source.place(call.func), value(call.func), TRANSFORMS)
    )


def _behind(action: cst.BaseExpression, loop: Loop) -> Iterator[cst.Call]:
    """The calls that stand in `action`, and in what the loop assigns to its name."""
    found = [action]
    if isinstance(action, cst.Name):
        found += [
            node.value
            for node in inside(loop.body)
            if isinstance(node, cst.Assign) and any(_holds(target.target, action.value) for target in node.targets)
        ]
    return (part for each in found for part in inside(each) if isinstance(part, cst.Call))


def _holds(target: cst.BaseExpression, name: str) -> bool:
    parts = [part.value for part in target.elements] if isinstance(target, cst.Tuple) else [target]
    return any(dotted(part) == name for part in parts)


def _dispatches(place: Place, project: Project) -> bool:
    """Whether the function at `place` works with jax itself, or runs a function that it makes anew each time."""
    many = 0
    for where, call in project.calls_within(place):
        written = call.value.callee or NOTHING
        if (written.is_call or _NETWORK.search(written.name)) and not project.is_jitted(where, written):
            return True
        many += bool(_OPERATIONS.match(project.callee(where, call.value) or ""))
    return many >= _MANY
