"""What of the last run still holds for a component: the files for which it found what this one would.

Where no file says anything else to the others, that is all but the changed ones; else what each asked of the others
decides (`stale.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from fusionlint.source.cache import Cache, Notes, Run, digest
from fusionlint.source.components import Component, Leaf, heard, said_by
from fusionlint.source.known import Known
from fusionlint.source.read import facts_of
from fusionlint.source.stale import rejoined, stale
from fusionlint.source.world import Packed, World


class Since(NamedTuple):
    """What became of a component since the last run: the digest that it had then, the files for which what was found
    may no longer hold, None for any, and how the component hangs together now, where that was found out."""

    digest: bytes
    stale: Collection[str] | None
    world: World | None = None


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
    packed = cache.world(group.key, then)
    if packed is None:
        return Since(then, None)
    facts = {path: known.facts(path) for path in group.paths}
    now = rejoined(facts, {path: facts_of(before[path].facts, path) for path in changed}, Packed(*packed))
    cache.keep_world(group.key, group.digest, {path: heard(leaves[path]) for path in group.paths}, now.world.packed())
    true_then = [path for path, key in kept.items() if key == digest(seen[path], then)]
    asked = {path: notes.asked[path] for path in true_then if path in notes.asked}
    perhaps = stale(now, asked, notes.rests.get(group.paths[0], {}))
    return Since(then, perhaps.union(path for path in true_then if path not in asked), now.world)


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
