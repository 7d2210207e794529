"""Files -> [Finding]: reads what changed, joins what is known, asks the rules where they could find something.

A file that cannot be read or parsed becomes a Problem; the others are checked all the same. What a run finds does not
depend on the number of its processes, on the order of files, or on what is remembered of earlier runs.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fusionlint.finding import Finding, Problem
from fusionlint.rule import broken, definition
from fusionlint.source.answers import rests_of
from fusionlint.source.asking import judge
from fusionlint.source.briefs import keep
from fusionlint.source.cache import Cache, digest, undamaged
from fusionlint.source.components import Component
from fusionlint.source.connected import connected, still_connected
from fusionlint.source.kept import Kept, Notes, Run
from fusionlint.source.known import Known, content_of
from fusionlint.source.listings import listed, listing, look_again
from fusionlint.source.plain import packed_problem, unpacked
from fusionlint.source.processes import Progress, silent
from fusionlint.source.scope import Scope
from fusionlint.source.since import since, still_true
from fusionlint.source.stand import stand
from fusionlint.source.texts import is_notebook, text_of
from fusionlint.source.world import World, join


class Result(NamedTuple):
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
    beside: Sequence[Path] = (),
) -> Result:
    """The findings of all rules of `scope` in the files `paths`, sorted by place; those `beside` them have a say."""
    with _without_collection():
        look_again()
        contents = {path: content_of(path) for path in map(str, sorted(paths))}
        seen = {path: _seen(path, content) for path, content in contents.items() if isinstance(content, bytes)}
        key = (
            (b"", b"")
            if cache is None
            else (_settings(scope), digest(*map(os.fsencode, contents), b"", *map(os.fsencode, beside)))
        )
        # Of what a run over others found, one file alone has little; to read it takes longer than to find that again.
        run = None if cache is None else cache.run(*key, or_another=len(contents) > 1)
        if run is None or not _still_holds(run, contents, seen):
            last = run
            run, notes = undamaged(cache, lambda: _run(contents, seen, scope, jobs, cache, last, progress, beside))
            if cache is not None:
                cache.keep_run(*key, run, notes)
                keep(cache)
        return _result(run, contents, cache)


def world_of(
    paths: Iterable[Path],
    around: Collection[str] | None = None,
    jobs: int = 1,
    cache: Cache | None = None,
    beside: Sequence[Path] = (),
) -> World:
    """What the files, those that they import from, and those `beside` them say together, by their facts alone: all of
    them, or those that are connected with the files `around`."""
    return undamaged(cache, lambda: _world_of(paths, around, jobs, cache, beside))


def _world_of(
    paths: Iterable[Path], around: Collection[str] | None, jobs: int, cache: Cache | None, beside: Sequence[Path]
) -> World:
    known = Known(cache)
    contents = {str(path): content for path in paths if isinstance(content := content_of(str(path)), bytes)}
    failed = known.read(contents, jobs)
    found = connected(known, contents.keys() - failed.keys(), known.read_beside(map(str, beside), jobs))
    groups = (g.paths for g in found.groups if around is None or not set(around).isdisjoint(g.paths))
    return join({path: known.facts(path) for path in sorted(path for paths in groups for path in paths)})


def _result(run: Run, contents: dict[str, bytes | Problem], cache: Cache | None) -> Result:
    """The results of all files of a run, and what is wrong with the rules and the cache themselves."""
    findings, problems, warnings = ([value for kept in run.kept.values() for value in kept.found[i]] for i in range(3))
    unread = [content for content in contents.values() if isinstance(content, Problem)]
    unread += [problem for path, content in contents.items() for problem in _broken_cells(path, content)]
    unread += [Problem(package, 0, f"its rules cannot be used: {why}") for package, why in broken()]
    damaged = [Problem(str(path), 0, "was damaged; it is made anew") for path in (cache.damaged if cache else ())]
    return Result(
        tuple(sorted(map(unpacked, findings), key=lambda f: (f.location, f.rule, f.message))),
        tuple(sorted([*unread, *(Problem(*values) for values in problems)])),
        tuple(sorted([*damaged, *(Problem(*values) for values in warnings)])),
        len(contents),
    )


def _broken_cells(path: str, content: bytes | Problem) -> Iterator[Problem]:
    """The cells of a notebook that do not parse; the others are checked without them."""
    if is_notebook(path) and isinstance(content, bytes):
        from fusionlint.source.notebooks import broken_in

        yield from (Problem(path, line, f"does not parse: {why}") for line, why in broken_in(text_of(path)))


def _settings(scope: Scope) -> bytes:
    """What the results of a run depend on, besides its files."""
    return digest(definition(), repr(scope).encode(), os.fsencode(Path.cwd()))


def _seen(path: str, content: bytes) -> bytes:
    """A digest of a file: its content, what it is called, and for whom it is."""
    where = stand(path)
    return digest(content, where.inside.encode(), where.module.encode(), bytes([where.is_for_others]))


def _still_holds(run: Run, contents: dict[str, bytes | Problem], seen: dict[str, bytes]) -> bool:
    """Whether nothing has changed since: no file, none of those around, and no folder that says where those are."""
    if seen != run.seen or any(isinstance(content, Problem) for content in contents.values()):
        return False  # before the files around are read, which a new run does itself
    around = {path: content_of(path) for path in run.around}
    return around == run.around and all(listing(folder) == names for folder, names in run.listed.items())


def _run(
    contents: dict[str, bytes | Problem],
    seen: dict[str, bytes],
    scope: Scope,
    jobs: int,
    cache: Cache | None,
    last: Run | None,
    progress: Progress,
    beside: Sequence[Path],
) -> tuple[Run, Notes]:
    """The results of all files, those of the last run where they still hold, else new ones; and what was asked for
    them of the others of large components."""
    readable = {path: content for path, content in contents.items() if isinstance(content, bytes)}
    known = Known(cache)
    failed = known.read(readable, jobs)
    checked = readable.keys() - failed.keys()
    others = known.read_beside(map(str, beside), jobs)
    before = cache.notes(last) if last is not None and cache is not None else None
    as_before = still_connected(known, checked, seen, last, before) if last is not None and before is not None else None
    leaves, groups, unread = as_before or connected(known, checked, others)
    around = {path: known.texts[path].digest for path in leaves.keys() - checked}
    known.keep({**readable, **around})
    keys = {path: digest(seen[path], group.digest) for group in groups for path in group.paths if path in checked}
    kept = {path: Kept(seen[path], ((), (packed_problem(problem),), ())) for path, problem in failed.items()}
    large = {path: group.paths[0] for group in groups if group.is_large for path in group.paths}
    held = {g.paths[0]: (g.digest, {path: known.texts[path].digest for path in g.paths}) for g in groups if g.is_large}
    leaves_now = {path: tuple(leaf) for path, leaf in leaves.items()}
    notes = Notes(held, {}, {}, leaves_now, [(group.paths, group.digest) for group in groups])
    worlds: dict[Component, World] = {}
    if last is not None and before is not None and cache is not None:
        for group in groups:
            became = since(group, leaves, known, seen, last, before, cache)
            for path, found in still_true(group, became, seen, last):
                kept[path] = Kept(keys[path], found)
                if path in before.asked:
                    notes.asked[path] = before.asked[path]
            if became.stale is not None and group.is_large:
                notes.rests[group.paths[0]] = {**became.rests}
            if became.world is not None:
                worlds[group] = became.world
                notes.rests.setdefault(group.paths[0], {}).update(rests_of(became.world.project))
    todo = [path for group in groups for path in group.paths if path in checked and path not in kept]
    for path, judged in judge(todo, groups, worlds, known, scope, jobs, cache, progress):
        kept[path] = Kept(keys[path], judged.found)
        if path in large:
            notes.asked[path] = judged.asked
            notes.rests.setdefault(large[path], {}).update(judged.rests)
    return Run(seen, {**around, **unread}, listed(), {path: kept[path] for path in readable}), notes


@contextmanager
def _without_collection() -> Iterator[None]:
    """Little that a run makes is garbage before it ends: to look for some again and again takes a fifth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
