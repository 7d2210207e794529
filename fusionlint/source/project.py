"""The facts of many files, joined: what a name means (`names.py`), what is compiled (`compiled.py`), who calls what.

In: every file's `Facts`. Out: `Project`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

from fusionlint.source.asked import CALLERS, ITS_CALLS, Asked, ByPath, by_path
from fusionlint.source.compiled import Compiled
from fusionlint.source.facts import Call, RawCall, RawValue, Value, unpacked, unpacked_call
from fusionlint.source.names import Memo
from fusionlint.source.places import Place

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")
# The calls of so many names are found one by one.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Project(Compiled):
    """Answers about names and calls, and what others found out about the project."""

    answers: Memo[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)
    rests: dict[str, frozenset[Asked]] = field(default_factory=dict, repr=False)
    kept: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)
    _calls: dict[str, list[tuple[Place, str | None]]] = field(default_factory=dict, repr=False)
    _sought: dict[str, list[tuple[Place, int]]] = field(default_factory=dict, repr=False)
    _resting_on: dict[str, list[ByPath]] = field(default_factory=dict, repr=False)

    def calls_of(self, name: str) -> list[tuple[Place, Call]]:
        """The calls of what is called `name`, each with the scope that it stands in."""
        return [(place, unpacked_call(self.files[place.path].raw.calls[i])) for place, i in self._called_by(name)]

    def calls_within(self, place: Place) -> Iterator[tuple[Place, Call]]:
        """The calls in the function or class at `place` and in what is defined in it, each with its scope."""
        calls = self.files[place.path].calls_within(place.scope)
        return ((Place(place.path, call.scope), call) for call in calls)

    def callers(self, name: str) -> list[Place]:
        """The scopes that call what is called `name`, one for each call."""
        return [place for place, _ in self._called_by(name)]

    def _called_by(self, name: str) -> Sequence[tuple[Place, int]]:
        """The calls of what is called `name`. A few names are looked for by themselves where those of most calls are
        known: to sort the calls of a large project takes longer."""
        found = self._all_called_by(name)
        self.log.asked.add((CALLERS, name))
        for place, _ in found:
            self.log.add(*place)
        return found

    def _all_called_by(self, name: str) -> Sequence[tuple[Place, int]]:
        known = self.known.files
        if "called" in self.__dict__ or 2 * len(known) < len(self.files) or len(self._sought) > _FEW:
            return self.called.get(name, ())
        if name not in self._sought:
            paths = (path for path in self.files if path not in known or name in known[path].names)
            calls = ((i, call) for path in paths for i, call in enumerate(self._all_calls_in(path)))
            self._sought[name] = [(place, i) for i, (place, found) in calls if found == name]
        return self._sought[name]

    @cached_property
    def called(self) -> dict[str, list[tuple[Place, int]]]:
        """Qualified name -> the calls of it, each as its scope and its place among the file's calls."""
        found: dict[str, list[tuple[Place, int]]] = {}
        for path in self.files:
            for i, (place, name) in enumerate(self._all_calls_in(path)):
                if name is not None:
                    found.setdefault(name, []).append((place, i))
        return found

    def calls_in(self, path: str) -> list[tuple[Place, str | None]]:
        """The scope of each call of a file, and the qualified name of what it calls."""
        if path != self.log.own:
            self.log.asked.add((path, ITS_CALLS))
        return self._all_calls_in(path)

    def _all_calls_in(self, path: str) -> list[tuple[Place, str | None]]:
        if path not in self._calls:
            self._calls[path] = self.resting(path, lambda: list(self._calls_in(path)))
        return self._calls[path]

    def resting(self, path: str, find: Callable[[], T]) -> T:
        """What `find` says of a file; what of other files it rests on is kept with the file."""
        with self.log.apart(path) as asked:
            found = find()
        self._resting_on.setdefault(path, []).append(by_path(asked))
        return found

    def resting_on(self, path: str) -> ByPath:
        """What of other files that rests on which was said of one by `resting`."""
        if path in self.known.files:
            return self.known.asked[path]
        return by_path((where, name) for one in self._resting_on.get(path, ()) for where in one for name in one[where])

    def named_calls(self, path: str) -> Iterator[tuple[Place, str | None, RawCall]]:
        """The same with the calls, as the file's facts keep them."""
        for (place, name), call in zip(self.calls_in(path), self.files[path].raw.calls, strict=True):
            yield place, name, call

    def _calls_in(self, path: str) -> Iterator[tuple[Place, str | None]]:
        if path in self.known.files:
            places = {scope: Place(path, scope) for _, scope, _, _ in self.files[path].raw.calls}
            calls = zip(self.files[path].raw.calls, self.known.files[path].names, strict=True)
            yield from ((places[scope], name) for (_, scope, _, _), name in calls)
            return
        scopes: dict[str, tuple[Place, dict[RawValue, str | None]]] = {}
        for (called, _, _), scope, _, _ in self.files[path].raw.calls:
            if scope not in scopes:
                scopes[scope] = Place(path, scope), {}
            place, names = scopes[scope]
            if called not in names:
                names[called] = self._name_called(place, called)
            yield place, names[called]

    def _name_called(self, place: Place, called: RawValue) -> str | None:
        if isinstance(called, str):
            return called if called.startswith(".") else self.qualified_name(place, called)
        return self.callee(place, Value("", unpacked(called))) if called else None


def found_once(function: F) -> F:
    """For what a project alone says and other answers are made of: found out once, and there as long as the project."""

    @wraps(function)
    def answer(project: Project) -> Any:
        if function not in project.kept:
            project.kept[function] = function(project)
        return project.kept[function]

    return cast("F", answer)
