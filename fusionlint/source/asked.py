"""What is read of other files while one of them is looked into: what was found there holds as long as none of it
changes.

Something asked is a pair: a file and a name of its module's own level, which stands for all that is inside; or, for
questions about all files, one of the marks below and what they are about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, TypeVar

Asked: TypeAlias = "tuple[str, str]"
# What was asked, by file, the names in order.
ByPath: TypeAlias = "Mapping[str, tuple[str, ...]]"
# In place of a path: who calls what is called so, what a function of the whole project (`of_project`) says, and what
# all files have of a kind.
CALLERS, ANSWER, EVERYWHERE = "()", "*", "/"
# The kinds: which methods there are and what classes are derived from, what is decorated with what, what is called,
# what is imported, and what is named of other files, by an import or as a part of something.
METHODS, DECORATORS, CALLS, IMPORTS, NAMED = "methods", "decorators", "calls", "imports", "named"
# In place of a name: what a file has by `from module import *`, and all that it calls.
STARS, ITS_CALLS = "*", "()"

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@cache
def outermost(name: str) -> str:
    """`Env` of the scope `Env.step#2.<lambda>`; of a name that a module binds, as its facts keep it, that name."""
    return STARS if name.startswith("*") else name.partition(".")[0].partition("#")[0]


def by_path(asked: Iterable[Asked], own: str | None = None) -> ByPath:
    """What was asked, without what `own` was asked itself."""
    found = about(one for one in asked if one[0] != own)
    return {path: tuple(sorted(names)) for path, names in sorted(found.items())}


def about(asked: Iterable[Asked]) -> dict[str, set[str]]:
    """The names that are asked about, by path."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, name in asked:
        found[path].add(name)
    return found


def asks(asked: ByPath, changes: Mapping[str, set[str]]) -> bool:
    """Whether anything was asked that `changes` names, by path too."""
    few, many = (asked, changes) if len(asked) < len(changes) else (changes, asked)
    return any(path in many and not changes[path].isdisjoint(asked[path]) for path in few)


class Log:
    """What has been asked so far by whoever asks now, on behalf of the file `own`: of that nothing is written down."""

    def __init__(self) -> None:
        self.asked: set[Asked] = set()
        self.own: str | None = None
        self._same: dict[frozenset[Asked], frozenset[Asked]] = {}

    def add(self, path: str, scope: str) -> None:
        """Something of a scope is read."""
        if path != self.own:
            self.asked.add((path, outermost(scope)))

    @contextmanager
    def apart(self, own: str | None = None) -> Iterator[set[Asked]]:
        """What is asked inside, on behalf of a file; nobody else is told."""
        before, self.asked, self.own = (self.asked, self.own), set(), own
        try:
            yield self.asked
        finally:
            self.asked, self.own = before

    def remembered(
        self, memo: MutableMapping[K, tuple[T, frozenset[Asked]]], key: K, find: Callable[..., T], *arguments: Any
    ) -> T:
        """What `find` says, found out once; whoever wants it has asked what that took."""
        kept = memo.get(key)
        if kept is None:
            kept = self.noted(memo, key, None, find, *arguments)
        if kept[1]:
            self.asked.update(kept[1])
        return kept[0]

    def noted(
        self,
        memo: MutableMapping[K, tuple[T, frozenset[Asked]]],
        key: K,
        own: str | None,
        find: Callable[..., T],
        *arguments: Any,
    ) -> tuple[T, frozenset[Asked]]:
        """What `find` says and what it asks besides `own`, kept in a memo."""
        before, self.asked, self.own = (self.asked, self.own), set(), own
        try:
            found = find(*arguments)
        finally:
            asked = frozenset(self.asked)
            self.asked, self.own = before
        kept = memo[key] = found, self._same.setdefault(asked, asked)  # most are equal: one set for all
        return kept
