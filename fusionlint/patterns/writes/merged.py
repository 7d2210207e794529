"""Writes one after the other made into one: the last is written anew, and the lines of those before it go.

In: writes of a Source that follow one another, and the text that says what all of them do, of the array that the first
goes on from. Out: the edits, none where something between the writes would read or mean something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import Write, at_write, holds, is_about, names_read
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.left_unused import whole_line, without_gaps
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.loops.carry import calls
from fusionlint.source.tree import Source


def expressions(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """The writes of each expression by themselves."""
    group = [writes[0]]
    for inner, outer in pairwise(writes):
        if outer.array is not inner.call:
            yield group
            group = []
        group.append(outer)
    yield group


def nested(last: Write) -> list[Write]:
    """The writes of the expression that `last` ends, first to last."""
    group = [last]
    while (before := at_write(group[0].array)) is not None:
        group.insert(0, before)
    return group


def as_one(writes: Sequence[Write], text: str, source: Source, *, new: cst.Name | None = None) -> tuple[Edit, ...]:
    """`text` in place of the last of `writes`, without those before it; `new` is the name of a new array that the text
    has no need of, whose line goes too."""
    groups = [*expressions(writes)]
    lines = [_line(group[-1].call, source) for group in groups[:-1]]
    last = groups[-1][-1].call
    if any(source.has_comment(group[-1].call) for group in groups) or None in lines:
        return ()
    assigned = [line for line in lines if line is not None]
    behind = [source.nearest(group[-1].call, cst.SimpleStatementLine) for group in groups[1:]]
    if any(line is None or any(before.comment for before in line.leading_lines) for line in behind):
        return ()  # what is said of one line would be left without it
    if not _can_go(groups, assigned, source):
        return ()
    made = made_for(new, writes[0], source) if new is not None else None
    if new is not None and made is None:
        return ()
    gone = [whole_line(line, source) for line in [*([made] if made else []), *assigned]]
    if None in gone:
        return ()
    taken = without_gaps([Edit(where, "") for where in gone if where is not None], source)
    return (*taken, in_place_of(last, text, source))


def _line(call: cst.Call, source: Source) -> cst.Assign | None:
    """`x = call`, one name and nothing else."""
    match source.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]) as line:
            return line
    return None


def _can_go(groups: Sequence[Sequence[Write]], lines: Sequence[cst.Assign], source: Source) -> bool:
    """Whether the lines stand in one block with the last write, nothing reads what they store but the writes, and what
    they say means the same at the last write."""
    last = groups[-1][-1].call
    blocks = {source.parent(source.parent(line) or line) for line in lines}
    if lines and (
        len(blocks) > 1 or blocks.isdisjoint(source.ancestors(last)) or _is_run_again(lines[0], last, source)
    ):
        return False
    names = [line.targets[0].target for line in lines]
    first = groups[0][0]
    bound_before = first.array.value if isinstance(first.array, cst.Name) else None
    bound_behind = source.assigned_name(last)
    for name, group in zip(names, groups[1:], strict=True):
        assert isinstance(name, cst.Name)
        for read in source.reads(name):
            is_own = read is group[0].array or (name.value == bound_before and is_about(read, source))
            is_behind = bound_behind is not None and bound_behind.value == name.value
            if not is_own and not (is_behind and source.order(read) > source.order(last)):
                return False
    dropped = {id(name) for name in names}
    said = [first.array, *(part for group in groups for write in group for part in (write.value, *write.index))]
    if not all(_means_the_same(part, last, dropped, source) for part in said if part is not None):
        return False
    return _are_next_to_each_other(lines, last, source) or all(
        _is_pure(part, source) for part in said if part is not None
    )


def _is_run_again(line: cst.Assign, last: cst.Call, source: Source) -> bool:
    """Whether a loop or a function runs the last write more often than the line."""
    return source.loop(line) is not source.loop(last) or source.function(line) is not source.function(last)


def _means_the_same(part: cst.CSTNode, last: cst.Call, dropped: set[int], source: Source) -> bool:
    """Whether no name in `part` is written, or changed where it stands, between it and the last write."""
    for name in names_read(part):
        for use in source.uses_between(name, name, last):
            if id(use.node) in dropped:
                continue
            if use.is_write or _is_changed(use.node, source):
                return False
    return not holds(part, cst.NamedExpr, cst.Await, cst.Yield)


def _is_changed(name: cst.Name, source: Source) -> bool:
    """`cut[axis] = ...`, `cut.append(...)`, `state.x = ...`."""
    match source.parent(name):
        case cst.Subscript(value=whole) | cst.Attribute(value=whole) as part if whole is name:
            above = source.parent(part)
            if isinstance(above, cst.AssignTarget | cst.AugAssign | cst.Del):
                return True
            return isinstance(above, cst.Call) and above.func is part and isinstance(source.parent(above), cst.Expr)
    return False


def _is_pure(part: cst.CSTNode, source: Source) -> bool:
    """Whether only jax is called: what a function of somebody's does may have to be done in its turn."""
    return all((source.qualified_name(call.func) or "").startswith("jax.") for call in calls(part))


def _are_next_to_each_other(lines: Sequence[cst.Assign], last: cst.Call, source: Source) -> bool:
    statement = source.nearest(last, cst.SimpleStatementLine)
    block = source.parent(statement) if statement is not None else None
    if not isinstance(block, cst.IndentedBlock):
        return not lines
    here = [source.parent(line) for line in lines]
    places = [block.body.index(line) for line in (*here, statement) if line in block.body]
    return len(places) == len(lines) + 1 and places == [*range(places[0], places[0] + len(places))]


def made_for(name: cst.Name, first: Write, source: Source) -> cst.Assign | None:
    """The line that makes the new array, if only the first write, and what asks for its shape, reads it."""
    written = source.written(name)
    made = assignment(written, source)
    if made is None or written is None or len(made.targets) != 1:
        return None
    return made if all(read is first.array for read in source.reads(written)) else None
