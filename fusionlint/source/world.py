"""What connected files say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlint.source.facts import Facts
from fusionlint.source.project import Known, Place, Project
from fusionlint.source.traced import Context, contexts, kernels

Names = Mapping[str, Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class World:
    """What connected files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]

    def packed(self) -> tuple[Any, ...]:
        """What took long to find out, as plain values; `World.unpacked` with the same facts is this world again."""
        found: dict[str, dict[str, Context]] = defaultdict(dict)
        for place, context in self.contexts.items():
            found[place.path][place.scope] = context
        names = {path: tuple(name for _, name in self.project.calls_in(path)) for path in self.project.files}
        pallas = tuple(sorted(map(tuple, kernels(self.project))))
        return dict(found), names, tuple(sorted(self.project.perhaps_compiled)), pallas

    @classmethod
    def unpacked(cls, facts: dict[str, Facts], packed: tuple[Any, ...]) -> World:
        found, names, perhaps_compiled, pallas = packed
        known = Known(names, frozenset(perhaps_compiled), frozenset(Place(*place) for place in pallas))
        contexts = {Place(path, scope): context for path, scopes in found.items() for scope, context in scopes.items()}
        return cls(Project(facts, known), contexts)


def names_called(packed: tuple[Any, ...]) -> Names:
    """Of a world that was packed what each file's calls call, in their order."""
    return dict(packed[1])


def join(facts: dict[str, Facts], names: Names | None = None) -> World:
    """What the files say together; `names` of what the calls of some of them call are known."""
    project = Project(facts, Known(names or {}))
    return World(project, contexts(project))
