"""Which files can have a say in what is found in a file: those that it is connected with by imports, either way."""

from __future__ import annotations

from collections import defaultdict

from fusionlint.source.cache import digest
from fusionlint.source.project import Project


def components(project: Project, outlines: dict[str, bytes]) -> dict[str, bytes]:
    """For each file a digest of the `outlines` of all files that it is connected with, its own included.

    Names are resolved through what a file imports; how its functions run, by what calls them, which imports it. A name
    that a file imports and that no other file has is part of its own outline.
    """
    parents = {path: path for path in project.files}

    def root(path: str) -> str:
        while parents[path] != path:
            parents[path] = parents[parents[path]]
            path = parents[path]
        return path

    for path in project.files:
        for other in project.imported(path):
            parents[root(path)] = root(other)
    members: dict[str, list[str]] = defaultdict(list)
    for path in sorted(project.files):
        members[root(path)].append(path)
    found: dict[str, bytes] = {}
    for together in members.values():
        parts = [
            digest(project.files[p].module.encode(), project.files[p].inside.encode(), outlines[p]) for p in together
        ]
        whole = digest(*(part for path, one in zip(together, parts, strict=True) for part in (path.encode(), one)))
        found.update(dict.fromkeys(together, whole))
    return found
