"""Which functions of a project run under a trace.

In: a `Project`. Out: a context for each function: "traced" (shown to be), "host" (shown to be), else "library".
Library functions on arrays count as traced: of 193 measured hazards inside traces 126 stand in files with no traced
context to see (evidence F). What looks like tests, plots, drivers, callbacks and set-up is host code.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias

from fusionlint.source.answers import of_project
from fusionlint.source.asked import EVERYWHERE, METHODS
from fusionlint.source.facts import CONSTRUCTORS, Call
from fusionlint.source.hosts import is_called_idle
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project, found_once
from fusionlint.source.seen import Seen, seen
from fusionlint.source.transforms import TRANSFORMS

Context = Literal["traced", "host", "library"]
Edges: TypeAlias = "Mapping[At, Sequence[At]]"


def contexts(project: Project) -> dict[At, Context]:
    """The context of every function that is not "library"."""
    shown = seen(project)
    seeds = [place for one in shown.values() for place in one.traced]
    of_self = {handed for one in shown.values() for handed in one.of_self}
    seeds += (place for name, owner in of_self for place in _of_subclasses(project, owner, name))
    traced = _reached(seeds, _taken_along(project), kernels(project))
    # A test is host code even under a trace, for it runs on a handful of elements.
    traced = {(path, scope) for path, scope in traced if not (shown[path].is_idle or scope.startswith("test_"))}
    setting_up = {place for one in shown.values() for place in one.setting_up} - traced
    host = {place for one in shown.values() for place in one.host}
    host = (host | _callback_functions(project) | kernels(project)) - traced | setting_up
    host |= _set_up(project, host, traced, setting_up)
    found: dict[At, Context] = dict.fromkeys(host, "host")
    found.update(dict.fromkeys(traced, "traced"))
    return found


def run_as_before(world: Mapping[At, Context], kernels: Collection[At], path: str, before: Seen, now: Seen) -> bool:
    """Whether all functions of a project run as they did in its `world`, where the file at `path` shows something else:
    functions of its own level that nothing calls have come or gone, and what they call still runs as it did. That may
    run on the host because nothing else calls it, or would if nothing else did."""
    then, there = {scope for _, scope in before.functions}, {scope for _, scope in now.functions}
    come, gone = there - then, then - there
    if _without(come, now) != _without(gone, before) or any((path, scope) in world for scope in gone):
        return False
    if not all(scope.rpartition(".")[0] in ("", *come, *gone) for scope in (*come, *gone)):
        return False
    called, was_called = Counter(_called(come, now)), Counter(_called(gone, before))
    stays = ("host",) if kernels else ("host", "traced")
    return all(world.get(place) != "host" for place in called - was_called) and all(
        world.get(place) in stays or (place[0] == path and place[1] in gone) for place in was_called - called
    )


def _without(scopes: Collection[str], one: Seen) -> Seen:
    nested, methods = (
        tuple(
            (around, left) for around, inside in edges if (left := tuple(one for one in inside if one[1] not in scopes))
        )
        for edges in (one.nested, one.methods)
    )
    calls = tuple(calls for calls in one.calls if calls[0][1] not in scopes)
    return one._replace(nested=nested, methods=methods, calls=calls)


def _called(scopes: Collection[str], one: Seen) -> Iterator[At]:
    return (place for (_, scope), places in one.calls if scope in scopes for place in places)


@of_project
def reached_from(project: Project, transforms: frozenset[str]) -> frozenset[Place]:
    """The functions that run inside what one of `transforms` is handed: `{"jax.vmap"}` gives those seen to be
    vectorized, directly or through the functions that call them."""
    return taken_on(project, _handed_to(project, transforms))


def taken_on(project: Project, seeds: Iterable[At]) -> frozenset[Place]:
    """The functions `seeds`, and all that run when they are traced: what they call, define, hand to a scan or another
    transformation, and are overridden by."""
    found = frozenset(map(Place._make, _taken_on(project, seeds)))
    for place in found:
        project.log.add(*place)
    project.log.asked.add((EVERYWHERE, METHODS))
    return found


def _taken_on(project: Project, seeds: Iterable[At]) -> set[At]:
    return _reached(seeds, (*_taken_along(project), _hands(project)))


def _handed_to(project: Project, transforms: frozenset[str]) -> Iterator[Place]:
    for place, function in project.decorated():
        if not transforms.isdisjoint(project.decorators(place.path, function)):
            yield place
    for transform in transforms:
        for place, call in project.calls_of(transform):
            for argument in (*call.value.arguments, *(value for _, value in call.value.keywords)):
                yield from project.functions_behind(place, argument, TRANSFORMS)
                owner, _, name = argument.name.rpartition(".")
                around = project.class_of(place, owner) if owner == "self" else None
                yield from _of_subclasses(project, around, name) if around else ()


def _of_subclasses(project: Project, owner: At, name: str) -> Iterator[Place]:
    """The methods of subclasses that a class hands on, of which it has no def: `self.update = jax.jit(self.update)`."""
    derived, functions = _derived(project), _functions(project)
    project.log.asked.add((EVERYWHERE, METHODS))
    below = [owner]
    for one in below:  # which grows
        below += (each for each in derived.get(one, ()) if each not in below)
        path, scope = one
        place = Place(path, f"{scope}.{name}")
        if place in functions:
            yield place


def has_subclasses(project: Project, owner: Place) -> bool:
    """Whether a class of the project is derived from the one at `owner`."""
    return bool(subclasses(project, owner))


def subclasses(project: Project, owner: Place) -> Sequence[Place]:
    """The classes of the project that are derived from the one at `owner`, as they name it."""
    project.log.asked.add((EVERYWHERE, METHODS))
    return [*map(Place._make, _derived(project).get(owner, ()))]


@found_once
def _derived(project: Project) -> Edges:
    """The classes of the project that are derived from each, as they name it."""
    return _turned(pair for one in seen(project).values() for pair in one.derived)


def _turned(pairs: Iterable[tuple[At, At]]) -> Edges:
    """By the second of each pair the first ones."""
    found: dict[At, list[At]] = defaultdict(list)
    for one, other in pairs:
        found[other].append(one)
    return found


def is_idle(project: Project, place: Place) -> bool:
    """Whether this is code of a test, a benchmark or a picture, whose own speed is nobody's concern, or of a Pallas
    kernel, which XLA never sees."""
    facts = project.files[place.path]
    project.log.add(*place)
    return is_idle_file(facts.inside) or is_called_idle(facts, place.scope) or place in kernels(project)


def calls_in_use(project: Project, place: Place) -> list[tuple[Place, Call]]:
    """The calls of the function at `place`, each with the scope that it stands in, but for those whose own speed is
    nobody's concern."""
    return [(c, call) for c, call in project.calls_of(project.name_of(place)) if not is_idle(project, c)]


@found_once
def _taken_along(project: Project) -> tuple[Edges, ...]:
    """What a trace goes on into: the functions that a function calls, those defined in it, and what a subclass puts
    in place of a method; never a callback."""
    overridden = _turned(pair for one in seen(project).values() for pair in one.overrides)
    return _calls(project), _nested(project), overridden


@found_once
def _callback_functions(project: Project) -> frozenset[At]:
    """What a trace hands to the host, and initializers, which run once before there is anything to speed up."""
    return frozenset(place for one in seen(project).values() for place in one.called_back)


@found_once
def _nested(project: Project) -> Edges:
    """The functions that are defined in each scope and that a trace of it goes on into: no callbacks."""
    found = dict(_inside(project)[0])
    callbacks = _callback_functions(project)
    for around in {(path, scope.rpartition(".")[0]) for path, scope in callbacks} & found.keys():
        found[around] = tuple(one for one in found[around] if one not in callbacks)
    return found


@found_once
def _inside(project: Project) -> tuple[Edges, Edges]:
    """All functions that are defined in each scope: those that a trace of it would go on into, and methods."""
    shown = seen(project).values()
    nested, methods = (one.nested for one in shown), (one.methods for one in shown)
    return dict(chain.from_iterable(nested)), dict(chain.from_iterable(methods))


@found_once
def _functions(project: Project) -> frozenset[At]:
    return frozenset(chain.from_iterable(each for edges in _inside(project) for each in edges.values()))


@found_once
def _calls(project: Project) -> Edges:
    """The functions and classes of the project that each scope calls."""
    return dict(chain.from_iterable(one.calls for one in seen(project).values()))


@found_once
def _hands(project: Project) -> Edges:
    """The functions that each scope hands to transformations."""
    return dict(chain.from_iterable(one.hands for one in seen(project).values()))


@found_once
def kernels(project: Project) -> frozenset[Place]:
    """The functions that are handed to Pallas, what they hold, and what nothing but they call."""
    if project.known.kernels is not None:
        return project.known.kernels
    found = {place for one in seen(project).values() for place in one.kernels}
    if not found:
        return frozenset()
    (nested, methods), calls = _inside(project), _calls(project)
    others = Counter(chain.from_iterable(calls.values()))  # of how many that are no kernels each is called
    todo = deque(found)
    while todo:
        kernel = todo.popleft()
        called = calls.get(kernel, ())
        others.subtract(called)
        inside = (*nested.get(kernel, ()), *methods.get(kernel, ()))
        for place in (*inside, *(place for place in called if not others[place])):
            if place not in found:
                found.add(place)
                todo.append(place)
    return frozenset(map(Place._make, found))


def _reached(seeds: Iterable[At], edges: Sequence[Edges], without: Collection[At] = frozenset()) -> set[At]:
    reached = set(seeds).difference(without)
    todo = deque(reached)
    while todo:
        one = todo.popleft()
        for some in edges:
            for place in some.get(one, ()):
                if place not in reached and place not in without:
                    reached.add(place)
                    todo.append(place)
    return reached


def _set_up(project: Project, host: set[At], traced: set[At], setting_up: set[At]) -> set[At]:
    """Functions inside host functions, and functions that nothing but set-up code (their own module's level,
    `__init__`, the methods `setting_up`) is seen to call, or a script's `main` outside of loops. Another driver that
    calls a library function proves nothing: it may be jitted elsewhere."""
    (nested, methods), calls, functions = _inside(project), _calls(project), _functions(project)
    handed_out = _taken_on(project, (place for one in seen(project).values() for place in one.handed_out))
    others = Counter(chain.from_iterable(calls.values()))  # how many call each, those left out that set up
    known, once, counted, by_scripts = set(host), set(setting_up), set[At](), set[At]()
    scripts = {place for one in seen(project).values() for place in one.scripts} - traced
    often = {place for one in seen(project).values() for place in one.often} if scripts else set()
    leading_on = (place for place in host if place in nested or place in methods or _sets_up(place))
    todo = deque((*leading_on, *scripts, *setting_up, *(place for place in calls if not place[1])))
    while todo:
        place = todo.popleft()
        inside = (*nested.get(place, ()), *methods.get(place, ())) if place in known else ()
        new = [one for one in inside if one not in known and one not in handed_out]
        is_of_a_script = place in scripts
        if place not in counted and (place in once or is_of_a_script or _sets_up(place)):
            counted.add(place)
            # Of what other modules hold a module's own level says nothing: that may be called in a loop there.
            called = [one for one in calls.get(place, ()) if place[1] or one[0] == place[0]]
            others.subtract(called)
            now_once = [one for one in called if not others[one] and one in functions]
            now_once = [one for one in now_once if one not in host and one not in traced]
            by_scripts.update(called if is_of_a_script else ())
            now_once = [one for one in now_once if not (one in by_scripts and one in often)]
            once.update(one for one in now_once if one not in by_scripts)
            scripts.update(one for one in now_once if one in by_scripts)
            new += now_once
        new = [one for one in new if one not in traced]
        known.update(new)
        todo.extend(new)
    return known - host


def _sets_up(place: At) -> bool:
    """Whether what is known to be host code is the module's own level or a constructor."""
    _, scope = place
    return not scope or scope.endswith(CONSTRUCTORS)
