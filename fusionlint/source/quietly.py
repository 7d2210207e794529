"""Reading a user's code without its warnings: an invalid escape in it is not ours to show."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly() -> Iterator[None]:
    """Inside, Python says nothing of the text that it compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
