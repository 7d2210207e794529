"""Functions that make something before there is anything to speed up: keys, meshes, tables of a robot, a topology.

In: a Project and the contexts of its functions. They are told by their name and by who calls them; a name alone says
little, for environments make their views in every step.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusionlint.lazily import regex
from fusionlint.patterns.runs.loop_bodies import all_loop_bodies
from fusionlint.patterns.runs.often import runs_often
from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import Function, last_name
from fusionlint.source.hosts import MAIN
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project
from fusionlint.source.traced import Context, calls_in_use, is_idle

_MAKES = regex(
    r"^_*(make|build|create|construct|init(iali[sz]e)?|precompute)(_|(?=[A-Z]))|(^|_)factory$|^_*get_(\w+_)?config(_|$)"
    r"|^_*(gen(erate)?|simulate|synthesi[sz]e|load|prepare)_(\w+_)?(data|data_?sets?)(_|$)"
    # Not `gen_waveform`, which others call with other masses each time.
    r"|^_*gen_(\w+_)?(keys?|seeds?|mesh|grid)(_|$)"
)
# What says so itself, and under a trace too: it runs before the steps that read what it gives.
_BEFORE = regex(r"^_*pre_?comput")
_FACTORY = regex(r"(^|_)factory$")
# What a file of weights is read for, and what has to be done to put them where they belong.
_LOADS = regex(
    r"(^|_)(checkpoints?|ckpt|pretrained)(_|$)"
    # What is written down by name: a level, a robot.
    r"|(^|_)(from|import|load|read|parse)_(\w+_)?(json|yaml|toml|xml|urdf|mjcf|sdf|csv|hdf5|files?|disk|paths?)$"
)
# How a class makes an object of a description, where no object is there yet.
_BUILDS = regex(r"^_?(build|construct)(_|$)")
_CONSTRUCTORS = frozenset(("__init__", "__post_init__", "__new__"))
_STATIC = frozenset(("staticmethod", "classmethod"))
# A helper of a helper is seldom further away than this.
_DEPTH = 3


def is_made_once(project: Project, contexts: Mapping[At, Context], place: Place, depth: int = _DEPTH) -> bool:
    """Whether the function at `place` is not seen to be traced and says that it makes something, where all that are
    seen to call it are host code outside of loops or of that kind; or whether such functions alone call it.

    Who calls a method, or a function that another hands out, is seldom seen: of those nothing is said, but for static
    methods that build objects.
    """
    function = project.function_at(place)
    if contexts.get(place) == "traced" or function is None:
        return False
    if place.outer.scope:
        return _is_builder(function)
    makes = _MAKES.match(place.scope) is not None
    if (makes or _LOADS.search(place.scope)) and contexts.get(place) == "host":
        return True
    calls = calls_in_use(project, place)
    if not calls or not depth:
        return makes and not calls
    others = [(c, call) for c, call in calls if not is_made_once(project, contexts, c, depth - 1)]
    return not others or (makes and not any(call.loops or _may_be_traced(c, contexts) for c, call in others))


def is_precomputed(project: Project, place: Place) -> bool:
    """Whether a function says that it computes something before, and no call of it stands in a loop: what a trace does
    with it is done once, for a loop of many steps."""
    if _BEFORE.match(last_name(place.scope)) is None:
        return False
    calls, bodies = calls_in_use(project, place), all_loop_bodies(project)
    return bool(calls) and not any(call.loops or caller in bodies for caller, call in calls)


def is_for_hosts(project: Project, contexts: Mapping[At, Context], place: Place, depth: int = _DEPTH) -> bool:
    """Whether the function at `place` is private, and host code alone is seen to call it, outside of loops, not again
    and again, or such functions do: eagerly, and as often as that host code runs."""
    function = project.function_at(place)
    if contexts.get(place, "library") != "library" or function is None or not depth:
        return False
    if not place.scope.startswith("_") or place.outer.scope or function.decorators:
        return False
    calls = [(caller, call) for caller, call in calls_in_use(project, place) if caller != place]
    return bool(calls) and all(
        not call.loops and caller.scope and _is_of_a_host(project, contexts, caller, depth) for caller, call in calls
    )


def is_for_hosts_alone(project: Project, contexts: Mapping[At, Context], place: Place) -> bool:
    """Whether nobody is seen to trace the function at `place`, and all that are seen to call it are host code, scripts
    at their own level too, outside of loops and not again and again: eagerly, once for what they set up."""
    function = project.function_at(place)
    if contexts.get(place, "library") != "library" or function is None or function.decorators:
        return False
    calls = [(caller, call) for caller, call in calls_in_use(project, place) if caller != place]
    return bool(calls) and all(
        not call.loops and (not caller.scope or (contexts.get(caller) == "host" and not runs_often(project, caller)))
        for caller, call in calls
    )


def _is_of_a_host(project: Project, contexts: Mapping[At, Context], caller: Place, depth: int) -> bool:
    if contexts.get(caller) == "host":
        return not (runs_often(project, caller) or _is_for_a_base(project, caller))
    return is_for_hosts(project, contexts, caller, depth - 1)


def _is_for_a_base(project: Project, place: Place) -> bool:
    """Whether a method that nothing is seen to call is private or stands in a class made of others, which may call it
    in each of their steps."""
    function = project.function_at(place)
    if function is None or not function.owner or calls_in_use(project, place):
        return False
    owner = project.files[place.path].classes.get(function.owner)
    return last_name(place.scope).startswith("_") or owner is None or bool(owner.bases)


def _is_builder(function: Function) -> bool:
    """Whether a static method builds objects of its class, `Model.build(description)`."""
    is_static = any(decorator.name in _STATIC for decorator in function.decorators)
    return is_static and bool(function.owner) and _BUILDS.match(last_name(function.scope)) is not None


def is_for_constructors(project: Project, place: Place, *, in_loops: bool = False) -> bool:
    """Whether constructors, and a script's `main`, alone call the function at `place`, each once; or constructors in
    loops too, once for each of the parts that an object has."""
    calls = calls_in_use(project, place)
    if in_loops:
        return bool(calls) and all(last_name(c.scope) in _CONSTRUCTORS for c, _ in calls)
    return bool(calls) and all(
        not call.loops and (c.scope in MAIN or last_name(c.scope) in _CONSTRUCTORS) for c, call in calls
    )


def is_method_for_constructors(project: Project, place: Place) -> bool:
    """The same of a method, by its name: constructors call what is called so, of whatever object, and nobody else."""
    function = project.function_at(place)
    return bool(function and function.owner) and last_name(place.scope) in _called_by_constructors(project)


@of_project
def _called_by_constructors(project: Project) -> frozenset[str]:
    """The last names of what constructors call outside of loops, and nobody else."""
    project.log.asked.add((EVERYWHERE, CALLS))
    once, others = set[str](), set[str]()
    for path in project.files:
        for caller, _, ((called, _, _), _, loops, _) in project.named_calls(path):
            if isinstance(called, str) and not is_idle(project, caller):
                is_once = not loops and last_name(caller.scope) in _CONSTRUCTORS
                (once if is_once else others).add(last_name(called))
    return frozenset(once - others)


def is_of_a_factory(project: Project, place: Place, depth: int = _DEPTH) -> bool:
    """Whether the function at `place` calls itself a factory, or such functions alone call it."""
    if project.function_at(place) is None or place.outer.scope or not depth:
        return False
    if _FACTORY.search(place.scope):
        return True
    calls = calls_in_use(project, place)
    return bool(calls) and all(is_of_a_factory(project, caller, depth - 1) for caller, _ in calls)


def _may_be_traced(caller: Place, contexts: Mapping[At, Context]) -> bool:
    return bool(caller.scope) and contexts.get(caller) != "host"
