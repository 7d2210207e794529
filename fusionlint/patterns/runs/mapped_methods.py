"""Methods that vectorized code alone calls, of objects that nobody knows: `jax.vmap(partial(self.policy.act, ...))`.

In: code of a Source. Whose method that is, only a run says; but where all that call what is called so are vectorized,
so is each method of that name, and what it calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.runs.under import VMAPS
from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import Value, last_name
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle, reached_from, taken_on
from fusionlint.source.tree import Source

# A method that is mapped so seldom calls another of an unknown object that calls a third.
_ROUNDS = 3


def in_a_mapped_method(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is such a method's, or of what one calls."""
    function = source.function(node)
    return function is not None and source.body_place(function) in _mapped(source.project)


@of_project
def names_mapped(project: Project) -> frozenset[str]:
    """What methods are called that a `vmap` is handed as a part of something, `jax.vmap(env.step)`; what a method of
    that name maps is another object's, which that one wraps."""
    handed = _handed(project)
    return frozenset(name for place, name in handed if last_name(place.scope) != name)


@of_project
def _mapped(project: Project) -> frozenset[Place]:
    methods = defaultdict(set)
    for own in project.methods().values():
        for method in own:
            methods[last_name(method.scope)].add(method)
    calls = _calls_of_methods(project, methods)
    begun = {name for _, name in _handed(project) if name in methods}
    mapped, reached = frozenset[Place](), reached_from(project, VMAPS)
    for _ in range(_ROUNDS):
        begun |= {name for name, callers in calls.items() if not reached.isdisjoint(callers)}
        names = [n for n in begun if all(c in reached or _is_in(c, methods[n]) for c in calls.get(n, ()))]
        more = taken_on(project, (method for name in names for method in methods[name]))
        if more <= reached:
            break
        mapped, reached = mapped | more, reached | more
    return mapped


def _calls_of_methods(project: Project, names: dict[str, set[Place]]) -> dict[str, set[Place]]:
    """By the last name of what is called as a part of something those that call it."""
    project.log.asked.add((EVERYWHERE, CALLS))
    found = defaultdict(set)
    for path in project.files:
        for caller, _, ((called, _, _), *_) in project.named_calls(path):
            is_part = isinstance(called, str) and "." in called
            if is_part and last_name(called) in names and not is_idle(project, caller):
                found[last_name(called)].add(caller)
    return found


def _handed(project: Project) -> Iterator[tuple[Place, str]]:
    """Where a `vmap` is handed a part of something, `self.policy.act`, itself or in a partial, and its last name."""
    for transform in VMAPS:
        for place, call in project.calls_of(transform):
            if call.value.arguments and not is_idle(project, place):
                name = _part(call.value.arguments[0], place, project)
                if "." in name:
                    yield place, last_name(name)


def _part(handed: Value, place: Place, project: Project) -> str:
    if handed.callee is not None and handed.arguments:
        is_partial = project.qualified_name(place, handed.callee.name) in PARTIAL
        return handed.arguments[0].name if is_partial else ""
    return handed.name


def _is_in(caller: Place, methods: set[Place]) -> bool:
    """Whether a method of the same name calls it: one that wraps another object."""
    return caller in methods or any(caller.path == m.path and caller.scope.startswith(f"{m.scope}.") for m in methods)
