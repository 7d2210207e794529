"""Code of environments and games: who uses one runs many of it under a `vmap`, seldom in the same project.

In: nodes of a Source. An environment is a class with a step and a reset; its code is its methods, those of the objects
that it makes for itself, such as what generates its levels, and all they call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.answers import of_project
from fusionlint.source.host_code import keeping
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle, taken_on
from fusionlint.source.tree import Source

_STEP = regex(r"_?step(_env)?$")
_RESET = regex(r"_?(reset|init|initial_state)(_env\w*)?$")
_MAKERS = (".__init__", ".__post_init__", ".setup")
_SIMULATES = ("mujoco.mjx.forward", "mujoco.mjx.step")
_VARIES = regex(r"^_?domain_randomi[sz]")
_BASE = regex(r"(^|\.|[a-z])Env(ironment)?$")


def in_environment(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is part of an environment, or called by one."""
    function = source.function(node)
    return function is not None and is_in_environment(source.project, source.body_place(function))


def is_in_environment(project: Project, place: Place) -> bool:
    """The same of a function."""
    return place in _games(project)


def is_stepped(project: Project, place: Place) -> bool:
    """Whether an environment's step runs this: a reset only where a step makes one."""
    return place in _stepped(project)


def is_observed(project: Project, place: Place) -> bool:
    """Whether an environment runs this in what is no picture of it for people: what it draws then it looks at, by
    what it was made with too: `self.view = make_view(8)`."""
    return place in _observed(project)


def is_for_a_reset_of_bodies(node: cst.CSTNode, source: Source) -> bool:
    """Whether an environment's reset runs the code at `node`, and no step does, where MuJoCo simulates the bodies: a
    forward pass of that is hundreds of kernels, one comes behind each reset, and its wrappers keep the first state. Or
    whether the model is varied there, `domain_randomize`, once for all environments."""
    function = source.function(node)
    if function is None or not any(source.project.callers(name) for name in _SIMULATES):
        return False
    place = source.body_place(function)
    if any(map(_VARIES.match, place.scope.split("."))):
        return True
    return is_in_environment(source.project, place) and not is_stepped(source.project, place)


@of_project
def _games(project: Project) -> frozenset[Place]:
    methods = project.methods()
    found = _environments(project, methods)
    owners = (*found, *_made_for(project, found))
    return taken_on(project, (method for owner in owners for method in methods.get(owner, ())))


@of_project
def _stepped(project: Project) -> frozenset[Place]:
    methods = project.methods()
    own = (method for owner in _environments(project, methods) for method in methods[owner])
    return taken_on(project, (method for method in own if _STEP.match(method.scope.rpartition(".")[2])))


@of_project
def _observed(project: Project) -> frozenset[Place]:
    methods = project.methods()
    found = frozenset(e for e in _environments(project, methods) if not _is_played(project, e, methods[e]))
    own = (method for owner in found for method in methods[owner] if not method.scope.endswith(_MAKERS))
    makers = (made for made in _made_with(project, found) if project.function_at(made))
    return taken_on(project, (*(method for method in own if not is_idle(project, method)), *makers))


def _environments(project: Project, methods: Mapping[Place, Sequence[Place]]) -> frozenset[Place]:
    return frozenset(owner for owner, own in methods.items() if _is_environment(project, owner, own))


def _is_environment(project: Project, owner: Place, own: Iterable[Place]) -> bool:
    names = {method.scope.rpartition(".")[2] for method in own}
    return (any(map(_STEP.match, names)) and any(map(_RESET.match, names))) or _is_derived(project, owner)


def _is_played(project: Project, owner: Place, own: Iterable[Place]) -> bool:
    """Whether a step is host code that keeps what it makes, `self.state = state` behind a key that somebody pressed: no
    `vmap` runs that, and what it draws is for people."""
    kept = frozenset(keeping(project, owner.path))
    return any(method in kept for method in own if _STEP.match(method.scope.rpartition(".")[2]))


def _made_for(project: Project, environments: Collection[Place]) -> Iterator[Place]:
    """The classes of the objects that environments make when they are made: `self.generator = generator or Mazes(8)`.
    Who calls their methods is seldom seen: the environment does."""
    for made in _made_with(project, environments):
        if made.scope in project.files[made.path].classes and made not in environments:
            yield from (made, *project.bases(made))


def _made_with(project: Project, environments: Collection[Place]) -> Iterator[Place]:
    """The classes and functions that environments call when they are made."""
    for path in {owner.path for owner in environments}:
        for place, name, _ in project.named_calls(path):
            made = project.find(name) if place.scope.endswith(_MAKERS) and place.outer in environments else None
            if made:
                yield made


def _is_derived(project: Project, owner: Place) -> bool:
    found = project.files[owner.path].classes.get(owner.scope)
    return found is not None and any(_BASE.search(base.name) for base in found.bases)
