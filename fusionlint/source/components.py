"""Which files can have a say in what is found in a file: those that it is connected with by imports, either way.

Names are resolved through what a file imports; how its functions run, by what calls them, which imports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fusionlint.rule import definition
from fusionlint.source.cache import digest
from fusionlint.source.kept import Heard
from fusionlint.source.modules import home_of, is_elsewhere, modules_of
from fusionlint.source.stand import imported_file, imports_from, real_path

# Components of so many files are joined once, before there are several processes, and it is remembered what each of
# their files asked of the others; the others are joined by the process that asks, which keeps no two of them.
_LARGE = 16


class Leaf(NamedTuple):
    """What of a file says with which others it is connected: its module's name, the path as its project writes it, the
    absolute names of what it imports; `outline` is a digest of what it says to others."""

    module: str
    inside: str
    imports: tuple[str, ...]
    outline: bytes


class Component(NamedTuple):
    """Files that are connected, sorted, and a digest of what they all say. A name that one of them imports and that no
    other file has is part of its own outline."""

    paths: tuple[str, ...]
    digest: bytes

    @property
    def is_large(self) -> bool:
        return len(self.paths) >= _LARGE

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Which component this is, whatever its files say; first what is asked of it."""
        return key_of(self.paths)


def components(leaves: Mapping[str, Leaf]) -> list[Component]:
    """The components of a project, each with the files of the others left out."""
    modules = modules_of({path: leaf.module for path, leaf in leaves.items()})
    parents = {path: path for path in leaves}

    def root(path: str) -> str:
        while parents[path] != path:
            parents[path] = parents[parents[path]]
            path = parents[path]
        return path

    names = {name for leaf in leaves.values() for name in leaf.imports}
    homes = {name: home for name in names if (home := home_of(name, modules)[0])}  # of few names, so looked up first
    for path, leaf in leaves.items():
        for other in {homes[name] for name in leaf.imports if name in homes and not is_elsewhere(name, leaf.module)}:
            parents[root(path)] = root(other)
    members: dict[str, list[str]] = defaultdict(list)
    for path in sorted(leaves):
        members[root(path)].append(path)
    return [Component(tuple(paths), said_by(paths, leaves)) for paths in members.values()]


def key_of(paths: Iterable[str]) -> tuple[bytes, bytes]:
    """The key of the component of these files, in order."""
    return definition(), digest(*(path.encode() for path in paths))


def said_by(paths: Iterable[str], leaves: Mapping[str, Leaf]) -> bytes:
    """The digest of a component of these files."""
    parts = [
        part
        for path in paths
        for part in (path.encode(), leaves[path].module.encode(), leaves[path].inside.encode(), leaves[path].outline)
    ]
    return digest(*parts)


def heard(leaf: Leaf) -> Heard:
    """What one file says to others, and what it imports."""
    return leaf.module, digest("\n".join((leaf.inside, *leaf.imports)).encode(), leaf.outline)


def neighbours(leaves: Mapping[str, Leaf], read: Callable[[str], Leaf | None]) -> dict[str, Leaf]:
    """The files that are not among `leaves` but say what names mean that these import; of their own packages alone.
    `read` gives None for a file that cannot be read."""
    known, met = {real_path(path) for path in leaves}, {*leaves}
    found: dict[str, Leaf] = {}
    asked: dict[str, set[str]] = defaultdict(set)
    todo = [*leaves.items()]
    while todo:
        path, leaf = todo.pop()
        root = imports_from(path)
        new_names = [name for name in leaf.imports if name not in asked[root]]  # most are asked by many files
        asked[root].update(new_names)
        for name in new_names:
            other = imported_file(root, name)
            if other is None or other in met:
                continue
            met.add(other)
            if (real := real_path(other)) not in known:
                known.add(real)
                if (new := read(other)) is not None:
                    found[other] = new
                    todo.append((other, new))
    return found
