"""Where a project is. Imports nothing of ours."""

from __future__ import annotations

from pathlib import Path


def top_folder(start: Path) -> Path:
    """The nearest folder with a .git from `start` upwards, else `start`."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)
