"""The files that a run is about, and how they are connected: found out anew, or as the last run left it.

To ask of each of some thousand files what it is called and what it imports takes longer than to read them all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from fusionlint.source.components import Component, Leaf, components, neighbours, said_by
from fusionlint.source.kept import Notes, Run
from fusionlint.source.known import Known
from fusionlint.source.listings import listing


class Connected(NamedTuple):
    """The leaves of files, and of those that they import from, in the order of their paths, and their components;
    `unread`, the files among those around that could not be read, each with a digest of what it held."""

    leaves: dict[str, Leaf]
    groups: list[Component]
    unread: dict[str, bytes]


def connected(known: Known, paths: Iterable[str], beside: Iterable[str] = ()) -> Connected:
    """How the files `paths` are connected, whose texts are known, with what they import and with those `beside` them;
    of the components those that one of the `paths` is in."""
    wanted = {*paths}
    leaves = {path: known.leaf(path) for path in (*wanted, *beside)}
    leaves = dict(sorted((leaves | neighbours(leaves, known.leaf_around)).items()))
    groups = components(leaves)
    return Connected(leaves, [g for g in groups if not wanted.isdisjoint(g.paths)] if beside else groups, known.unread)


def still_connected(
    known: Known, paths: Collection[str], seen: Mapping[str, bytes], last: Run, notes: Notes
) -> Connected | None:
    """The same, where it is what it was in the `last` run: no file has come or gone, none is called otherwise, none
    imports anything else. None where it may not be; `seen` is a digest of each file now."""
    if last.seen.keys() != seen.keys() or notes.leaves.keys() != {*paths, *last.around}:
        return None
    if any(listing(folder) != names for folder, names in last.listed.items()):
        return None
    leaves: dict[str, Leaf] = {}
    for path, values in notes.leaves.items():
        then = Leaf(*values)
        new: Leaf | None
        if path in seen:
            new = known.leaf(path) if seen[path] != last.seen.get(path) else then
        else:
            new = then if known.is_still(path, last.around[path]) else known.leaf_around(path)
        if new is None or (new is not then and new._replace(outline=then.outline) != then):
            return None
        leaves[path] = known.leaves[path] = new
    spoke = {path for path, leaf in leaves.items() if leaf.outline != notes.leaves[path][-1]}
    groups = [
        Component(paths, said if spoke.isdisjoint(paths) else said_by(paths, leaves)) for paths, said in notes.groups
    ]
    return Connected(leaves, groups, known.unread)
