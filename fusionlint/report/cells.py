"""Where in a notebook something is: the cell and the line of that cell, and the line of the file."""

from __future__ import annotations

import re
from typing import NamedTuple

from fusionlint.finding import Problem
from fusionlint.source.texts import bytes_of, is_notebook, text_of


class Spot(NamedTuple):
    """A line as it is shown: `cell` is None in a file that has none."""

    path: str
    cell: int | None
    line: int

    def __str__(self) -> str:
        """`env.py:4`, `train.ipynb:cell 3:4`."""
        return f"{self.path}:{self.line}" if self.cell is None else f"{self.path}:cell {self.cell}:{self.line}"


def spot(path: str, line: int) -> Spot:
    """Where the line of a file's text is shown to be. OSError for a notebook that cannot be read."""
    if not is_notebook(path):
        return Spot(path, None, line)
    from fusionlint.source.notebooks import cell_at

    return Spot(path, *cell_at(text_of(path).decode(), line))


def line_in_file(path: str, line: int) -> int:
    """The line of the file itself, of a notebook that of its JSON: what those show who know nothing of cells."""
    if not is_notebook(path):
        return line
    from fusionlint.source.notebooks import cell_at, line_in_file

    return line_in_file(bytes_of(path), *cell_at(text_of(path).decode(), line))


def message_of(problem: Problem) -> str:
    """What is wrong with a file; other lines that Python names are those of the cell, too."""
    if not is_notebook(problem.path) or not problem.line:
        return problem.message
    return re.sub(
        r"\bon line (\d+)\b", lambda found: f"on line {spot(problem.path, int(found[1])).line}", problem.message
    )


def before(path: str, line: int) -> str:
    """`cell 3, line 4: `, for those whose places are lines of files; "" in a file without cells, and of line 0: that is
    none."""
    where = spot(path, line) if line else None
    return "" if where is None or where.cell is None else f"cell {where.cell}, line {where.line}: "
