"""Methods that a project hands to a transform by way of an object that nobody knows: `vmap(agent.update)`.

In: a Project. Out: what such methods are called. Any class may mean them, so this is a reason to say nothing, no proof
of a trace.
"""

from __future__ import annotations

from fusionlint.source.answers import of_project
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS


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
