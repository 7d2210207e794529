"""What of the last run still holds for a component: the files for which it found what this one would.

Where no file says anything else to the others, that is all but the changed ones; else what each asked of the others
decides (`stale.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fusionlint.source.asked import ByPath
from fusionlint.source.borrowed import finding_otherwise
from fusionlint.source.cache import Cache, digest
from fusionlint.source.components import Component, Leaf, heard, key_of, said_by
from fusionlint.source.kept import Notes, Run
from fusionlint.source.known import Known
from fusionlint.source.read import facts_of
from fusionlint.source.stale import rejoined, stale
from fusionlint.source.world import Packed, World


class Since(NamedTuple):
    """What became of a component since the last run: the digest that it had then, the files for which what was found
    may no longer hold, None for any, how the component hangs together now, where that was found out, and by question
    about the whole of it what the answers rested on."""

    digest: bytes
    stale: Collection[str] | None
    world: World | None = None
    rests: Mapping[str, ByPath] = MappingProxyType({})


class _Then(NamedTuple):
    """A component of the last run: its first path, a digest of what it said, and digests of what its files held."""

    first: str
    said: bytes
    contents: Mapping[str, bytes]


_UNKNOWN = Since(b"", None)


def since(
    group: Component,
    leaves: Mapping[str, Leaf],
    known: Known,
    seen: Mapping[str, bytes],
    last: Run,
    notes: Notes,
    cache: Cache,
) -> Since:
    """What became of `group`: of the `last` run, `notes` is what was asked in it; `seen`, a digest of each file now."""
    kept = {path: last.kept[path].key for path in group.paths if path in last.kept and path in seen}
    then = _then(group, notes)
    if all(key == digest(seen[path], group.digest) for path, key in kept.items()):
        return Since(group.digest, (), None, notes.rests.get(then.first, {}))
    come_or_gone = then.contents.keys() ^ {*group.paths}
    if len(come_or_gone) >= len(kept):
        return _UNKNOWN
    before = {path: text for path, content in then.contents.items() if (text := known.of_content(content)) is not None}
    if len(before) < len(then.contents):
        return _UNKNOWN
    rests = notes.rests.get(then.first, {})
    changed = [path for path in group.paths if path in before and before[path].outline != leaves[path].outline]
    if not come_or_gone:
        was = {path: leaves[path]._replace(outline=before[path].outline) for path in group.paths}
        if said_by(group.paths, was) != then.said:
            return _UNKNOWN  # something is called otherwise
        if not changed:
            return Since(then.said, (), None, rests)
    found = cache.world(key_of(then.contents), then.said)
    if found is None:
        return _UNKNOWN
    said, packed = found.heard, Packed.of(found)
    mine = {path: leaves[path] for path in group.paths}
    now_said = {path: heard(leaf) for path, leaf in mine.items()}
    same = [path for path in group.paths if path in before and path not in changed]
    if any(said[path] != now_said[path] for path in same) or any(said[p][0] != mine[p].module for p in changed):
        return _UNKNOWN
    facts = {path: known.facts(path) for path in group.paths}
    old = {
        path: facts_of(known.packed_of(before[path]), path) for path in before if path in changed or path not in facts
    }
    elsewhere: Collection[str] = ()
    if come_or_gone:
        there = [path for path in group.paths if path in packed.asked]
        asked = {path: (*packed.asked[path], *notes.asked.get(path, ())) for path in there}
        elsewhere = finding_otherwise(facts, mine, said, asked)
    now = rejoined(facts, old, packed, elsewhere)
    cache.keep_world(group.key, group.digest, now.world.packed().kept(now_said))
    true_then = [path for path, key in kept.items() if key == digest(seen[path], then.said)]
    questions = {path: notes.asked[path] for path in true_then if path in notes.asked}
    perhaps = stale(now, questions, rests)
    return Since(then.said, perhaps.union(path for path in true_then if path not in questions), now.world, rests)


def _then(group: Component, notes: Notes) -> _Then:
    """The component of the last run that most files of one were in."""
    shared = {first: sum(path in held for path in group.paths) for first, (_, held) in notes.contents.items()}
    first = max(shared, key=lambda first: shared[first], default="")
    return _Then(first, *notes.contents[first]) if shared.get(first) else _Then("", b"", {})


def still_true(
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
