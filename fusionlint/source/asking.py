"""Asks the rules about files, in several processes: each knows how the files of a component hang together."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fusionlint.lazily import load, postpone
from fusionlint.source.answers import rests_of
from fusionlint.source.asked import ByPath, by_path
from fusionlint.source.borrowed import borrowed
from fusionlint.source.cache import Cache
from fusionlint.source.components import Component, heard
from fusionlint.source.known import Known, died, size
from fusionlint.source.plain import packed, packed_problem
from fusionlint.source.processes import WORTH_A_POOL, Progress, map_files, shared, sharing
from fusionlint.source.read import facts_of
from fusionlint.source.scope import Scope
from fusionlint.source.world import Packed, World, join

if TYPE_CHECKING:
    from fusionlint.source.judging import Checked


class Judged(NamedTuple):
    """What the rules say of a file, as plain values; where that is remembered, also what it took to ask of others, and
    what those answers rest on about the whole project that were found out with it."""

    found: tuple[Any, ...]
    asked: ByPath
    rests: dict[str, ByPath]


class _Shared(NamedTuple):
    """What all processes that ask the rules know: of files in large components their world, of the others what it
    takes to join it; and whether anybody will read what is asked."""

    scope: Scope
    is_noted: bool
    worlds: dict[str, World]
    groups: dict[str, tuple[str, ...]]
    texts: dict[str, bytes]


def judge(
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
        if group.is_large:
            large.update(dict.fromkeys(mine, group))
        elif mine:
            small += mine
            common.groups.update(dict.fromkeys(mine, group.paths))
            common.texts.update({path: known.packed(path) for path in group.paths})

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
        gc.unfreeze()
        _joined.cache_clear()


@contextmanager
def _ready_for(files: int) -> Iterator[None]:
    """What it takes to ask the rules is loaded once, before there are several processes; but for libcst, where there is
    one file: to load it takes as long as to check a file of which no rule wants a piece parsed, as most are."""
    postpone("libcst")
    importlib.import_module("fusionlint.source.judging")
    if files < WORTH_A_POOL:
        yield
        return
    load("libcst")
    from fusionlint.source.pieces import unvalidated

    with unvalidated():
        yield


def _world(group: Component, known: Known, cache: Cache | None) -> World:
    """What a large component says together. That it has said so before saves most of the time."""
    facts = {path: known.facts(path) for path in group.paths}
    if cache is None:
        return join(facts)
    if (kept := cache.world(group.key, group.digest)) is not None:
        return World.unpacked(facts, Packed.of(kept))
    leaves = {path: known.leaf(path) for path in group.paths}
    said = {path: heard(leaf) for path, leaf in leaves.items()}
    world = join(facts, borrowed(facts, leaves, said, cache.other_worlds(group.key, group.paths)))
    cache.keep_world(group.key, group.digest, world.packed().kept(said))
    return world


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
    return path, Judged(found, by_path(asked, path), rests_of(world.project, known))


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
