"""Folders to look into."""

from __future__ import annotations

from pathlib import Path


def tree(root: Path, *names: str) -> None:
    """Empty files below `root`, by their paths."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
