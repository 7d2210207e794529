"""`map` over files, in several processes, which know what they all share and end with the run."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
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


@contextmanager
def sharing(value: Any) -> Iterator[None]:
    """Inside, `value` is what the functions of `map_files` share, in whatever process."""
    global _shared
    _shared = value
    try:
        yield
    finally:
        _shared = None


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
    found: list[tuple[str, R]] = []
    if jobs == 1 or len(paths) < WORTH_A_POOL:
        meanwhile()
        for path in paths:
            found.append(function(path))
            progress(len(found), len(paths))
        return found
    chunk = max(1, len(paths) // (jobs * 64))
    with _pool(jobs) as pool:
        # Not `pool.map`: what it cancels when the user interrupts, the pool's own thread then stumbles over.
        parts = [pool.submit(_several, function, paths[i : i + chunk]) for i in range(0, len(paths), chunk)]
        meanwhile()
        try:
            for part in parts:
                found += part.result()
                progress(len(found), len(paths))
        except BrokenProcessPool:
            pass
    done = {path for path, _ in found}
    return found + [_alone(function, path, died) for path in paths if path not in done]


def _several(function: Function[R], paths: Sequence[str]) -> list[tuple[str, R]]:
    return [function(path) for path in paths]


def _alone(function: Function[R], path: str, died: Callable[[str], R]) -> tuple[str, R]:
    """`function` in a process of its own, which may die."""
    with _pool(1) as pool:
        try:
            return pool.submit(function, path).result()
        except BrokenProcessPool:
            return path, died(path)


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that know `_shared`, and leave at once when the user interrupts."""
    context = get_context("fork" if _can_copy() else "spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(_handed_over(),))
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        pool.shutdown(wait=False)
        raise
    pool.shutdown()


def _handed_over() -> Any:
    """What a new process has to be sent: nothing, where it begins as a copy of this one."""
    return None if _can_copy() else _shared


def _can_copy() -> bool:
    """Whether a process can begin as a copy of this one: not where jax has threads of its own."""
    return sys.platform == "linux" and "jax" not in sys.modules


def _begin(value: Any) -> None:
    global _shared
    if value is not None:
        _shared = value
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_run, daemon=True).start()


def _end_with_the_run() -> None:
    """Ends this process when the one that started it is gone, however that came: nobody would stop it."""
    if run := parent_process():
        wait([run.sentinel])
        os._exit(1)
