"""(name, harm, summary) of every rule -> the list that `fusionlint rule` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_HEAD = ("rule", "costs", "summary")
_WIDE = 100  # in less there is no room for what a rule costs


def rules_text(rules: Sequence[tuple[str, str, str]], width: int | None) -> str:
    """A row for each rule, in a pipe nothing else; for a terminal of `width` columns cut to it, between a head and what
    to do next."""
    shown = list(rules) if width is None else [_HEAD, *rules]
    names, harms = (max(len(rule[column]) for rule in shown) for column in (0, 1))
    is_narrow = width is not None and width < _WIDE
    costs = ["" if is_narrow else f"{harm:{harms}}  " for _, harm, _ in shown]
    rows = [
        _cut(f"{name:{names}}  {cost}{summary}", width) for (name, _, summary), cost in zip(shown, costs, strict=True)
    ]
    if width is not None:
        rows.append(_cut(f"{len(rules)} rules. `fusionlint rule NAME` shows one.", width))
    return "".join(f"{row}\n" for row in rows)


def wrapped(text: str, width: int) -> str:
    """Every line of the text in `width` columns, what goes on below its beginning."""
    return "".join(
        textwrap.fill(line, width, subsequent_indent=" " * (len(line) - len(line.lstrip()))) + "\n"
        for line in text.splitlines()
    )


def _cut(row: str, width: int | None) -> str:
    return row if width is None or len(row) <= width else f"{row[: width - 3]}..."
