"""What connected files say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fusionlint.source.asked import ByPath
from fusionlint.source.facts import Facts
from fusionlint.source.project import NONE_KNOWN, Known, Place, Project
from fusionlint.source.seen import seen_of
from fusionlint.source.traced import Context, contexts, kernels


class Packed(NamedTuple):
    """What took long to find out about connected files, as plain values: by path how their functions run, and what a
    project's `Known` holds; besides that the functions that are Pallas kernels."""

    contexts: Mapping[str, Mapping[str, Context]]
    names: Mapping[str, Sequence[str | None]]
    perhaps_compiled: Mapping[str, Sequence[str]]
    perhaps_wrapped: Mapping[str, Sequence[str]]
    seen: Mapping[str, bytes]
    asked: Mapping[str, ByPath]
    kernels: tuple[tuple[str, str], ...]


T = TypeVar("T")


class World(NamedTuple):
    """What connected files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]

    def packed(self) -> Packed:
        """`World.unpacked` of it with the same facts is this world again."""
        project = self.project
        known = project.known
        names = project.of_each(known.names, self._names)
        compiled, wrapped = project.compiled_by_path(), project.wrapped_by_path()
        shown = project.of_each(known.seen, lambda path: seen_of(project, path).packed())
        asked = {path: project.resting_on(path) for path in project.files}
        return Packed(self.packed_contexts(), names, compiled, wrapped, shown, asked, self.packed_kernels())

    def packed_contexts(self) -> dict[str, dict[str, Context]]:
        """How functions run, by path and scope."""
        found: dict[str, dict[str, Context]] = defaultdict(dict)
        for place, context in self.contexts.items():
            found[place.path][place.scope] = context
        return dict(found)

    def packed_kernels(self) -> tuple[tuple[str, str], ...]:
        return tuple((place.path, place.scope) for place in kernels(self.project))

    def _names(self, path: str) -> tuple[str | None, ...]:
        return tuple(name for _, name in self.project.calls_in(path))

    @classmethod
    def unpacked(cls, facts: dict[str, Facts], packed: Packed) -> World:
        found = {Place(path, s): context for path, scopes in packed.contexts.items() for s, context in scopes.items()}
        known = known_of(packed, packed.names.keys())
        return cls(Project(facts, known._replace(kernels=frozenset(Place(*one) for one in packed.kernels))), found)


def known_of(packed: Packed, paths: Collection[str]) -> Known:
    """What a world that was packed knew of some of its files."""

    def of(known: Mapping[str, T]) -> Mapping[str, T]:
        return {path: known[path] for path in paths}

    compiled, wrapped = of(packed.perhaps_compiled), of(packed.perhaps_wrapped)
    return Known(of(packed.names), compiled, wrapped, of(packed.seen), of(packed.asked))


def join(facts: dict[str, Facts], known: Known = NONE_KNOWN) -> World:
    """What the files say together; what is `known` of some of them is not found out again."""
    return joined(Project(facts, known))


def joined(project: Project) -> World:
    """What the files of a project say together."""
    return World(project, contexts(project))
