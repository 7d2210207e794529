"""A line before a statement, for what a fix needs twice: `sums = jnp.cumsum(p)`.

In: an expression of a Source. Out: a name that is free there, and the edit that writes the line; None where the
expression may run another number of times than its statement, or where more stands in a line with that.
"""

from __future__ import annotations

import builtins

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
    for above in source.ancestors(node):
        if isinstance(above, cst.Lambda | cst.BooleanOperation | cst.IfExp | cst.BaseComp):
            return None
        if isinstance(above, cst.BaseSmallStatement):
            line = source.parent(above)
            is_one = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
            return _before(above, text, source) if is_one and source.function(node) is not None else None
    return None


def _before(statement: cst.BaseSmallStatement, text: str, source: Source) -> Edit | None:
    where = source.location(statement)
    line = source.line(where.line)
    blanks = line[: where.column - 1]
    end = end_of(line)
    here = where._replace(end_line=where.line, end_column=where.column)
    return Edit(here, f"{text}{end}{blanks}") if not blanks.strip() else None
