"""Where a name of a project is bound and read: a scope of one of its files."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fusionlint.source.facts import Value


class Place(NamedTuple):
    """A scope of a file of the project; scope "" is the module's own."""

    path: str
    scope: str

    @property
    def outer(self) -> Place:
        return Place(self.path, self.scope.rpartition(".")[0])


# The same as plain values: a Place is equal to it, and of many it need not be made.
At: TypeAlias = tuple[str, str]


class Bound(NamedTuple):
    """A Value and the place whose names it is written in."""

    place: Place
    value: Value
