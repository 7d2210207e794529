"""What connected files say together."""

from __future__ import annotations

from dataclasses import dataclass

from fusionlint.source.facts import Facts
from fusionlint.source.project import Place, Project
from fusionlint.source.traced import Context, contexts


@dataclass(frozen=True, slots=True)
class World:
    """What connected files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]


def join(facts: dict[str, Facts]) -> World:
    """What the files say together."""
    project = Project(facts)
    return World(project, contexts(project))
