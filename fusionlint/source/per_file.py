"""Patterns of files -> the rules that those files are not checked for: [tool.fusionlint.per-file-ignores]."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pathspec


class PerFile(NamedTuple):
    """Pairs of a pattern and the rules that the files it matches are not checked for.

    Patterns read like those of .gitignore, from the folder `root` on; `!src/` is every file that is not in src/.
    """

    root: str = ""
    ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def silent(self, path: str) -> frozenset[str]:
        """The rules that say nothing in the file `path`."""
        if not self.ignores:
            return frozenset()
        full, root = Path(path).resolve(), Path(self.root).resolve()
        if not full.is_relative_to(root):
            return frozenset()
        inside = full.relative_to(root).as_posix()
        return frozenset(rule for pattern, rules in self.ignores if _matches(pattern, inside) for rule in rules)


NOWHERE = PerFile()


def _matches(pattern: str, path: str) -> bool:
    negated = pattern.startswith("!")
    return _spec(pattern.removeprefix("!")).match_file(path) != negated


@cache
def _spec(pattern: str) -> pathspec.GitIgnoreSpec:
    import pathspec  # few projects have such patterns

    return pathspec.GitIgnoreSpec.from_lines([pattern])
