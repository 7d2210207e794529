"""What folders hold, listed once a run, and what follows from that alone.

In: the path of a folder. Out: the names in it that say which modules there are and where a project begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# By one of these others install what lies beside it; one of those that follow lies where a project begins.
PACKAGING = ("pyproject.toml", "setup.py")
ROOT_FILES = (".git", *PACKAGING)
# What was listed since `look_again`: asked once a folder, which is cheaper than to ask for each file.
_LISTED: dict[str, frozenset[str]] = {}
# How to forget what was found out since.
_FORGOTTEN: list[Callable[[], None]] = []


def until_next_look(function: Function) -> Function:
    """Remembers what `function` says of each argument, until `look_again`."""
    known = cache(function)
    _FORGOTTEN.append(known.cache_clear)
    return cast("Function", known)


def look_again() -> None:
    """Forget what folders hold: a run sees them as they are."""
    _LISTED.clear()
    for forget in _FORGOTTEN:
        forget()


def listed() -> dict[str, str]:
    """The folders that were looked into since `look_again`, and what of their content decided anything."""
    return {folder: listing(folder) for folder in _LISTED}


def listing(folder: str) -> str:
    """What of a folder's content says which modules there are and where a project begins, as one text."""
    return "/".join(sorted(entries(folder)))


def entries(folder: str) -> frozenset[str]:
    """The names in a folder that matter; none where it cannot be read."""
    if folder not in _LISTED:
        _LISTED[folder] = frozenset(filter(_matters, _names_in(folder)))
    return _LISTED[folder]


def _matters(name: str) -> bool:
    return name.endswith((".py", ".pyi")) or name.isidentifier() or name in ROOT_FILES


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return [entry.name for entry in found]
    except OSError:
        return []
