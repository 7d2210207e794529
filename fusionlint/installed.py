"""What is installed beside fusionlint, by the names of folders and what is written there.

importlib.metadata says all of this, and is asked where there is something to say; but to import it (it reads e-mail
headers) takes a tenth of the time in which a file is checked.
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entry_points(group: str) -> list[EntryPoint]:
    """What installed packages name under `group`. What lies in the working folder is not installed: it may be what is
    checked."""
    if not any(group.encode() in _text(f"{info}/entry_points.txt") for info in _infos()):
        return []
    from importlib.metadata import distributions

    return [
        point
        for distribution in distributions(path=[*_folders()])
        for point in distribution.entry_points
        if point.group == group
    ]


def version(name: str) -> str:
    """The version of an installed package. importlib.metadata.PackageNotFoundError without one."""
    names = (info.rpartition(os.sep)[2] for info in _infos())
    found = next((info for info in names if info.startswith(f"{name}-")), None)
    if found is not None:
        return found.split("-")[1].removesuffix(".dist")
    from importlib import metadata

    return metadata.version(name)


@functools.cache
def _folders() -> tuple[str, ...]:
    return tuple(folder for folder in sys.path if Path(folder).resolve() != Path.cwd())


@functools.cache
def _infos() -> tuple[str, ...]:
    """The folders in which installers leave what they know of a package. pathlib takes four times as long to look."""
    found: list[str] = []
    for folder in _folders():
        with suppress(OSError):
            found += (entry.path for entry in os.scandir(folder) if entry.name.endswith("-info"))
    return tuple(found)


def _text(path: str) -> bytes:
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - one for each package that is installed
        return file.read()
    return b""
