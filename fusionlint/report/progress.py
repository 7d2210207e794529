"""How far a run is: one line on a terminal, written over and over; nothing elsewhere."""

from __future__ import annotations

import math
import threading
import time
from typing import TextIO


class Progress:
    """`compiling 3 of 7 ...` on `stream`, if that is a terminal; `done` may be called from any thread."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total, self.stream = total, stream
        self.ended = 0
        self.lock = threading.Lock()
        self.shown = total > 0 and stream.isatty()

    def done(self) -> None:
        """One more has ended."""
        with self.lock:
            self.ended += 1
            self._write()

    def show(self) -> None:
        """Write the line, or take it away once all is done."""
        with self.lock:
            self._write()

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        with self.lock:
            if self.shown:
                self.stream.write("\r\x1b[K")
                self.stream.flush()

    def _write(self) -> None:
        if self.shown:
            left = self.ended < self.total
            self.stream.write(f"\r\x1b[Kcompiling {self.ended + 1} of {self.total} ..." if left else "\r\x1b[K")
            self.stream.flush()


class Counter:
    """`checking 120 of 2395 files ...` on `stream`, if that is a terminal and the run takes longer than a second."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.next = time.monotonic() + 1 if stream.isatty() else math.inf
        self.is_shown = False

    def __enter__(self) -> Counter:
        return self

    def __call__(self, done: int, of: int) -> None:
        """So many files have been looked into."""
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.1
            self.is_shown = True
            self.stream.write(f"\r\x1b[Kchecking {done} of {of} files ...")
            self.stream.flush()

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
