"""What happens between writes that follow one another: a value is made of what the one before left, a name means
something else, a list of slices that says where is changed, `cut[axis] = slice(n, None)`.

In: writes of a Source. Out: whether the last write could be said with the names of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Write, is_about, names_in
from fusionlint.patterns.code.same import CHANGES_A_LIST
from fusionlint.source.tree import Source


def reads_back(writes: Sequence[Write], source: Source) -> bool:
    """Whether a value is made of what an earlier write left in the array."""
    names = [source.assigned_name(write.call) for write in writes[:-1]]
    end = source.order(writes[-1].call)  # what is behind reads that of the path that goes round it
    reads = (
        [read for read in source.reads(name) if not is_about(read, source) and source.order(read) < end]
        for name in names
        if name is not None
    )
    return any(len(found) > 1 for found in reads)


def are_at_one_place(writes: Sequence[Write], source: Source) -> bool:
    """Whether one place is written again and again, which is called the same and means the same each time."""
    if len({tuple(map(source.code, write.index)) for write in writes}) > 1:
        return False
    return not means_more([name for write in writes for part in write.index for name in names_in(part)], writes, source)


def is_rebound(writes: Sequence[Write], source: Source) -> bool:
    """Whether a name in a value or a place means something else by the time of the last write."""
    said = [part for w in writes for part in (w.value, *w.index) if part is not None]
    return means_more([name for part in said for name in names_in(part)], writes, source)


def means_more(names: Sequence[cst.Name], writes: Sequence[Write], source: Source) -> bool:
    """Whether one of `names` is written, or changed where it stands, between the first write and the last."""
    by_name = {name.value: [each for each in names if each.value == name.value] for name in names}
    if any(len({*map(source.written, several)}) > 1 for several in by_name.values()):
        return True
    return any(_is_changed(several[0], writes, source) for several in by_name.values())


def _is_changed(name: cst.Name, writes: Sequence[Write], source: Source) -> bool:
    """Whether an element of what `name` holds is stored between the writes: `cut[axis] = slice(n, None)`."""
    between = source.uses_between(name, writes[0].call, writes[-1].call)
    return any(_changes(use.node, source) for use in between)


def _changes(name: cst.Name, source: Source) -> bool:
    match source.parent(name):
        case cst.Subscript(value=whole) as element if whole is name:
            above = source.parent(element)
            return isinstance(above, cst.AssignTarget | cst.Del) or (
                isinstance(above, cst.AugAssign) and above.target is element
            )
        case cst.Attribute(value=whole, attr=cst.Name(method)) as called if whole is name and method in CHANGES_A_LIST:
            return isinstance(source.parent(called), cst.Call)
    return False
