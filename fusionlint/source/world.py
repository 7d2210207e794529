"""What connected files say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from fusionlint.source.facts import Facts
from fusionlint.source.project import NONE_KNOWN, Known, Place, Project
from fusionlint.source.seen import seen
from fusionlint.source.traced import Context, contexts, kernels


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
        known = self.project.known
        names = {path: known.names.get(path) or self._names(path) for path in self.project.files}
        compiled = {
            path: known.perhaps_compiled.get(path) or tuple(facts.perhaps_compiled)
            for path, facts in self.project.files.items()
        }
        shown = {path: known.seen.get(path) or one.packed() for path, one in seen(self.project).items()}
        return dict(found), names, compiled, shown, tuple(map(tuple, kernels(self.project)))

    def _names(self, path: str) -> tuple[str | None, ...]:
        return tuple(name for _, name in self.project.calls_in(path))

    @classmethod
    def unpacked(cls, facts: dict[str, Facts], packed: tuple[Any, ...]) -> World:
        found, names, compiled, shown, pallas = packed
        contexts = {Place(path, scope): context for path, scopes in found.items() for scope, context in scopes.items()}
        return cls(Project(facts, Known(names, compiled, shown, frozenset(Place(*one) for one in pallas))), contexts)


def known_of(packed: tuple[Any, ...], paths: Collection[str]) -> Known:
    """What a world that was packed knew of some of its files."""
    _, *by_path, _ = packed
    names, compiled, shown = ({path: of_all[path] for path in paths} for of_all in by_path)
    return Known(names, compiled, shown)


def join(facts: dict[str, Facts], known: Known = NONE_KNOWN) -> World:
    """What the files say together; what is `known` of some of them is not found out again."""
    project = Project(facts, known)
    return World(project, contexts(project))
