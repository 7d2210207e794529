"""The bytes of files: those on disk, but for a text that an editor has and has not saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# One at most, of `check -`. Everything that reads a file asks here, so that all of a run sees the same text.
_UNSAVED: dict[str, bytes] = {}


def text_of(path: Path | str) -> bytes:
    """The bytes of a file. OSError where there are none."""
    unsaved = _UNSAVED.get(str(path))
    if unsaved is not None:
        return unsaved
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - of thousands of files, half the time is pathlib's
        return file.read()


@contextmanager
def unsaved(path: Path, data: bytes) -> Iterator[None]:
    """Inside, the file at `path` holds `data`."""
    _UNSAVED[str(path)] = data
    try:
        yield
    finally:
        del _UNSAVED[str(path)]
