"""What the files of a run say together, and those of their packages that they import from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fusionlint.source.facts import Facts
from fusionlint.source.files import imported_files
from fusionlint.source.project import Place, Project
from fusionlint.source.read import read_file
from fusionlint.source.traced import Context, contexts

Reader = Callable[[Path], "Facts | None"]


@dataclass(frozen=True, slots=True)
class World:
    """What the files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]


def _read(path: Path) -> Facts | None:
    read = read_file(path)
    return read if isinstance(read, Facts) else None


def join(facts: dict[str, Facts], read: Reader = _read) -> World:
    """The files to check, joined with the files of their packages that they import from, which are not checked: those
    are read by `read`, which gives None for what cannot be read."""
    project = Project({**facts, **_neighbours(facts, read)})
    return World(project, contexts(project))


def _neighbours(facts: dict[str, Facts], read: Reader) -> dict[str, Facts]:
    """Facts of files that are not checked but say what imported names mean."""
    known = {str(Path(path).resolve()) for path in facts}
    found: dict[str, Facts] = {}
    todo = list(facts.values())
    while todo:
        one = todo.pop()
        for path in imported_files(Path(one.path), one.imports()):
            if str(path) not in known:
                known.add(str(path))
                other = read(path)
                if other is not None:
                    found[other.path] = other
                    todo.append(other)
    return found
