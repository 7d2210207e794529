"""(name, harm, summary) of every rule -> the list that `fusionlint rule` prints."""

from __future__ import annotations

from collections.abc import Sequence


def rules_text(rules: Sequence[tuple[str, str, str]], width: int | None) -> str:
    """A row for each rule, cut to `width` characters if there is such a limit."""
    names, harms = (max(len(rule[column]) for rule in rules) for column in (0, 1))
    return "".join(_cut(f"{name:{names}}  {harm:{harms}}  {summary}", width) + "\n" for name, harm, summary in rules)


def _cut(row: str, width: int | None) -> str:
    return row if width is None or len(row) <= width else f"{row[: width - 3]}..."
