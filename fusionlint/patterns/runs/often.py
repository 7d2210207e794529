"""Which functions of a project run again and again: those that its loops call, and steps by their name.

In: a Project, or code of a Source. What tests, benchmarks and pictures call, and how often, says nothing.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

_STEP = regex(r"^_?((train|eval|env|update)_)?(step|update|predict|forward|act|apply|tell|ask)(_fn|_step)?$|^__call__$")
_ONCE = regex(
    r"^_?(main|__init__|__post_init__|setup|set_up|init(iali[sz](e|ation))?|build|make|create|(pre)?compile|load|save"
    # What looks at something before it is used, or finds out what fits.
    r"|verify|validate|probe|diagnose|debug|prepare|preprocess|parse|export|warm_?up|replicate|shard)(_|$)|^main"
    # What takes the time of a function is handed another one each time.
    r"|^_?(time_(for|of|fn|func|function|it|jax|jit|jitted)|timeit|timing|profile)(_|$)"
)
_MEMOS = frozenset(("functools.lru_cache", "functools.cache", "functools.cached_property"))
# A loop is seldom further away than this.
_CALLERS = 3


def is_called_as_once(name: str) -> bool:
    """Whether a function is called as what runs once is: `main`, `setup_mesh`, `precompile`."""
    return _ONCE.match(name) is not None


def is_called_as_step(name: str) -> bool:
    """Whether a function is called as what others call again and again: `step`, `predict`."""
    return _STEP.match(name) is not None


def runs_often(project: Project, place: Place, depth: int = _CALLERS) -> bool:
    """Whether the function at `place` is called by a loop, near or far, or is called what steps are called."""
    name = last_name(place.scope)
    function = project.function_at(place)
    if function is None or is_called_as_once(name) or not _MEMOS.isdisjoint(project.decorators(place.path, function)):
        return False
    if is_idle(project, place):
        return False
    if is_called_as_step(name):
        return True
    for caller, call in project.calls_of(project.name_of(place)):
        if is_idle(project, caller):
            continue
        if call.loops or (depth and caller.scope and runs_often(project, caller, depth - 1)):
            return True
    return False


def is_run_often(node: cst.CSTNode, source: Source) -> bool:
    """The same of the function whose code `node` is part of."""
    function = source.function(node)
    return function is not None and runs_often(source.project, source.body_place(function))


def is_method_of_a_loop(project: Project, place: Place) -> bool:
    """Whether the function at `place` is a method, no other class of the project has one of that name, and a loop calls
    what is called so of an object that nobody knows, `model.has_nans()`."""
    function = project.function_at(place)
    name = last_name(place.scope)
    return bool(function and function.owner) and name in _only_methods(project) and name in _called_of_unknown(project)


@of_project
def _called_of_unknown(project: Project) -> frozenset[str]:
    """The names by which loops call methods of objects that nobody knows."""
    project.log.asked.add((EVERYWHERE, CALLS))
    found = set()
    for path in project.files:
        for place, name, ((called, _, _), _, loops, _) in project.named_calls(path):
            if loops and name is None and isinstance(called, str) and "." in called and not is_idle(project, place):
                found.add(last_name(called))
    return frozenset(found)


@of_project
def _only_methods(project: Project) -> frozenset[str]:
    """The names that one class of the project alone has a method of."""
    names = Counter(last_name(method.scope) for methods in project.methods().values() for method in methods)
    return frozenset(name for name, count in names.items() if count == 1)


def is_memoized(project: Project, place: Place) -> bool:
    """Whether the function, or one around it, keeps what it returned: `functools.lru_cache`."""
    while place.scope:
        function = project.function_at(place)
        if function and not _MEMOS.isdisjoint(project.decorators(place.path, function)):
            return True
        place = place.outer
    return False
