"""New arrays that writes put together row by row: a stack of the rows, or a list that a loop goes on with.

In: writes of a Source that follow one another. Out: the stack; and whether a Python loop behind writes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Write, constant, is_fresh, is_literal, told_axes
from fusionlint.patterns.writes.chain import root, shown, write_on
from fusionlint.patterns.writes.loop import counted_by
from fusionlint.source.tree import Source


def stack(writes: Sequence[Write], source: Source, jnp: str) -> str | None:
    """The stack that a new array is, where it is set at 0, 1, 2, ... along one axis and is seen to be just so long."""
    places = [told_axes(write.index) for write in writes]
    axis = places[0][0] if places[0] else 0
    if any(several != [axis] for several in places) or any(write.method != "set" for write in writes):
        return None
    if any(isinstance(part, cst.Ellipsis) for write in writes for part in write.index[:axis]):
        return None
    made = source.meant(root(writes[0]))
    match made:
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=sizes)), *_]) if axis < len(sizes):
            length = sizes[axis].value
        case cst.Call(args=[cst.Arg(value=length), *_]) if axis == 0:
            pass
        case _:
            return None
    numbers = [constant(write.index[axis]) for write in writes]
    if not is_fresh(made, source) or numbers != [*range(len(writes))] or constant(length) != len(writes):
        return None
    values = ", ".join(shown(write.value, source) for write in writes)
    has_rows = isinstance(made, cst.Call) and isinstance(made.args[0].value, cst.Tuple)
    is_filled = has_rows and any(is_literal(write.value) for write in writes)
    shaped = ", each in the shape of its part" if is_filled else ""
    return f"{jnp}.stack([{values}]{f', axis={axis}' if axis else ''}){shaped}"


def begins_a_list(writes: Sequence[Write], source: Source) -> bool:
    """Whether a new array is set at 0, 1, ... and a Python loop behind goes on, `x = x.at[n].set(f(x[n - 1]))`."""
    if [[constant(part) for part in write.index] for write in writes] != [[i] for i in range(len(writes))]:
        return False
    name = source.assigned_name(writes[-1].call)
    if name is None or not is_fresh(root(writes[0]), source):
        return False
    here = source.loop(writes[-1].call)
    for read in source.reads(name):
        loop, again = source.loop(read), write_on(read, source)
        if isinstance(loop, cst.For) and loop is not here and again is not None and again.method == "set":
            counted = counted_by(loop)
            return all(isinstance(part, cst.Name) and part.value in counted for part in again.index)
    return False
