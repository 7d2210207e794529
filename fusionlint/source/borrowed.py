"""What is known of the files of a component from another one that they are in as well: of a file with what it imports,
from the whole project; of a project, from what it was before a file came or went.

What a file shows rests on what it says itself, on what it asked of other files, and on which modules there are to find
by the names that these import. Where all three are as they were, it need not be found out again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from fusionlint.source.asked import ByPath
from fusionlint.source.components import Leaf
from fusionlint.source.facts import Facts
from fusionlint.source.kept import Heard, Joined
from fusionlint.source.modules import modules_of
from fusionlint.source.of_file import NONE_KNOWN, Known
from fusionlint.source.world import Packed


def borrowed(
    facts: Mapping[str, Facts],
    leaves: Mapping[str, Leaf],
    said: Mapping[str, Heard],
    worlds: Iterable[Joined],
) -> Known:
    """What is known of the files, each of which has `said` something, from one of `worlds`: the first that knows most
    of them, else the best."""
    best = NONE_KNOWN
    for world in worlds:
        packed = Packed.of(world)
        paths = as_they_were(facts, leaves, said, world.heard, packed.asked)
        if len(paths) > len(best.files):
            best = Known(packed.files, packed.asked).only(paths)
        if 2 * len(paths) > len(leaves):
            break
    return best


def as_they_were(
    facts: Mapping[str, Facts],
    leaves: Mapping[str, Leaf],
    said: Mapping[str, Heard],
    then: Mapping[str, Heard],
    asked: Mapping[str, ByPath],
) -> set[str]:
    """The files of which what was known in a world holds still; `then` is what each of its own files said, `asked` what
    it asked of others."""
    same = {path for path, one in said.items() if then.get(path) == one}
    same -= finding_otherwise(facts, leaves, then, {path: asked[path] for path in same})
    return {path for path in same if same.issuperset(asked[path])}


def finding_otherwise(
    facts: Mapping[str, Facts],
    leaves: Mapping[str, Leaf],
    then: Mapping[str, Heard],
    asked: Mapping[str, Collection[str]],
) -> set[str]:
    """The files of those that `asked` others which may find a module by what they write that was not there, or another
    one; `then` is what each file said."""
    before = modules_of({path: module for path, (module, _) in then.items()})
    now = modules_of({path: leaf.module for path, leaf in leaves.items()})
    moved = {module for module, path in now.items() if before.get(module) != path}
    if not moved:
        return set()
    found = {path for path in asked if leaves[path].module in moved or _imports(leaves[path], moved)}
    # `import a` and `a.b.f` find the module `a.b`, by whatever names on the way: who writes its last one may mean it.
    around = {package for module in moved for package in _prefixes(module)}
    near = {path for path, leaf in leaves.items() if not around.isdisjoint(leaf.imports)}
    last = {module.rpartition(".")[2] for module in moved}
    for path in asked.keys() - found:
        if not near.isdisjoint((path, *asked[path])) and not last.isdisjoint(facts[path].attributes):
            found.add(path)
    return found


def _imports(leaf: Leaf, moved: set[str]) -> bool:
    """Whether a file imports one of the modules, or something of it."""
    return any(not moved.isdisjoint(_prefixes(name)) for name in leaf.imports)


def _prefixes(name: str) -> Iterator[str]:
    """`a.b.c` of itself, `a.b` and `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]
