"""Which functions of a project run under a trace.

In: a `Project`. Out: a context for each function: "traced" (shown to be), "host" (shown to be), else "library".
Library functions on arrays count as traced: of 193 measured hazards inside traces 126 stand in files with no traced
context to see (evidence F). What looks like tests, plots, drivers, callbacks and set-up is host code.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from fusionlint.source.files import is_idle_file
from fusionlint.source.project import Place, Project
from fusionlint.source.seen import TRANSFORMS, is_called_idle, seen

Context = Literal["traced", "host", "library"]


def contexts(project: Project) -> dict[Place, Context]:
    """The context of every function that is not "library"."""
    shown = seen(project)
    seeds = [place for one in shown.values() for place in one.traced]
    of_self = {handed for one in shown.values() for handed in one.of_self}
    seeds += (place for name, owner in of_self for place in _of_subclasses(project, owner, name))
    traced = _reached(seeds, _taken_along(project), kernels(project))
    # A test is host code even under a trace, for it runs on a handful of elements.
    traced = {place for place in traced if not (shown[place.path].is_idle or place.scope.startswith("test_"))}
    setting_up = {Place(path, scope) for path, one in shown.items() for scope in one.setting_up} - traced
    host = {Place(path, scope) for path, one in shown.items() for scope in one.host}
    host = (host | _callback_functions(project) | kernels(project)) - traced | setting_up
    host |= _set_up(project, host, traced, setting_up)
    found: dict[Place, Context] = dict.fromkeys(host, "host")
    found.update(dict.fromkeys(traced, "traced"))
    return found


@lru_cache(maxsize=16)
def reached_from(project: Project, transforms: frozenset[str]) -> frozenset[Place]:
    """The functions that run inside what one of `transforms` is handed: `{"jax.vmap"}` gives those seen to be
    vectorized, directly or through the functions that call them."""
    return taken_on(project, _handed_to(project, transforms))


def taken_on(project: Project, seeds: Iterable[Place]) -> frozenset[Place]:
    """The functions `seeds`, and all that run when they are traced: what they call, define and are overridden by."""
    return frozenset(_reached(seeds, _taken_along(project)))


def _handed_to(project: Project, transforms: frozenset[str]) -> Iterator[Place]:
    for place, function in project.functions():
        if function.decorators and not transforms.isdisjoint(project.decorators(place.path, function)):
            yield place
    for transform in transforms:
        for place, call in project.calls_of(transform):
            for argument in (*call.value.arguments, *(value for _, value in call.value.keywords)):
                yield from project.functions_behind(place, argument, TRANSFORMS)
                owner, _, name = argument.name.rpartition(".")
                around = project.class_of(place, owner) if owner == "self" else None
                yield from _of_subclasses(project, around, name) if around else ()


def _of_subclasses(project: Project, owner: Place, name: str) -> Iterator[Place]:
    """The methods of subclasses that a class hands on, of which it has no def: `self.update = jax.jit(self.update)`."""
    derived, functions = _derived(project), _functions(project)
    below = [owner]
    for one in below:  # which grows
        below += (each for each in derived.get(one, ()) if each not in below)
        place = Place(one.path, f"{one.scope}.{name}")
        if place in functions:
            yield place


@lru_cache(maxsize=2)
def _derived(project: Project) -> dict[Place, list[Place]]:
    """The classes of the project that are derived from each, as they name it."""
    found: dict[Place, list[Place]] = defaultdict(list)
    for path, one in seen(project).items():
        for scope, base in one.derived:
            found[base].append(Place(path, scope))
    return found


def is_idle(project: Project, place: Place) -> bool:
    """Whether this is code of a test, a benchmark or a picture, whose own speed is nobody's concern, or of a Pallas
    kernel, which XLA never sees."""
    facts = project.files[place.path]
    return is_idle_file(facts.inside) or is_called_idle(facts, place.scope) or place in kernels(project)


@lru_cache(maxsize=2)
def _taken_along(project: Project) -> dict[Place, list[Place]]:
    """What a trace goes on into: the functions that a function calls, those defined in it, and what a subclass puts
    in place of a method; never a callback."""
    callbacks = _callback_functions(project)
    taken: dict[Place, list[Place]] = defaultdict(list)
    for path, one in seen(project).items():
        for scope, called in one.calls:
            taken[Place(path, scope)].append(called)
        for scope, goes_on in one.functions:
            place = Place(path, scope)
            if goes_on and place not in callbacks:
                taken[place.outer].append(place)
        for scope, method in one.overrides:
            taken[method].append(Place(path, scope))
    return taken


@lru_cache(maxsize=2)
def _callback_functions(project: Project) -> frozenset[Place]:
    """What a trace hands to the host, and initializers, which run once before there is anything to speed up."""
    return frozenset(place for one in seen(project).values() for place in one.called_back)


@lru_cache(maxsize=2)
def _inside(project: Project) -> dict[Place, list[Place]]:
    """The functions that are defined in each scope."""
    found: dict[Place, list[Place]] = defaultdict(list)
    for path, one in seen(project).items():
        for place in (Place(path, scope) for scope, _ in one.functions):
            found[place.outer].append(place)
    return found


@lru_cache(maxsize=2)
def _functions(project: Project) -> frozenset[Place]:
    return frozenset(place for places in _inside(project).values() for place in places)


@lru_cache(maxsize=2)
def _calls(project: Project) -> tuple[dict[Place, list[Place]], dict[Place, list[Place]]]:
    """The functions and classes of the project that each scope calls, and the scopes that call each of those."""
    calls, callers = defaultdict[Place, list[Place]](list), defaultdict[Place, list[Place]](list)
    for path, one in seen(project).items():
        for scope, called in one.calls:
            caller = Place(path, scope)
            calls[caller].append(called)
            callers[called].append(caller)
    return calls, callers


@lru_cache(maxsize=2)
def kernels(project: Project) -> frozenset[Place]:
    """The functions that are handed to Pallas, what they hold, and what nothing but they call."""
    if project.known.kernels is not None:
        return project.known.kernels
    found = {place for one in seen(project).values() for place in one.kernels}
    if not found:
        return frozenset()
    inside, (calls, callers) = _inside(project), _calls(project)
    todo = deque(found)
    while todo:
        kernel = todo.popleft()
        for place in (*inside.get(kernel, ()), *calls.get(kernel, ())):
            called_by = callers.get(place, ())
            if place not in found and (place.outer == kernel or all(caller in found for caller in called_by)):
                found.add(place)
                todo.append(place)
    return frozenset(found)


def _reached(
    seeds: Iterable[Place], edges: dict[Place, list[Place]], without: frozenset[Place] = frozenset()
) -> set[Place]:
    reached = set(seeds) - without
    todo = deque(reached)
    while todo:
        for place in edges.get(todo.popleft(), ()):
            if place not in reached and place not in without:
                reached.add(place)
                todo.append(place)
    return reached


def _set_up(project: Project, host: set[Place], traced: set[Place], setting_up: set[Place]) -> set[Place]:
    """Functions inside host functions, and functions that nothing but set-up code (their own module's level,
    `__init__`, the methods `setting_up`) is seen to call. A driver that calls a library function proves nothing: it may
    be jitted elsewhere."""
    inside, (calls, callers) = _inside(project), _calls(project)
    handed_out = taken_on(project, (place for one in seen(project).values() for place in one.handed_out))
    functions = _functions(project)
    known, found, once = set(host), set[Place](), set(setting_up)
    todo = deque(functions)
    while todo:
        place = todo.popleft()
        if place in known or place in traced:
            continue
        is_called_once = _called_by_set_up(place, callers.get(place, ()), known, once)
        if (place.outer in known and place not in handed_out) or is_called_once:
            if is_called_once:
                once.add(place)
            known.add(place)
            found.add(place)
            # Only what it holds and what it calls may now be seen in another light.
            todo.extend(functions.intersection((*inside.get(place, ()), *calls.get(place, ()))))
    return found


def _called_by_set_up(place: Place, callers: Sequence[Place], host: set[Place], once: set[Place]) -> bool:
    """Whether all that call a function are its module, constructors, or functions of that kind, which are `once`."""
    return bool(callers) and all(
        (c in once or (c in host and c.scope.endswith(("__init__", "__post_init__"))))
        if c.scope
        else c.path == place.path
        for c in callers
    )
