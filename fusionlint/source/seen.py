"""What each file shows of the functions of its project: which of them it calls, hands to a transformation, to the host
or to Pallas, and which of its own are host code by their names or by what they call.

In: a `Project`. Out: `Seen`, by file. It follows from a file and from what its names mean: of a file that a change
cannot matter to it is still true.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fusionlint.lazily import regex
from fusionlint.source.facts import Facts, Function, RawCall, RawValue, Value, last_name, unpacked
from fusionlint.source.host_code import CLASS_RUNS, MAKES, host_code, runs_with_its_class, setting_up
from fusionlint.source.hosts import MAIN
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project, found_once
from fusionlint.source.transforms import CALLBACKS, EQUINOX, MODULES, PALLAS, PALLAS_BLOCKS, TRANSFORMS

# flax's ways to declare a parameter: the second argument makes its first value.
_DECLARES = (".param", ".variable")
# And what layers are given for the same: `nn.Dense(8, bias_init=grid)`.
_FIRST = ("_init", "_initializer")
_MAKES_FIRST = regex(r"^(.*_)?(kernel|bias|scale|embedding|weights?|w|b)_init(ializer)?$")
# What makes such a function and hands it out.
_MAKES_INITIALIZERS = regex(r"(^|_)initiali[sz]er$")
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
        goes_on = not function.owner or runs_with_its_class(place)
        (nested if goes_on else methods)[place.outer].append(place)
    handing = [(place, name, call) for place, name, call in project.named_calls(path) if name in TRANSFORMS]
    hands: dict[Place, dict[Place, None]] = defaultdict(dict)
    on_host = _once(host_code(project, path))
    traced = dict.fromkeys(_traced(project, path, functions, on_host))
    for place, handed, is_eager in _functions_handed(project, path, handing):
        hands[place][handed] = None
        (calls[place] if is_eager else traced)[handed] = None
    return Seen(
        is_idle_file(facts.inside),
        _edges(nested),
        _edges(methods),
        on_host,
        _once(setting_up(project, path)),
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


def _traced(
    project: Project, path: str, functions: Sequence[tuple[Place, Function]], on_host: Collection[Place]
) -> Iterator[Place]:
    """What a file decorates with transformations, and the methods that a network library traces."""
    for place, function in functions:
        if function.decorators and not TRANSFORMS.isdisjoint(project.decorators(path, function)):
            yield place
        if not function.owner or not place.scope.endswith((".__call__", ".setup")):
            continue
        # Python calls an object of equinox as well: a trainer, say.
        if project.inherits(place.outer, MODULES - EQUINOX if place in on_host else MODULES):
            yield place


def _functions_handed(project: Project, path: str, handing: Iterable[Handing]) -> Iterator[tuple[Place, Place, bool]]:
    """Where each function is handed to a transformation, which it is, and whether it runs eagerly there, as it would by
    itself."""
    for one in handing:
        is_mapped_once = _is_mapped_once(one, project.files[path])
        for place, argument in _handed([one]):
            for handed in project.functions_behind(place, unpacked(argument), TRANSFORMS):
                is_its_own = handed.path == path if place.scope in MAIN else handed.outer == place
                yield place, handed, is_mapped_once and is_its_own


def _is_mapped_once(handing: Handing, facts: Facts) -> bool:
    """Whether a constructor maps something and calls that at once, `self.table = jax.vmap(row)(places)`, or a script
    does, outside of loops: what maps nothing else runs as often as that, eagerly."""
    place, name, (made, *_) = handing
    is_of_a_script = not place.scope or place.scope in MAIN
    if name != "jax.vmap" or not (is_of_a_script or place.scope.endswith(MAKES)):
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
    for scope in project.files[path].raw.functions:
        around = scope.rpartition(".")[0]
        if around and _MAKES_INITIALIZERS.search(around.rpartition(".")[2]):
            yield Place(path, scope)


def _behind(project: Project, place: Place, values: Iterable[RawValue]) -> Iterator[Place]:
    for value in values:
        yield from project.functions_behind(place, unpacked(value), PARTIAL)


def _kernels(project: Project, handing: Iterable[Handing]) -> Iterator[Place]:
    for place, name, ((_, arguments, keywords), *_) in handing:
        if name in (PALLAS, PALLAS_BLOCKS):
            own, called = (arguments[:1], "kernel") if name == PALLAS else (arguments, "index_map")
            for value in (*own, *(value for keyword, value in keywords if keyword == called)):
                yield from project.functions_behind(place, unpacked(value), TRANSFORMS)


def _overridden(project: Project, method: Place, function: Function) -> Iterator[Place]:
    """The methods of base classes that `method` is called in place of."""
    for base in project.bases(method.outer) if function.owner and not runs_with_its_class(method) else ():
        found = project.attribute(base, last_name(method.scope))
        if found and found[1].kind == "function":
            yield Place(found[0].path, found[1].target)


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
        for maker in (Place(path, f"{owner}{name}") for name in CLASS_RUNS):
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
