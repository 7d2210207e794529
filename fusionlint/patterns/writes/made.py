"""What an array is made as that writes go to: where a chain begins, and the new array of a variable that is written
place by place ever after.

In: a write of a Source. Out: another, to what is made.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import Write, at_write, is_fresh
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source

# A chain is followed back through so many names.
_DEPTH = 40


def begun_with(first: Write, source: Source) -> Write:
    """The write that the chain before `first` begins with, as far as it is seen; of a variable that is made once, and
    written place by place ever after, what is made."""
    array = root(first)
    made = made_as(array, source) if isinstance(array, cst.Name) else None
    if made is not None:
        return Write(first.call, made, first.index, first.method, first.value)
    for _ in range(_DEPTH):
        array = root(first)
        before = at_write(source.value(array)) if isinstance(array, cst.Name) else None
        if before is None or before.call is first.call:
            return first
        first = before
    return first


def made_as(array: cst.Name, source: Source) -> cst.BaseExpression | None:
    """The new array that a variable is made as, where whatever else it is given is itself with places written."""
    given = [assigned(use.node, source) for use in source.uses(array) if use.is_write]
    made = []
    for value in given:
        if value is None:
            return None
        write = at_write(value)
        begins = root(write) if write is not None else None
        if not (isinstance(begins, cst.Name) and begins.value == array.value):
            made.append(value)
    return made[0] if len(made) == 1 and is_fresh(made[0], source) else None
