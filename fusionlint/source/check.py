"""Files -> [Finding]: reads what changed, joins what is known, asks the rules where they could find something.

A file that cannot be read or parsed becomes a Problem; the others are checked all the same. What a run finds does not
depend on the number of its processes, on the order of files, or on what is remembered of earlier runs.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fusionlint.finding import Finding, Problem
from fusionlint.lazily import load, postpone
from fusionlint.rule import broken, definition
from fusionlint.source.asked import ByPath, by_path
from fusionlint.source.cache import Cache, Kept, Notes, Run, digest, packed, packed_problem, unpacked
from fusionlint.source.components import Component, Leaf, components, neighbours, said_by
from fusionlint.source.files import listed, listing, look_again, module_name, path_in_project
from fusionlint.source.known import Known, content_of, died, size
from fusionlint.source.processes import WORTH_A_POOL, Progress, map_files, shared, sharing, silent
from fusionlint.source.read import facts_of
from fusionlint.source.scope import Scope
from fusionlint.source.stale import rejoined, stale
from fusionlint.source.world import Packed, World, join

if TYPE_CHECKING:
    from fusionlint.source.judging import Checked

# Components of so many files are joined once, before there are several processes, and it is remembered what each of
# their files asked of the others; the others are joined by the process that asks, which keeps no two of them.
_LARGE = 16


@dataclass(frozen=True, slots=True)
class Result:
    """What one run found; `files` counts those it was asked to check. What `problems` name was not checked, what
    `warnings` name was."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int


def check_files(
    paths: Sequence[Path],
    scope: Scope,
    jobs: int = 1,
    cache: Cache | None = None,
    progress: Progress = silent,
) -> Result:
    """The findings of all rules of `scope` in the files `paths`, sorted by place."""
    with _without_collection():
        look_again()
        contents = {path: content_of(path) for path in map(str, sorted(paths))}
        seen = {path: _seen(path, content) for path, content in contents.items() if isinstance(content, bytes)}
        key = (b"", b"") if cache is None else (_settings(scope), digest(*(path.encode() for path in contents)))
        run = None if cache is None else cache.run(*key)
        if run is None or not _still_holds(run, contents, seen):
            run, notes = _run(contents, seen, scope, jobs, cache, run, progress)
            if cache is not None:
                cache.keep_run(*key, run, notes)
        return _result(run, contents, cache)


def world_of(
    paths: Iterable[Path], around: Collection[str] | None = None, jobs: int = 1, cache: Cache | None = None
) -> World:
    """What the files, and those that they import from, say together, by their facts alone: all of them, or those that
    are connected with the files `around`."""
    known = Known(cache)
    contents = {str(path): content for path in paths if isinstance(content := content_of(str(path)), bytes)}
    failed = known.read(contents, jobs)
    leaves = _leaves(known, contents.keys() - failed.keys())
    groups = (g.paths for g in components(leaves) if around is None or not set(around).isdisjoint(g.paths))
    return join({path: known.facts(path) for path in sorted(path for paths in groups for path in paths)})


def _result(run: Run, contents: dict[str, bytes | Problem], cache: Cache | None) -> Result:
    """The results of all files of a run, and what is wrong with the rules and the cache themselves."""
    findings, problems, warnings = ([value for kept in run.kept.values() for value in kept.found[i]] for i in range(3))
    unread = [content for content in contents.values() if isinstance(content, Problem)]
    unread += [Problem(package, 0, f"its rules cannot be used: {why}") for package, why in broken()]
    damaged = [Problem(str(path), 0, "was damaged; it is made anew") for path in (cache.damaged if cache else ())]
    return Result(
        tuple(sorted(map(unpacked, findings), key=lambda f: (f.location, f.rule, f.message))),
        tuple(sorted([*unread, *(Problem(*values) for values in problems)])),
        tuple(sorted([*damaged, *(Problem(*values) for values in warnings)])),
        len(contents),
    )


def _settings(scope: Scope) -> bytes:
    """What the results of a run depend on, besides its files."""
    return digest(definition(), repr(scope).encode(), str(Path.cwd()).encode())


def _seen(path: str, content: bytes) -> bytes:
    """A digest of a file: its content, and what it is called."""
    return digest(content, path_in_project(path).encode(), module_name(path).encode())


def _still_holds(run: Run, contents: dict[str, bytes | Problem], seen: dict[str, bytes]) -> bool:
    """Whether nothing has changed since: no file, none of those around, and no folder that says where those are."""
    if any(isinstance(content, Problem) for content in contents.values()):
        return False
    around = {path: content_of(path) for path in run.around}
    return (
        seen == run.seen
        and around == run.around
        and all(listing(folder) == names for folder, names in run.listed.items())
    )


def _run(
    contents: dict[str, bytes | Problem],
    seen: dict[str, bytes],
    scope: Scope,
    jobs: int,
    cache: Cache | None,
    last: Run | None,
    progress: Progress,
) -> tuple[Run, Notes]:
    """The results of all files, those of the last run where they still hold, else new ones; and what was asked for
    them of the others of large components."""
    readable = {path: content for path, content in contents.items() if isinstance(content, bytes)}
    known = Known(cache)
    failed = known.read(readable, jobs)
    checked = readable.keys() - failed.keys()
    leaves = _leaves(known, checked)
    around = {path: known.texts[path].digest for path in leaves.keys() - checked}
    known.keep({**readable, **around})
    groups = components(leaves)
    keys = {path: digest(seen[path], group.digest) for group in groups for path in group.paths if path in checked}
    kept = {path: Kept(seen[path], ((), (packed_problem(problem),), ())) for path, problem in failed.items()}
    large = {path: group.paths[0] for group in groups if len(group.paths) >= _LARGE for path in group.paths}
    notes = Notes({path: known.texts[path].digest for path in large}, {}, {})
    worlds: dict[Component, World] = {}
    if last is not None and cache is not None:
        before = cache.notes(last)
        for group in groups:
            since = _since(group, leaves, known, seen, last, before, cache)
            for path, found in _still_true(group, since, seen, last):
                kept[path] = Kept(keys[path], found)
                if path in before.asked:
                    notes.asked[path] = before.asked[path]
            if since.stale is not None and group.paths[0] in before.rests:
                notes.rests[group.paths[0]] = before.rests[group.paths[0]]
            if since.world is not None:
                worlds[group] = since.world
                notes.rests.setdefault(group.paths[0], {}).update(_rests(since.world, ()))
    todo = [path for group in groups for path in group.paths if path in checked and path not in kept]
    for path, judged in _judge(todo, groups, worlds, known, scope, jobs, cache, progress):
        kept[path] = Kept(keys[path], judged.found)
        if path in large:
            notes.asked[path] = judged.asked
            notes.rests.setdefault(large[path], {}).update(judged.rests)
    return Run(seen, around, listed(), {path: kept[path] for path in readable}), notes


class Since(NamedTuple):
    """What became of a component since the last run: the digest that it had then, the files for which what was found
    may no longer hold, None for any, and how the component hangs together now, where that was found out."""

    digest: bytes
    stale: Collection[str] | None
    world: World | None = None


def _since(
    group: Component,
    leaves: Mapping[str, Leaf],
    known: Known,
    seen: Mapping[str, bytes],
    last: Run,
    notes: Notes,
    cache: Cache,
) -> Since:
    kept = {path: last.kept[path].key for path in group.paths if path in last.kept and path in seen}
    if all(key == digest(seen[path], group.digest) for path, key in kept.items()):
        return Since(group.digest, ())
    held = {path: notes.contents[path] for path in group.paths if path in notes.contents}
    before = {path: text for path, content in held.items() if (text := known.of_content(content)) is not None}
    if len(before) < len(group.paths):
        return Since(b"", None)
    then = said_by(group.paths, {path: leaves[path]._replace(outline=before[path].outline) for path in group.paths})
    changed = [path for path in group.paths if before[path].outline != leaves[path].outline]
    if not changed:
        return Since(then, ())
    packed = cache.world(_key(group), then)
    if packed is None:
        return Since(then, None)
    facts = {path: known.facts(path) for path in group.paths}
    now = rejoined(facts, {path: facts_of(before[path].facts, path) for path in changed}, Packed(*packed))
    cache.keep_world(_key(group), group.digest, tuple(now.world.packed()))
    true_then = [path for path, key in kept.items() if key == digest(seen[path], then)]
    asked = {path: notes.asked[path] for path in true_then if path in notes.asked}
    perhaps = stale(now, asked, notes.rests.get(group.paths[0], {}))
    return Since(then, perhaps.union(path for path in true_then if path not in asked), now.world)


def _rests(world: World, known: Collection[str]) -> dict[str, ByPath]:
    """What those answers about a whole project rest on that were not known yet."""
    return {question: by_path(asked) for question, asked in world.project.rests.items() if question not in known}


def _still_true(
    group: Component, since: Since, seen: Mapping[str, bytes], last: Run
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The files of a component for which the last run found what this one would, and what it found: the component says
    what it said, or nothing that it says otherwise was asked for them."""
    for path in group.paths:
        if path in seen and path in last.kept:
            key, found = last.kept[path].key, last.kept[path].found
            may_hold = since.stale is not None and path not in since.stale
            if key == digest(seen[path], group.digest) or (may_hold and key == digest(seen[path], since.digest)):
                yield path, found


def _leaves(known: Known, paths: Iterable[str]) -> dict[str, Leaf]:
    """The leaves of files that are known, and of those that they import from, in the order of their paths."""
    leaves = {path: known.leaf(path) for path in paths}
    return dict(sorted((leaves | neighbours(leaves, known.leaf_around)).items()))


class _Shared(NamedTuple):
    """What all processes that ask the rules know: of files in large components their world, of the others what it
    takes to join it; and whether anybody will read what is asked."""

    scope: Scope
    is_noted: bool
    worlds: dict[str, World]
    groups: dict[str, tuple[str, ...]]
    texts: dict[str, bytes]


def _judge(
    todo: Sequence[str],
    groups: Sequence[Component],
    worlds: Mapping[Component, World],
    known: Known,
    scope: Scope,
    jobs: int,
    cache: Cache | None,
    progress: Progress,
) -> Iterator[tuple[str, Judged]]:
    """What the rules say of each file `todo`. Of some components it is known how they hang together: `worlds`."""
    if not todo:
        return
    wanted, small, large = set(todo), list[str](), dict[str, Component]()
    common = _Shared(scope, cache is not None, {}, {}, {})
    # One component after the other, whose world each process then asks once; the largest first.
    for group in sorted(groups, key=lambda group: -len(group.paths)):
        mine = sorted(wanted.intersection(group.paths), key=size, reverse=True)
        if len(group.paths) >= _LARGE:
            large.update(dict.fromkeys(mine, group))
        elif mine:
            small += mine
            common.groups.update(dict.fromkeys(mine, group.paths))
            common.texts.update({path: known.texts[path].facts for path in group.paths})

    def join_large() -> None:
        for group in dict.fromkeys(large.values()):
            common.worlds.update(dict.fromkeys(group.paths, worlds.get(group) or _world(group, known, cache)))

    # While other processes look into the small components, this one joins the large ones.
    first = small if len(small) >= WORTH_A_POOL else []
    try:
        with _ready_for(len(todo)), sharing(common):
            gc.freeze()
            yield from map_files(_judge_one, first, jobs, _died, lambda n, _: progress(n, len(todo)), join_large)
            gc.freeze()
            rest = [*large, *small[len(first) :]]
            yield from map_files(_judge_one, rest, jobs, _died, lambda n, _: progress(len(first) + n, len(todo)))
    finally:
        _joined.cache_clear()


@contextmanager
def _ready_for(files: int) -> Iterator[None]:
    """What it takes to ask the rules is loaded once, before there are several processes. To load libcst takes as long as
    to check a file of which no rule wants a piece parsed, as most are."""
    postpone("libcst")
    importlib.import_module("fusionlint.source.judging")
    if files < WORTH_A_POOL:
        yield
        return
    load("libcst")
    with importlib.import_module("fusionlint.source.pieces").unvalidated():
        yield


def _world(group: Component, known: Known, cache: Cache | None) -> World:
    """What a large component says together. That it has said so before saves most of the time."""
    facts = {path: known.facts(path) for path in group.paths}
    if cache is None:
        return join(facts)
    if (packed := cache.world(_key(group), group.digest)) is not None:
        return World.unpacked(facts, Packed(*packed))
    world = join(facts)
    cache.keep_world(_key(group), group.digest, tuple(world.packed()))
    return world


def _key(group: Component) -> bytes:
    """Which component this is, whatever its files say."""
    return digest(definition(), *(path.encode() for path in group.paths))


class Judged(NamedTuple):
    """What the rules say of a file, as plain values; where that is remembered, also what it took to ask of others, and
    what those answers rest on about the whole project that were found out with it."""

    found: tuple[Any, ...]
    asked: ByPath
    rests: dict[str, ByPath]


def _judge_one(path: str) -> tuple[str, Judged]:
    from fusionlint.source.judging import check_file

    common: _Shared = shared()
    large = common.worlds.get(path)
    world = large or _joined(common.groups[path])
    known = frozenset(world.project.rests)
    with world.project.log.apart(path) as asked:
        found = _plain(check_file(path, common.scope, world))
    if large is None or not common.is_noted:
        return path, Judged(found, {}, {})
    return path, Judged(found, by_path(asked, path), _rests(world, known))


@lru_cache(maxsize=1)
def _joined(paths: tuple[str, ...]) -> World:
    texts = shared().texts
    return join({path: facts_of(texts[path], path) for path in paths})


def _died(path: str) -> Judged:
    return Judged(((), (packed_problem(died(path)),), ()), {}, {})


def _plain(checked: Checked) -> tuple[Any, ...]:
    problems, warnings = checked.problems, checked.warnings
    return (
        tuple(map(packed, checked.findings)),
        tuple(map(packed_problem, problems)),
        tuple(map(packed_problem, warnings)),
    )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Little that a run makes is garbage before it ends: to look for some again and again takes a fifth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
