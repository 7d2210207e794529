"""`map` over files, by this process or by several, which know what they all share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

# Below this many files a pool costs more than it saves.
WORTH_A_POOL = 24

# Told again and again how many files of how many have been looked into.
Progress = Callable[[int, int], None]
R = TypeVar("R")
Function = Callable[[str], tuple[str, R]]

# What a process of a run works with: set once a run, and inherited by each process of a pool.
_shared: Any = None


def shared() -> Any:
    """What `sharing` was told."""
    return _shared


def share(value: Any) -> None:
    """What `shared` says from now on."""
    global _shared
    _shared = value


@contextmanager
def sharing(value: Any) -> Iterator[None]:
    """Inside, `value` is what the functions of `map_files` share, in whatever process."""
    share(value)
    try:
        yield
    finally:
        share(None)


def silent(_done: int, _of: int) -> None:
    """Nobody wants to know."""


def _idle() -> None:
    """Nothing else is to be done."""


def map_files(
    function: Function[R],
    paths: Sequence[str],
    jobs: int,
    died: Callable[[str], R],
    progress: Progress = silent,
    meanwhile: Callable[[], None] = _idle,
) -> list[tuple[str, R]]:
    """`function` of each path, in `jobs` processes where there is more than one; `died` is what comes of a file on
    which a process dies. This process does `meanwhile` before it waits for the others."""
    if jobs > 1 and len(paths) >= WORTH_A_POOL:
        from fusionlint.source.pool import map_in_pool  # to import what makes processes takes longer than most files

        return map_in_pool(function, paths, jobs, died, progress, meanwhile)
    meanwhile()
    found: list[tuple[str, R]] = []
    for path in paths:
        found.append(function(path))
        progress(len(found), len(paths))
    return found
