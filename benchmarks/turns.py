"""Processes that share a device: many compile at once, one alone runs what is timed."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(lock: Path, kind: int) -> Iterator[None]:
    """With `fcntl.LOCK_SH` those who compile share the device; who times something waits with `fcntl.LOCK_EX` until
    nobody compiles, and has it alone."""
    with lock.open("a") as held:
        fcntl.flock(held, kind)
        yield
