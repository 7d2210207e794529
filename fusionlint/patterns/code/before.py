"""Lines before a statement, for what a fix needs twice, `sums = jnp.cumsum(p)`, and behind a loop, for what it made.

In: a node of a Source. Out: a name that is free there, and the edits that write the lines; None where an expression may
run another number of times than its statement, or where more stands in a line with that.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.layout import end_of
from fusionlint.source.tree import Source


def free_name(wanted: str, node: cst.CSTNode, source: Source) -> str:
    """A name that means nothing at `node` yet."""
    scope, names = source.scope(node), (wanted, *(f"{wanted}_{number}" for number in range(2, 10)))
    free = (name for name in names if source.facts.lookup(scope, name) is None and not hasattr(builtins, name))
    return next(free, f"{wanted}_")


def line_before(node: cst.CSTNode, text: str, source: Source) -> Edit | None:
    """The edit that writes `text` in a line before the statement of `node`, in the same block."""
    return lines_before(node, (text,), source)


def lines_before(node: cst.CSTNode, lines: Sequence[str], source: Source) -> Edit | None:
    """The same, of several lines."""
    for above in source.ancestors(node):
        if isinstance(above, cst.Lambda | cst.BooleanOperation | cst.IfExp | cst.BaseComp):
            return None
        if isinstance(above, cst.BaseSmallStatement):
            line = source.parent(above)
            is_one = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
            return _before(above, lines, source) if is_one and source.function(node) is not None else None
    return None


def _before(statement: cst.BaseSmallStatement, lines: Sequence[str], source: Source) -> Edit | None:
    edits = lines_beside(statement, source, before=lines)
    return edits[0] if edits else None


def with_comments(number: int, source: Source) -> int:
    """The first line of the comments that stand right above line `number`, as far to the right as it; else that."""
    line = source.line(number)
    blanks = line[: len(line) - len(line.lstrip())]
    while number > 1 and source.line(number - 1).startswith(f"{blanks}#"):
        number -= 1
    return number


def lines_beside(
    statement: cst.CSTNode, source: Source, *, before: Sequence[str] = (), behind: Sequence[str] = ()
) -> tuple[Edit, ...] | None:
    """The edits that write lines before and behind a statement, a loop say, in its block; None where more stands in the
    line that it begins in, or no line follows."""
    where = source.location(statement)
    head = source.line(where.line)
    blanks, end = head[: where.column - 1], end_of(head)
    if blanks.strip() or (behind and not source.line(where.end_line).endswith("\n")):
        return None
    first = where._replace(end_line=where.line, end_column=where.column)
    last = where._replace(line=where.end_line + 1, column=1, end_line=where.end_line + 1, end_column=1)
    edits = (
        Edit(first, "".join(f"{line}{end}{blanks}" for line in before)),
        Edit(last, "".join(f"{blanks}{line}{end}" for line in behind)),
    )
    return tuple(edit for edit in edits if edit.text)
