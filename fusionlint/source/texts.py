"""The text of files: what is on disk, but for a text that an editor has and has not saved; of a notebook its code."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# One at most, of `check -`. Everything that reads a file asks here, so that all of a run sees the same text.
_UNSAVED: dict[str, bytes] = {}


def text_of(path: Path | str) -> bytes:
    """The bytes of a file, of a notebook those of its code. OSError where there are none."""
    data = bytes_of(path)
    if not is_notebook(path):
        return data
    from fusionlint.source.notebooks import code_of

    try:
        return code_of(data)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None


def bytes_of(path: Path | str) -> bytes:
    """The bytes of a file as it is. OSError where there are none."""
    unsaved = _UNSAVED.get(str(path))
    if unsaved is not None:
        return unsaved
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - of thousands of files, half the time is pathlib's
        return file.read()


def file_of(path: Path | str, text: bytes) -> bytes:
    """The bytes of a file that holds `text`: of a notebook with that code."""
    if not is_notebook(path):
        return text
    from fusionlint.source.notebooks import with_code

    return with_code(bytes_of(path), text)


def is_notebook(path: Path | str) -> bool:
    """Whether a file is a notebook, by its name."""
    return str(path).endswith(".ipynb")


@contextmanager
def unsaved(path: Path, data: bytes) -> Iterator[None]:
    """Inside, the file at `path` holds `data`."""
    _UNSAVED[str(path)] = data
    try:
        yield
    finally:
        del _UNSAVED[str(path)]
