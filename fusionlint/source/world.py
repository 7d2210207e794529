"""What connected files say together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from fusionlint.source.facts import Facts
from fusionlint.source.project import Place, Project
from fusionlint.source.traced import Context, contexts


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
        called = {name: [(*place, i) for place, i in calls] for name, calls in self.project.called.items()}
        return dict(found), called

    @classmethod
    def unpacked(cls, facts: dict[str, Facts], packed: tuple[Any, ...]) -> World:
        found, called = packed
        calls = {name: [(Place(path, scope), i) for path, scope, i in calls] for name, calls in called.items()}
        contexts = {Place(path, scope): context for path, scopes in found.items() for scope, context in scopes.items()}
        return cls(Project(facts, calls), contexts)


def join(facts: dict[str, Facts]) -> World:
    """What the files say together."""
    project = Project(facts)
    return World(project, contexts(project))
