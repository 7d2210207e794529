"""The README and the pages of docs/, which show what fusionlint prints."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
# All of it, the README first.
SHOWN = "\n".join(PAGES.values())
