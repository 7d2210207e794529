"""`map` over files in several processes, which end with the run."""

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
from typing import Any

from fusionlint.source.processes import Function, Progress, R, share, shared


def map_in_pool(
    function: Function[R],
    paths: Sequence[str],
    jobs: int,
    died: Callable[[str], R],
    progress: Progress,
    meanwhile: Callable[[], None],
) -> list[tuple[str, R]]:
    """What `map_files` says, in `jobs` processes."""
    found: list[tuple[str, R]] = []
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
    """Processes that know what `shared` says, and leave at once when the user interrupts."""
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
    return None if _can_copy() else shared()


def _can_copy() -> bool:
    """Whether a process can begin as a copy of this one: not where jax has threads of its own."""
    return sys.platform == "linux" and "jax" not in sys.modules


def _begin(value: Any) -> None:
    if value is not None:
        share(value)
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_run, daemon=True).start()


def _end_with_the_run() -> None:
    """Ends this process when the one that started it is gone, however that came: nobody would stop it."""
    if run := parent_process():
        wait([run.sentinel])
        os._exit(1)
