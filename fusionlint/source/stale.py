"""What a change means for a project that was looked into before: how it hangs together now, and for which files what
was found may no longer hold.

What was asked of other files, for the names of a file or by rules that looked into it, was written down then
(`asked.py`). A change is followed the same way: what the changed files say otherwise now may give the calls of others
another meaning; that and the calls themselves may let functions run otherwise; and a file that asked about any of that
is looked into again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from fusionlint.source.answers import otherwise
from fusionlint.source.asked import (
    ANSWER,
    CALLERS,
    CALLS,
    DECORATORS,
    EVERYWHERE,
    IMPORTS,
    ITS_CALLS,
    METHODS,
    NAMED,
    Asked,
    ByPath,
    about,
    asks,
    outermost,
)
from fusionlint.source.facts import Facts, Raw
from fusionlint.source.project import Project
from fusionlint.source.seen import Seen, ends, seen_of
from fusionlint.source.traced import kernels, run_as_before
from fusionlint.source.world import Packed, World, joined

Changes: TypeAlias = "dict[str, set[str]]"
# What a file says and shows that is not there.
_EMPTY = Raw({"": {}}, {}, {}, (), frozenset(), frozenset())
_NOTHING = Seen(False, *((),) * (len(Seen._fields) - 1))


class Rejoined(NamedTuple):
    """A project after a change: its world, the one before, and what is otherwise, as it is asked about."""

    world: World
    before: Project
    changes: Changes


def rejoined(
    facts: dict[str, Facts], was: Mapping[str, Facts], then: Packed, elsewhere: Collection[str] = ()
) -> Rejoined:
    """How files hang together now; `was` are those that have said something else when it was as in `then`, as they
    were, and those that are gone. The names that the files `elsewhere` write may find other modules."""
    there = {path: facts[path] for path in facts if path in then.files}
    changed = {*was, *(facts.keys() - there.keys())}
    old = {**there, **was}
    said = [one for path in sorted(changed) for one in _said_otherwise(path, _raw(old, path), _raw(facts, path))]
    said += ((path, name) for path in elsewhere for name in _by_name(facts[path].raw))
    means = about(said)
    again = {path for path in there if path in changed or path in elsewhere or asks(then.asked[path], means)}
    was_then = World.unpacked(old, then)
    before, project = was_then.project, Project(facts, known=was_then.project.known.only(there.keys() - again))
    shown_then = {path: Seen.unpacked(then.files[path].seen) if path in old else _NOTHING for path in again | changed}
    shown_now = {path: seen_of(project, path) if path in facts else _NOTHING for path in again | changed}
    then_kernels = kernels(before)
    if all(
        run_as_before(was_then.contexts, then_kernels, path, shown_then[path], shown_now[path]) for path in shown_now
    ):
        world = World(replace(project, known=project.known._replace(kernels=then_kernels)), was_then.contexts)
    else:
        world = joined(project)
    for path in sorted(again | changed):
        said += _called_otherwise(path, before, world.project)
        said += _seen_otherwise(path, shown_then[path], shown_now[path])
    return Rejoined(world, before, about([*said, *_running_otherwise(then, world)]))


def stale(now: Rejoined, asked: Mapping[str, ByPath], rests: Mapping[str, ByPath]) -> set[str]:
    """Of the files whose questions are known, those for which another answer is possible. `rests` says of questions
    about the whole project what of its files their answers rest on."""
    questions = {question for of_one in asked.values() for question in of_one.get(ANSWER, ())}
    again = (one for one in sorted(questions) if one not in rests or asks(rests[one], now.changes))
    answers = about(other for one in again for other in otherwise(one, now.before, now.world.project))
    return {
        path
        for path, of_one in asked.items()
        if any(path in changes or asks(of_one, changes) for changes in (now.changes, answers))
    }


def _said_otherwise(path: str, before: Raw, now: Raw) -> Iterator[Asked]:
    """What the facts of a file say otherwise."""
    old, new = _by_name(before), _by_name(now)
    yield from ((path, name) for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    kinds = {METHODS: _methods, DECORATORS: _decorators, CALLS: _calls, IMPORTS: _imports, NAMED: _named_elsewhere}
    for kind, of in kinds.items():
        if of(before) != of(now):
            yield EVERYWHERE, kind


def _by_name(raw: Raw) -> dict[str, list[Any]]:
    """What a file says, but for where it stands, by outermost names."""
    found: dict[str, list[Any]] = defaultdict(list)
    for scope, names in raw.bindings.items():
        for name, bound in names.items():
            found[outermost(scope or name)].append((scope, name, bound))
    for scope, (_, *function) in raw.functions.items():
        found[outermost(scope)].append((scope, function))
    for scope, one in raw.classes.items():
        found[outermost(scope)].append((scope, one))
    for call in _calls(raw):
        found[outermost(call[0])].append(call)
    for shape, scope in sorted(raw.shapes):
        found[outermost(scope)].append((scope, shape))
    return found


def _methods(raw: Raw) -> Any:
    return {scope: owner for scope, (*_, owner) in raw.functions.items() if owner}, raw.classes


def _decorators(raw: Raw) -> Any:
    return {scope: decorators for scope, (_, decorators, *_) in raw.functions.items() if decorators}


def _imports(raw: Raw) -> Any:
    return {(name, bound) for names in raw.bindings.values() for name, bound in names.items() if bound[0] == "import"}


def _calls(raw: Raw) -> list[tuple[Any, ...]]:
    return [(scope, value, len(loops)) for value, scope, loops, _ in raw.calls]


def _named_elsewhere(raw: Raw) -> Any:
    return raw.attributes, {*raw.imports()}


def _raw(files: Mapping[str, Facts], path: str) -> Raw:
    return files[path].raw if path in files else _EMPTY


def _called_otherwise(path: str, before: Project, now: Project) -> Iterator[Asked]:
    """What a file calls that it did not call, or called otherwise."""
    old, new = (_named(project, path) for project in (before, now))
    for name, scope, *_ in {**(old - new), **(new - old)}:
        yield path, outermost(scope)
        yield path, ITS_CALLS
        if name is not None:
            yield CALLERS, name


def _named(project: Project, path: str) -> Counter[tuple[Any, ...]]:
    """The calls of a file, each with the name of what it calls; of one that is not there none."""
    if path not in project.files:
        return Counter()
    calls = zip(project.calls_in(path), _calls(project.files[path].raw), strict=True)
    return Counter((name, *call) for (_, name), call in calls)


def _seen_otherwise(path: str, before: Seen, now: Seen) -> Iterator[Asked]:
    """What a file shows of functions that it did not show."""
    for old, new in ((before.overrides, now.overrides), (before.derived, now.derived), (before.of_self, now.of_self)):
        if old != new:
            yield EVERYWHERE, METHODS
    for one, other in ((before.calls, now.calls), (before.hands, now.hands)):
        yield from ((path, outermost(scope)) for (_, scope), _ in {*one} ^ {*other})
    for places, others in (
        (ends(before.nested), ends(now.nested)),
        (ends(before.methods), ends(now.methods)),
        (before.host, now.host),
        (before.setting_up, now.setting_up),
        (before.traced, now.traced),
        (before.called_back, now.called_back),
        (before.kernels, now.kernels),
        (before.handed_out, now.handed_out),
    ):
        yield from ((where, outermost(scope)) for where, scope in {*places} ^ {*others})


def _running_otherwise(then: Packed, world: World) -> Iterator[Asked]:
    """The functions that run otherwise than they did: under a trace, on the host, as Pallas kernels."""
    now = world.packed_contexts()
    for path in then.contexts.keys() | now.keys():
        old, new = then.contexts.get(path, {}), now.get(path, {})
        if old != new:
            yield from ((path, outermost(s)) for s in old.keys() | new.keys() if old.get(s) != new.get(s))
    for path, scope in {*map(tuple, then.kernels)} ^ {*world.packed_kernels()}:
        yield path, outermost(scope)
