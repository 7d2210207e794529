"""What the files of a run say together, and those of their packages that they import from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fusionlint.source.facts import Facts
from fusionlint.source.files import imported_files
from fusionlint.source.project import Place, Project
from fusionlint.source.traced import Context, contexts

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class World:
    """What connected files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]


def join(facts: dict[str, Facts]) -> World:
    """What the files say together."""
    project = Project(facts)
    return World(project, contexts(project))


def neighbours(
    files: Mapping[str, F], imports: Callable[[F], Iterable[str]], read: Callable[[Path], F | None]
) -> dict[str, F]:
    """The files that are not among `files` but say what names mean that these import; of their own packages alone.

    `imports` gives the absolute names that a file imports, `read` None for a file that cannot be read.
    """
    known = {str(Path(path).resolve()) for path in files}
    found: dict[str, F] = {}
    todo = [*files.items()]
    while todo:
        path, one = todo.pop()
        for other in imported_files(Path(path), imports(one)):
            if str(other) not in known:
                known.add(str(other))
                if (new := read(other)) is not None:
                    found[str(other)] = new
                    todo.append((str(other), new))
    return found
