"""What connected files say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from fusionlint.source.asked import ByPath
from fusionlint.source.facts import Facts
from fusionlint.source.kept import Heard, Joined
from fusionlint.source.of_file import NONE_KNOWN, Known, OfFile
from fusionlint.source.parts import Parts, packed_parts
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project
from fusionlint.source.seen import seen_of
from fusionlint.source.traced import Context, contexts, kernels


class Packed(NamedTuple):
    """What took long to find out about connected files, as plain values: what is known of each and what of the others
    that rests on, by path how their functions run, and which are Pallas kernels."""

    files: Parts[OfFile]
    asked: Parts[ByPath]
    contexts: Mapping[str, Mapping[str, Context]]
    kernels: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, kept: Joined) -> Packed:
        """What the cache has kept."""
        return cls(Parts(kept.files, OfFile._make), Parts(kept.asked), *kept.together)

    def kept(self, heard: Mapping[str, Heard]) -> Joined:
        """What the cache keeps; `heard` is what each file said."""
        return Joined({**heard}, {**self.files.packed}, {**self.asked.packed}, (self.contexts, self.kernels))


class World(NamedTuple):
    """What connected files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: Mapping[At, Context]

    def packed(self) -> Packed:
        """`World.unpacked` of it with the same facts is this world again."""
        project = self.project
        known, known_asked = project.known.files, project.known.asked
        found = {
            path: (
                tuple(name for _, name in project.calls_in(path)),
                tuple(facts.perhaps_compiled),
                tuple(facts.perhaps_wrapped),
                seen_of(project, path).packed(),
            )
            for path, facts in project.files.items()
            if path not in known
        }
        there = [path for path in project.files if path in known]
        files = {path: known.packed[path] for path in there} | packed_parts(found)
        asked = {path: known_asked.packed[path] for path in there}
        asked |= packed_parts({path: project.resting_on(path) for path in found})
        return Packed(Parts(files, OfFile._make), Parts(asked), self.packed_contexts(), self.packed_kernels())

    def packed_contexts(self) -> dict[str, dict[str, Context]]:
        """How functions run, by path and scope."""
        found: dict[str, dict[str, Context]] = defaultdict(dict)
        for (path, scope), context in self.contexts.items():
            found[path][scope] = context
        return dict(found)

    def packed_kernels(self) -> tuple[tuple[str, str], ...]:
        return tuple((place.path, place.scope) for place in kernels(self.project))

    @classmethod
    def unpacked(cls, facts: dict[str, Facts], packed: Packed) -> World:
        found = {(path, s): context for path, scopes in packed.contexts.items() for s, context in scopes.items()}
        known = Known(packed.files, packed.asked, frozenset(Place(*one) for one in packed.kernels))
        return cls(Project(facts, known=known), found)


def join(facts: dict[str, Facts], known: Known = NONE_KNOWN) -> World:
    """What the files say together; what is `known` of some of them is not found out again."""
    return joined(Project(facts, known=known))


def joined(project: Project) -> World:
    """What the files of a project say together."""
    return World(project, contexts(project))
