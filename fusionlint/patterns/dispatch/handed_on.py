"""Methods that a project hands to a transform by way of an object that nobody knows: `vmap(agent.update)`.

In: a Project, or a call of a Source. Out: what such methods are called, and whether the call may stand in one. Any
class may mean them, so this is a reason to say nothing, no proof of a trace.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.answers import of_project
from fusionlint.source.facts import last_name
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


@of_project
def methods_handed_on(project: Project) -> frozenset[str]:
    """`update` of `jax.jit(jax.vmap(agent.update))`, where `agent` is an argument."""
    found: set[str] = set()
    for transform in TRANSFORMS:
        for place, call in project.calls_of(transform):
            for argument in call.value.arguments[:1]:
                owner, _, name = argument.name.rpartition(".")
                if owner and name not in found and project.qualified_name(place, argument.name) is None:
                    found.add(name)
    return frozenset(found)


def is_in_a_method_handed_on(call: cst.Call, source: Source) -> bool:
    """Whether the method around `call` is not seen to be called, and somebody hands to a transform what is called as it
    is of an object that nobody knows, `jax.jit(jax.vmap(agent.update))`: what it is handed is traced then."""
    function = source.function(call)
    place = source.body_place(function) if function is not None else None
    facts = source.project.function_at(place)
    if place is None or facts is None or not facts.owner or any(dotted(arg.value)[:5] == "self." for arg in call.args):
        return False
    name = last_name(place.scope)
    return name in methods_handed_on(source.project) and not source.project.callers(source.project.name_of(place))
