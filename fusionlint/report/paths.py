"""Where a file is for those who read it elsewhere: a path from the repository's top folder."""

from __future__ import annotations

from pathlib import Path

from fusionlint.folders import top_folder as top_folder


def from_top(path: str, top: Path) -> str | None:
    """`src/env.py`, with slashes on every system; None for what is not below `top`."""
    full = Path(path).resolve()
    return full.relative_to(top).as_posix() if full.is_relative_to(top) else None
