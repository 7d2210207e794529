"""Where a file is for those who read it elsewhere: a path from the repository's top folder."""

from __future__ import annotations

from pathlib import Path


def top_folder(start: Path) -> Path:
    """The nearest folder with a .git from `start` upwards, else `start`."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def from_top(path: str, top: Path) -> str | None:
    """`src/env.py`, with slashes on every system; None for what is not below `top`."""
    full = Path(path).resolve()
    return full.relative_to(top).as_posix() if full.is_relative_to(top) else None
