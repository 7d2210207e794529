"""What lines as in a .gitignore leave out.

In: lines. Out: which paths they name; whether one of them can be read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.lazily import regex

if TYPE_CHECKING:
    import pathspec

# How a group with a name begins: the expressions of pathspec all call theirs the same.
_GROUP = regex(r"\(\?P<\w+>")


class Ignored(NamedTuple):
    """What lines as in a .gitignore leave out. `perhaps` finds something in each path that one of them leaves out: most
    are of no concern to any, and to ask one line after the other takes half the time of a run that finds all as it was.
    """

    spec: pathspec.GitIgnoreSpec
    perhaps: re.Pattern[str]

    def holds(self, path: str) -> bool:
        """Whether a path is left out; that of a folder ends in a slash."""
        return self.perhaps.search(path) is not None and self.spec.match_file(path)


def is_pattern(line: str) -> bool:
    """Whether a line can be read as one of a .gitignore."""
    try:
        patterns((line,))
    except (ValueError, re.error):
        return False
    return True


def patterns(lines: Iterable[str]) -> Ignored | None:
    """What the lines leave out, None where that is nothing. ValueError, or re.error, for a line that is no
    pattern."""
    import pathspec  # an editor asks about one file, and waits for it

    spec = pathspec.GitIgnoreSpec.from_lines(lines)
    parts = [_GROUP.sub("(?:", one.regex.pattern) for one in spec.patterns if one.include and one.regex]
    return Ignored(spec, re.compile("|".join(f"(?:{part})" for part in parts))) if parts else None
