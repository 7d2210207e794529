"""Python loops whose turns each read and write a row of their own: what a step returns there is not handed on.

In: a step that a loop makes in each turn, and what the loop carries.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.loops.carry import Carry, read
from fusionlint.source.tree import Source


def writes_a_place_of_its_own(step: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether each iteration writes a place of its own, `buffers[i] = write(buffers[i], x)`: nothing is handed on."""
    match source.parent(step):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(slice=slices))]):
            return any(carry.varies(part) for part in slices)
    return False


def are_rows_of_its_own(written: tuple[str, ...], step: cst.Call, carry: Carry) -> bool:
    """Whether what the step returns gets to its next call only by way of what each iteration reads and writes a row of
    its own of, `data["energy"][i] -= e`."""
    if not isinstance(carry.loop, cst.For):
        return False
    apart = {name for write in carry.writes for name in write.names if _is_by_rows(name, carry)}
    reached = {name for arg in step.args for name in read(arg)}
    before = 0
    while before != len(reached):
        before = len(reached)
        made = (write for write in carry.writes if not apart.issuperset(write.names))
        reached.update(name for write in made if reached.intersection(write.names) for name in read(write.value))
    return reached.isdisjoint(written)


def _is_by_rows(name: str, carry: Carry) -> bool:
    """Whether all that the loop does with a variable is to read and write it where the loop counts, `x[i]`."""
    uses = [part for part in names_in(carry.loop.body) if part.value == name]
    rows = [part for part in inside(carry.loop.body, cst.Subscript) if _row(part, name, carry)]
    return bool(uses) and len(uses) == len(rows)


def _row(part: cst.Subscript, name: str, carry: Carry) -> bool:
    match part:
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(index)))]):
            while isinstance(whole, cst.Subscript):
                whole = whole.value
            return index in carry.targets and isinstance(whole, cst.Name) and whole.value == name
    return False
