"""A step that a fix leaves out, `x = f(a)` where a goes on as it is: the line goes, or says `x = a`.

In: the call that is left out, what of it goes on, and the code that alone reads the result. Out: what that is called
there, and the edits.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import holds, number_in
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.source.tree import Source


def passed_over(
    made: cst.Call, what: cst.BaseExpression, there: cst.CSTNode, source: Source
) -> tuple[str, tuple[Edit, ...]] | None:
    """`made`, the value of a name that only `there` reads, or a part of `there` itself; None where `what` is not to be
    written more than once, and has no name."""
    name = source.assigned_name(made)
    if name is None:
        return (source.code(what), ()) if is_short(what) else None
    if is_short(what) and _means_the_same(what, name, there, source):
        statement = assignment(name, source)
        line = whole_line(statement, source) if statement is not None and len(statement.targets) == 1 else None
        if line is not None:
            return source.code(what), (Edit(line, ""),)
    if isinstance(what, cst.Name) and what.value == name.value:
        return None  # `x = x`
    return name.value, (source.replace(made, source.code(what)),)


def is_short(what: cst.BaseExpression) -> bool:
    """Whether this is read and not computed, `x`, `state.x` or `info["x"]`: it may stand there more than once."""
    parts = (cst.Name, cst.Attribute, cst.Subscript)
    return isinstance(what, parts) and not holds(what, cst.Call, cst.BinaryOperation)


def _means_the_same(what: cst.BaseExpression, name: cst.Name, there: cst.CSTNode, source: Source) -> bool:
    """Whether `what` is the same behind the statement that is left out: a field or an element in the next one."""
    if not is_same_at(what, there, source, dropped=name):
        return False
    return isinstance(what, cst.Name) or _is_next(name, there, source)


def _is_next(name: cst.Name, there: cst.CSTNode, source: Source) -> bool:
    line = source.nearest(name, cst.SimpleStatementLine)
    block = source.parent(line) if line is not None else None
    if not isinstance(block, cst.IndentedBlock):
        return False
    place = number_in(block.body, line)
    behind = block.body[place + 1] if place + 1 < len(block.body) else None
    return isinstance(behind, cst.SimpleStatementLine) and behind in source.ancestors(there)
