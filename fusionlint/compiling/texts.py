"""Texts that Python imports in place of what files hold. Runs in a worker: jobs with texts have a process each."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType


@contextmanager
def in_place_of_files(texts: Mapping[str, str]) -> Iterator[None]:
    """Inside, a module whose file is one of `texts`, by its resolved path, is made of that text. Modules that are
    imported already stay what they are."""
    if not texts:
        yield
        return
    of_files = SourceFileLoader.get_code

    def code_of(loader: SourceFileLoader, name: str) -> CodeType | None:
        path = loader.get_filename(name)
        text = texts.get(str(Path(path).resolve()))
        if text is None:
            return of_files(loader, name)
        # What reads its own source (inspect does for decorators) finds this one; without a time it is never looked up.
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        return loader.source_to_code(text.encode(), path)

    SourceFileLoader.get_code = code_of  # type: ignore[assignment,method-assign]  # asked for all modules
    try:
        yield
    finally:
        SourceFileLoader.get_code = of_files  # type: ignore[method-assign]
