"""The statements that write an array part by part, where they stand in one block, and whether one may stand for all.

In: the writes, first to last, nested or in statements of one block. Out: their lines, the edits that take them away but
for the last, and whether what they write means the same there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import (
    Part,
    Write,
    constant,
    elements,
    inside,
    is_about,
    names_read,
    told_axes,
)
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.writes.chain import outermost, root
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What counts how often it was asked: layers without names, and streams of random numbers.
_COUNTS = ("flax.", "haiku.", "numpy.random.", "random.", "numpyro.")


class Steps(NamedTuple):
    """The statements of the writes: the line of each, what the array is called at the last, and the edits that take
    the ones before away."""

    lines: Sequence[cst.SimpleStatementLine]
    array: str
    edits: tuple[Edit, ...]


def steps_of(writes: Sequence[Write], source: Source) -> Steps | None:
    """The statements, where they stand in one block with nothing between them but names that are given values."""
    tops = list(dict.fromkeys(outermost(write, source).call for write in writes))
    lines = [source.nearest(top, cst.SimpleStatementLine) for top in tops]
    *before, last = lines
    if last is None or any(line is None or len(line.body) != 1 for line in before):
        return None
    found = [line for line in lines if line is not None]
    block, array = source.parent(last), root(writes[0])
    if not before:
        return Steps(found, source.code(array), ()) if is_short(array) else None
    if not isinstance(block, cst.IndentedBlock) or any(source.parent(line) is not block for line in found):
        return None
    places = [i for i, each in enumerate(block.body) if any(each is line for line in found)]
    if not all(_only_names_values(each) for each in block.body[places[0] : places[-1]]):
        return None
    names = [source.assigned_name(top) for top in tops[:-1]]
    if any(
        name is None or not isinstance(source.parent(top), cst.Assign) for name, top in zip(names, tops, strict=False)
    ):
        return None
    called = {name.value for name in names if name is not None}
    taken = [whole_line(line.body[0], source) for line in found[:-1]]
    if len(called) != 1 or None in taken[1:]:
        return None
    edits = [Edit(where, "") for where in taken[1:] if where is not None]
    if not is_short(array):
        return Steps(found, called.pop(), (source.replace(tops[0], source.code(array)), *edits))
    if taken[0] is None or _is_written_else(array, names, tops[-1], source):
        return None
    return Steps(found, source.code(array), (Edit(taken[0], ""), *edits))


def _only_names_values(statement: cst.BaseStatement) -> bool:
    """`a = f(b)`, `a, b = c`, and no field or element."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        match small:
            case cst.Assign(targets=targets):
                wholes = [each.target for each in targets]
            case cst.AnnAssign(target=whole) | cst.AugAssign(target=whole):
                wholes = [whole]
            case cst.Expr(value=cst.SimpleString()):
                continue
            case _:
                return False
        if any(isinstance(part, cst.Attribute | cst.Subscript) for whole in wholes for part in inside(whole)):
            return False
    return True


def _is_written_else(
    array: cst.BaseExpression, names: Sequence[cst.Name | None], last: cst.CSTNode, source: Source
) -> bool:
    """Whether the array gets another value on the way than by the writes."""
    begin, end = source.order(array), source.order(last)
    if not isinstance(array, cst.Name):
        return False
    between = [use.node for use in source.writes(array) if begin < use.order < end]
    return any(not any(node is name for name in names) for node in between)


def are_the_same_there(writes: Sequence[Write], steps: Steps, source: Source) -> bool:
    """Whether what is written means the same at the last of the statements, where the array is as it was at first."""
    array, last = root(writes[0]), writes[-1].call
    own = {name.value for top in steps.lines[:-1] for part in inside(top) if (name := _stored(part)) is not None}
    own = own if len(steps.lines) > 1 else set()
    if is_short(array) and not all(is_same_at(n, last, source) for n in names_read(array) if n.value not in own):
        return False
    for number, write in enumerate(writes):
        line = source.nearest(write.call, cst.SimpleStatementLine)
        earlier = [w for w in writes[:number] if source.nearest(w.call, cst.SimpleStatementLine) is not line]
        for part in (write.value, *write.index):
            for name in names_read(part) if part is not None else ():
                if name.value in own:
                    if not (earlier or is_short(array)) or not _is_as_at_first(name, earlier, steps, source):
                        return False  # of what is given the name there first, it says what was called so before
                elif not is_same_at(name, last, source):
                    return False
    return True


def _stored(node: cst.CSTNode) -> cst.Name | None:
    match node:
        case cst.AssignTarget(target=cst.Name() as name):
            return name
    return None


def _is_as_at_first(read: cst.Name, earlier: Sequence[Write], steps: Steps, source: Source) -> bool:
    """Whether what is read of the array was not written before: `x[1]`, where `x.at[0]` was."""
    if read.value != steps.array:
        return False
    if is_about(read, source) or not earlier:
        return True
    above = source.parent(read)
    if not isinstance(above, cst.Subscript) or above.value is not read:
        return False
    place = elements(above.slice)
    return all(_are_apart(place, write.index, source) for write in earlier)


def _are_apart(place: Sequence[Part], other: Sequence[Part], source: Source) -> bool:
    """Whether two places differ by the number on the one axis that is not all taken, `[:, 0]` and `[:, 1]`."""
    along = told_axes(other)[0]
    if along >= len(place) or [*map(source.code, place[:along])] != [*map(source.code, other[:along])]:
        return False
    one, there = constant(place[along]), constant(other[along])
    return one is not None and there is not None and one != there


def keep_their_order(writes: Sequence[Write], order: Sequence[int], steps: Steps, source: Source) -> bool:
    """Whether what is computed with something that counts is computed in the order that it was."""
    counts = [i for i, write in enumerate(writes) if write.value is not None and any(_counting(write.value, source))]
    if not counts:
        return True
    is_in_order = [i for i in order if i in counts] == counts
    first, last = (source.order(line) for line in (steps.lines[0], steps.lines[-1]))
    block = source.parent(steps.lines[-1])
    others = (
        [each for each in block.body if first < source.order(each) < last]
        if isinstance(block, cst.IndentedBlock)
        else []
    )
    return is_in_order and all(any(each is line for line in steps.lines) for each in others)


def _counting(value: cst.BaseExpression, source: Source) -> Iterator[bool]:
    """The calls that may give something else each time: layers, and draws without a key."""
    for call in inside(value, cst.Call):
        name = source.qualified_name(call.func) or ""
        if name.startswith(_COUNTS) or isinstance(call.func, cst.Call) or dotted(call.func).startswith("self."):
            yield True
