"""What each file shows of the functions of its project: which of them it calls, hands to a transformation, to the host
or to Pallas, and which of its own are host code by their names or by what they call.

In: a `Project`. Out: `Seen`, by file. It follows from a file and from what its names mean: of a file that a change
cannot matter to it is still true.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fusionlint.lazily import regex
from fusionlint.source.facts import CONSTRUCTORS, Facts, Function, RawCall, RawValue, Value, last_name, unpacked
from fusionlint.source.hosts import (
    MAIN,
    is_called_as_host,
    is_first_state_name,
    is_host_call,
    is_host_file,
    is_of_any_size,
    is_set_up_name,
    is_step_name,
)
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project, found_once
from fusionlint.source.transforms import CALLBACKS, EQUINOX, MODULES, PALLAS, TRANSFORMS

# flax's ways to declare a parameter: the second argument makes its first value.
_DECLARES = (".param", ".variable")
# And what layers are given for the same: `nn.Dense(8, bias_init=grid)`.
_FIRST = ("_init", "_initializer")
_MAKES_FIRST = regex(r"^(.*_)?(kernel|bias|scale|embedding|weights?|w|b)_init(ializer)?$")
_MAKES = tuple(f".{name}" for name in CONSTRUCTORS)
_CONSTRUCTORS = (*_MAKES, ".__new__", ".__call__", ".setup")
# Bases that say nothing of what an object is.
_BASES_OF_PYTHON = frozenset(("object", "ABC", "Protocol", "Generic"))
_HOST_METHODS = (".item", ".block_until_ready", ".tolist")

# A call of a transformation: the scope that it stands in, the transformation's name, and the call as facts keep it.
Handing: TypeAlias = "tuple[Place, str | None, RawCall]"
# For some scopes what each of them has.
EdgeList: TypeAlias = "tuple[tuple[At, tuple[At, ...]], ...]"
Shown = TypeVar("Shown")


class Seen(NamedTuple):
    """What a file shows; its own functions and those of others by where they stand, as plain values: to make places of
    all takes longer than to go through them.

    For each scope `nested` has the functions in it that a trace of it goes on into, `methods` the others. `host` are
    scopes of host code, `setting_up` methods that are called as set-up is and keep what they make.

    `traced`, `called_back` and `kernels` are the functions of the project that it hands to a transformation, to the
    host and to Pallas, `handed_out` those that leave the function around them: who calls them is not seen.

    `calls` has for each scope the functions and classes that it calls, `hands` those that it hands to transformations.

    Pairs: `overrides` of a method and the one of a base in whose place it is called; `derived` of a class and a base;
    `of_self` of a name that a class hands to a transformation, `jax.jit(self.update)`, and the class: it may be a
    method of subclasses alone.

    `often` are functions that are called in loops, or handed to somebody who may call them at any time; `scripts` the
    `main` that the file calls at its own level.
    """

    is_idle: bool
    nested: EdgeList
    methods: EdgeList
    host: tuple[At, ...]
    setting_up: tuple[At, ...]
    traced: tuple[At, ...]
    called_back: tuple[At, ...]
    kernels: tuple[At, ...]
    handed_out: tuple[At, ...]
    calls: EdgeList
    hands: EdgeList
    overrides: tuple[tuple[At, At], ...]
    derived: tuple[tuple[At, At], ...]
    of_self: tuple[tuple[str, At], ...]
    often: tuple[At, ...]
    scripts: tuple[At, ...]

    @property
    def functions(self) -> Iterator[At]:
        """All functions of the file."""
        return chain(ends(self.nested), ends(self.methods))

    def packed(self) -> bytes:
        """`Seen.unpacked` of it is this again."""
        return marshal.dumps(_plain(self))

    @classmethod
    def unpacked(cls, data: bytes) -> Seen:
        return cls(*marshal.loads(data))  # noqa: S302 - what `packed` wrote


def ends(edges: EdgeList) -> Iterator[At]:
    """What the scopes have."""
    return (one for _, found in edges for one in found)


def _plain(value: Any) -> Any:
    """Tuples for what is one, with names or without."""
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


@found_once
def seen(project: Project) -> dict[str, Seen]:
    """What each file of a project shows, by path."""
    return {path: seen_of(project, path) for path in project.files}


def seen_of(project: Project, path: str) -> Seen:
    """What one file of a project shows; found out once, or known from an earlier run."""
    found: dict[str, Seen] = project.kept.setdefault(seen_of, {})
    if path not in found:
        known = project.known.files.get(path)
        found[path] = Seen.unpacked(known.seen) if known else project.resting(path, lambda: seen_in(project, path))
    return found[path]


def seen_in(project: Project, path: str) -> Seen:
    """What one file shows."""
    facts = project.files[path]
    functions = [(Place(path, scope), function) for scope, function in facts.functions.items()]
    classes = [Place(path, scope) for scope in facts.raw.classes]
    calls: dict[Place, dict[Place, None]] = defaultdict(dict)
    for place, name in project.calls_in(path):
        if name is not None and (called := project.find(name)) is not None:
            calls[place][called] = None
    nested, methods = defaultdict[Place, list[Place]](list), defaultdict[Place, list[Place]](list)
    for place, function in functions:
        goes_on = not function.owner or _is_constructor(place)
        (nested if goes_on else methods)[place.outer].append(place)
    is_idle = is_idle_file(facts.inside)
    is_all_host = is_idle or is_host_file(facts)
    handing = [(place, name, call) for place, name, call in project.named_calls(path) if name in TRANSFORMS]
    hands: dict[Place, dict[Place, None]] = defaultdict(dict)
    traced = dict.fromkeys(_traced(project, path, functions))
    for one in handing:
        is_mapped_once = _is_mapped_once(one, facts)
        for place, argument in _handed([one]):
            for handed in project.functions_behind(place, unpacked(argument), TRANSFORMS):
                hands[place][handed] = None
                is_its_own = handed.path == path if place.scope in MAIN else handed.outer == place
                if is_mapped_once and is_its_own:
                    calls[place][handed] = None  # eagerly, as it would by itself
                else:
                    traced[handed] = None
    host = (place for place, _ in functions if is_all_host or is_called_as_host(facts, place.scope))
    return Seen(
        is_idle,
        _edges(nested),
        _edges(methods),
        _once((*host, *_calling_the_host(project, path), *_keeping(project, path))),
        _once(Place(path, scope) for scope in _setting_up(project, path)),
        tuple(traced),
        _once(_called_back(project, path)),
        _once(_kernels(project, handing)),
        _once(_handed_out(project, path, functions)),
        _edges(calls),
        _edges(hands),
        _once((place, base) for place, function in functions for base in _overridden(project, place, function)),
        _once((place, base) for place in classes for base in project.bases(place)),
        _once(_handed_of_self(project, handing)),
        _once(_called_often(project, path)),
        tuple(Place(path, main) for main in MAIN if main in facts.raw.functions and _is_run(main, facts)),
    )


def _is_run(main: str, facts: Facts) -> bool:
    """Whether a file is a script, `if __name__ == "__main__": main()`, or `app.run(main)`."""
    return any(not scope and main in (called, *arguments) for (called, arguments, _), scope, *_ in facts.raw.calls)


def _called_often(project: Project, path: str) -> Iterator[Place]:
    """The functions that a file calls in loops, and its own that it hands to others, who may call them at any time."""
    handed: set[RawValue] = set()
    for _, name, ((_, arguments, keywords), _, loops, _) in project.named_calls(path):
        if loops and name is not None and (called := project.find(name)) is not None:
            yield called
        if name not in TRANSFORMS:
            handed.update(arguments, (value for _, value in keywords))
    for scope in project.files[path].raw.functions:
        if last_name(scope) in handed or scope in handed:
            yield Place(path, scope)


def _edges(found: Mapping[Place, Iterable[Place]]) -> EdgeList:
    return tuple((place, tuple(others)) for place, others in found.items())


def _once(values: Iterable[Shown]) -> tuple[Shown, ...]:
    return tuple(dict.fromkeys(values))


def _is_constructor(place: Place) -> bool:
    return place.scope.endswith(_CONSTRUCTORS)


def _traced(project: Project, path: str, functions: Sequence[tuple[Place, Function]]) -> Iterator[Place]:
    """What a file decorates with transformations, and the methods that a network library traces."""
    for place, function in functions:
        if function.decorators and not TRANSFORMS.isdisjoint(project.decorators(path, function)):
            yield place
        if function.owner and place.scope.endswith((".__call__", ".setup")) and project.inherits(place.outer, MODULES):
            yield place


def _is_mapped_once(handing: Handing, facts: Facts) -> bool:
    """Whether a constructor maps something and calls that at once, `self.table = jax.vmap(row)(places)`, or a script
    does, outside of loops: what maps nothing else runs as often as that, eagerly."""
    place, name, (made, *_) = handing
    is_of_a_script = not place.scope or place.scope in MAIN
    if name != "jax.vmap" or not (is_of_a_script or place.scope.endswith(_MAKES)):
        return False
    return any(
        called == made and scope == place.scope and not (is_of_a_script and loops)
        for (called, *_), scope, loops, _ in facts.raw.calls
    )


def _handed(handing: Iterable[Handing]) -> Iterator[tuple[Place, RawValue]]:
    """What calls of transformations are handed, each with where they stand."""
    for place, _, ((_, arguments, keywords), *_) in handing:
        yield from ((place, argument) for argument in (*arguments, *(value for _, value in keywords)))


def _handed_of_self(project: Project, handing: Iterable[Handing]) -> Iterator[tuple[str, Place]]:
    for place, argument in _handed(handing):
        owner, _, name = argument.rpartition(".") if isinstance(argument, str) else ("", "", "")
        around = project.class_of(place, owner) if owner == "self" else None
        if around is not None:
            yield name, around


def _called_back(project: Project, path: str) -> Iterator[Place]:
    """What a file hands to the host out of a trace, and initializers, which run once before there is anything to speed
    up."""
    for place, name, ((called, arguments, keywords), *_) in project.named_calls(path):
        if name in CALLBACKS:
            yield from _behind(project, place, arguments[:1])
        if isinstance(called, str) and called.endswith(_DECLARES):  # self.param("kernel", initializer, ...)
            yield from _behind(project, place, arguments[1:2])
        for keyword, value in keywords:
            if keyword.endswith(_FIRST) and _MAKES_FIRST.match(keyword):
                yield from _behind(project, place, (value,))


def _behind(project: Project, place: Place, values: Iterable[RawValue]) -> Iterator[Place]:
    for value in values:
        yield from project.functions_behind(place, unpacked(value), PARTIAL)


def _kernels(project: Project, handing: Iterable[Handing]) -> Iterator[Place]:
    for place, name, ((_, arguments, keywords), *_) in handing:
        if name == PALLAS:
            for value in (*arguments[:1], *(value for keyword, value in keywords if keyword == "kernel")):
                yield from project.functions_behind(place, unpacked(value), TRANSFORMS)


def _overridden(project: Project, method: Place, function: Function) -> Iterator[Place]:
    """The methods of base classes that `method` is called in place of."""
    for base in project.bases(method.outer) if function.owner and not _is_constructor(method) else ():
        found = project.attribute(base, last_name(method.scope))
        if found and found[1].kind == "function":
            yield Place(found[0].path, found[1].target)


def _calling_the_host(project: Project, path: str) -> Iterator[Place]:
    """The functions of a file that call what no trace survives, or drive something compiled."""
    for place, name, (value, _, loops, _) in project.named_calls(path):
        if place.scope and (
            (name is not None and (is_host_call(name) or is_of_any_size(name, value)))
            or (isinstance(value[0], str) and value[0].endswith(_HOST_METHODS))
            # A Python loop over a jitted call is how a driver looks.
            or (loops and project.dispatches(place, name, value[0]))
        ):
            yield place


def _setting_up(project: Project, path: str) -> Iterator[str]:
    """Methods that are called as set-up is and keep what they make: `self.state = ...` in `init_state`, which no trace
    survives; and what makes a first state. A module of a network library keeps its layers so, under every trace."""
    facts = project.files[path]
    first = (scope for scope in facts.raw.functions if is_first_state_name(last_name(scope)))
    yield from (scope for scope in first if _makes_a_first_state(project, Place(path, scope)))
    for place in _methods_that_keep(project, path):
        if is_set_up_name(last_name(place.scope)) and not _is_built_anew(project, place):
            yield place.scope


def _keeping(project: Project, path: str) -> Iterator[Place]:
    """Methods of plain classes that keep what they make, `self.params = params - rate * grads`: a trace that they were
    part of would leave its tracers there."""
    for place in _methods_that_keep(project, path):
        if not _is_constructor(place) and _is_plain(project, place.outer):
            yield place


def _methods_that_keep(project: Project, path: str) -> Iterator[Place]:
    facts = project.files[path]
    for scope in facts.has("kept in self"):
        place = Place(path, scope)
        if scope in facts.raw.functions and place.outer.scope in facts.raw.classes:
            yield place


def _is_plain(project: Project, one: Place) -> bool:
    """Whether a class and those that it is derived from are known, and no trace is handed its objects: no modules of a
    network, no pytrees. What nobody knows may be one."""
    return all(_is_of_python(project, place) for place in _with_bases(project, one))


def _is_of_python(project: Project, one: Place) -> bool:
    facts = project.files[one.path]
    made = facts.classes[one.scope]
    unknown = [base.name for base in made.bases if last_name(base.name) not in _BASES_OF_PYTHON]
    above = [last_name((each.callee or each).name) for each in made.decorators]
    return (
        len(unknown) == len(project.bases(one))
        and all(name == "dataclass" for name in above)
        and f"{one.scope}.tree_flatten" not in facts.raw.functions
        and not any(name.endswith("Module") for name in (one.scope, *unknown))
    )


def _with_bases(project: Project, one: Place) -> list[Place]:
    classes = [one]
    for each in classes:  # which grows
        classes += (base for base in project.bases(each) if base not in classes)
    return classes


def _makes_a_first_state(project: Project, place: Place) -> bool:
    """Whether a function that is called so, `init_electrons`, makes a first state: no `step` stands beside it, for an
    environment that is over begins again within a step. Every trace makes a network's modules anew, but equinox's."""
    facts, around = project.files[place.path], place.outer.scope
    if around in facts.raw.classes and _is_built_anew(project, place) and not project.inherits(place.outer, EQUINOX):
        return False
    return not any(one.rpartition(".")[0] == around and is_step_name(last_name(one)) for one in facts.raw.functions)


def _is_built_anew(project: Project, method: Place) -> bool:
    """Whether a method may be of a network's module, of whatever library: every trace runs it again. What is called
    `setup` of a class with a base that nobody knows is flax's."""
    classes = _with_bases(project, method.outer)
    bases = [base.name for one in classes for base in project.files[one.path].classes[one.scope].bases]
    is_called_so = any(name.endswith("Module") for name in (*bases, *(one.scope for one in classes)))
    is_setup = bool(bases) and method.scope.endswith(".setup")
    return is_called_so or is_setup or project.inherits(method.outer, MODULES)


def _handed_out(project: Project, path: str, functions: Sequence[tuple[Place, Function]]) -> Iterator[Place]:
    """Functions that the function around them returns, alone or inside an object, `Transformation(init, update)`, or
    that a constructor makes and keeps, `self.step = step`."""
    inside: dict[Place, list[Place]] = defaultdict(list)
    for place, _ in functions:
        inside[place.outer].append(place)
    for place, function in functions:
        for value in function.returns if place in inside else ():
            for part in (value, *_parts_of_object(value)):
                found = {p for p in project.functions_behind(place, part, TRANSFORMS) if p.outer == place}
                yield from (one for one in inside[place] if found and not found.isdisjoint((one, _first_of(one))))
    facts = project.files[path]
    for owner in facts.raw.classes:
        for maker in (Place(path, f"{owner}{name}") for name in _CONSTRUCTORS):
            for bound in facts.bindings.get(owner, {}).values() if maker in inside else ():
                kept = project.functions_behind(maker, bound.value, TRANSFORMS) if bound.kind == "value" else ()
                yield from (p for p in kept if p.outer == maker)


def _parts_of_object(value: Value) -> Iterator[Value]:
    """What a class, by the case of its name, is handed to be made an object of."""
    if value.callee and value.callee.name.rpartition(".")[2][:1].isupper():
        yield from value.arguments
        yield from (part for _, part in value.keywords)


def _first_of(place: Place) -> Place:
    """The first def of a name that is defined again, in another branch: `f` of `f#2`; of a lambda itself."""
    name, again, number = place.scope.rpartition("#")
    return place._replace(scope=name) if again and number.isdigit() and not name.endswith("<lambda>") else place
