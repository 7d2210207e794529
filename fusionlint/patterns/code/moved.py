"""What a fix computes at another place of the same function: where it is read, or where it was made.

In: expressions of a Source. Out: whether they mean the same there, and the lines that make what nothing else reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.source.tree import Source


def is_same_before(node: cst.CSTNode, there: cst.CSTNode, source: Source) -> bool:
    """Whether each name that `node` reads has the same value at `there`, in the same function, which runs earlier."""
    if source.function(node) is not source.function(there):
        return False
    first, last = source.order(there), source.order(node)
    writes = (use.order for name in names_read(node) for use in source.writes(name))
    known = (source.facts.lookup(source.scope(there), name.value) is not None for name in names_read(node))
    return all(known) and not any(first < order < last for order in writes)


def lines_between(made: cst.CSTNode, read: cst.CSTNode, source: Source) -> Iterator[Edit | None]:
    """The edits that take away the lines by which `made` gets from name to name into `read`, where each is read once;
    None for a line that cannot go."""
    while read is not made and read not in source.ancestors(made):
        while source.assigned_name(made) is None:
            above = source.parent(made)
            if above is None or isinstance(above, cst.BaseSmallStatement):
                yield None
                return
            made = above
        name = source.assigned_name(made)
        statement = assignment(name, source)
        reads = source.reads(name) if name is not None else []
        line = whole_line(statement, source) if statement is not None and len(reads) == 1 else None
        if line is None or source.has_comment(made):
            yield None
            return
        yield Edit(line, "")
        made = reads[0]
