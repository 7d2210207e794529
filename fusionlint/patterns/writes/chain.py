"""Writes that follow one another on one array: `x.at[i].set(a).at[j].set(b)`, or the same in statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import libcst as cst

from fusionlint.patterns.code.at import Write, at_write, column, constant, elements, is_about, place_of
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.paths import is_behind_ifs, never_both, stored_before
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

Link = TypeVar("Link")

# A value longer than this says less than its outline.
_LONG = 30
# So many names in a row a value seldom has on its way into a write.
_NAMES = 2


def chain(last: Write, source: Source) -> list[Write]:
    """The writes that `last` is the end of, first to last: nested, or one statement after the other on one name."""
    return first_to_last(last, lambda write: _before(write, source))


def first_to_last(last: Link, before: Callable[[Link], Link | None]) -> list[Link]:
    """A link, and all that come one `before` the other, turned round; where one comes round again it ends."""
    links = [last]
    while (link := before(links[-1])) is not None and link not in links:
        links.append(link)
    return links[::-1]


def shown(value: cst.BaseExpression | None, source: Source, longest: int = _LONG) -> str:
    """What is written, as it can stand in a message."""
    return brief(source.code(value), longest) if value is not None else "..."


def is_last(write: Write, source: Source) -> bool:
    """Whether no other write goes on from this one."""
    if isinstance(source.parent(write.call), cst.Attribute):
        return not _is_nested(write, source)
    name = source.assigned_name(write.call)
    reads = source.reads(name) if name is not None else []
    return not any(_goes_on(write, reads, write_on(read, source), source) for read in reads)


def path(last: Write, source: Source) -> list[Write]:
    """The same for one path through `if`s, each taken that can be; none where `last` is not the end of it, or where a
    later branch, instead of one of these, is told of."""
    writes = [last]
    while (before := _before_by_ifs(writes, source)) is not None and before not in writes:
        writes.append(before)
    writes.reverse()
    is_ended = not _goes_on_by_ifs(last, source) and not any(
        _goes_on_by_ifs(before, source, instead_of=after) for before, after in pairwise(writes)
    )
    return writes if is_ended else []


def is_columns(writes: list[Write]) -> bool:
    """Whether these are the writes of two or more columns, and nothing else."""
    columns = [column(write) for write in writes]
    return None not in columns and len({*columns}) > 1


def write_on(read: cst.Name, source: Source) -> Write | None:
    """The write whose array is `read`."""
    attribute = source.parent(read)
    above = [attribute, *source.ancestors(attribute)][:4] if attribute else []
    return next((w for node in above if (w := at_write(node)) is not None and w.array is read), None)


def is_element(read: cst.Name, source: Source) -> bool:
    """Whether `read` is only a part of the array, or something about it: `x[0]`, `x.shape`."""
    match source.parent(read):
        case cst.Subscript(value=value):
            return value is read
    return is_about(read, source)


def is_only_written(array: cst.BaseExpression, source: Source) -> bool:
    """Whether a variable of a function goes on from write to write and nowhere else: XLA drops it, writes and all."""
    if not isinstance(array, cst.Name) or source.function(array) is None:
        return False
    reads = [*source.reads_at_all(array)]
    return bool(reads) and all(_is_written_again(read, source) for read in reads)


def _is_written_again(read: cst.Name, source: Source) -> bool:
    """`x` of `x = x.at[i].set(a)`, also where that is made of it, `x = x.at[0].set(2 * x[1] - x[2])`."""
    if is_about(read, source):
        return True
    around = (write for above in source.ancestors(read) if (write := at_write(above)) is not None)
    names = (source.assigned_name(outermost(write, source).call) for write in around)
    return any(name is not None and name.value == read.value for name in names)


def root(write: Write) -> cst.BaseExpression:
    """The array that a nested chain of writes begins with."""
    while (nested := at_write(write.array)) is not None:
        write = nested
    return write.array


def is_added(write: Write, source: Source) -> bool:
    """Whether a part is added to what stands there: `T.at[i:j, i:j].set(A + T[i:j, i:j])`."""
    there = f"{dotted(root(write))}[{place_of(write, source)}]"
    match write.value:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return there in (source.code(left), source.code(right))
    return False


def outermost(write: Write, source: Source) -> Write:
    """The write at the end of the expression that `write` begins."""
    while _is_nested(write, source):
        write = next(w for a in source.ancestors(write.call) if (w := at_write(a)) is not None)
    return write


def _before(write: Write, source: Source) -> Write | None:
    if (nested := at_write(write.array)) is not None:
        return nested
    if not isinstance(write.array, cst.Name):
        return None
    stored = source.written(write.array)
    before = at_write(source.value(write.array))
    if before is None or stored is None:
        return None
    return before if _goes_on(before, source.reads(stored), write, source) else None


def _before_by_ifs(path: Sequence[Write], source: Source) -> Write | None:
    """The write before the last one of `path`, which is written from its end."""
    write = path[-1]
    if (nested := at_write(write.array)) is not None or not isinstance(write.array, cst.Name):
        return nested
    value, stored = source.value(write.array), source.written(write.array)
    if stored is None and (stored := stored_before(write.array, [each.call for each in path], source)) is not None:
        value = assigned(stored, source)
    before = at_write(value)
    if before is None or stored is None:
        return None
    return before if _goes_on(before, _reads_on_the_way(stored, write, source), write, source) else None


def _goes_on_by_ifs(write: Write, source: Source, instead_of: Write | None = None) -> bool:
    """Whether a write goes on from this one, behind an `if` too; or a later one in another branch than `instead_of`."""
    if isinstance(source.parent(write.call), cst.Attribute):
        return instead_of is None and _is_nested(write, source)
    name = source.assigned_name(write.call)
    if name is None:
        return False
    after = (found for read in source.reads(name) if (found := write_on(read, source)) is not None)
    if instead_of is not None:
        least = source.order(instead_of.call)
        others = [found for found in after if source.order(found.call) > least]
        after = (found for found in others if never_both(found.call, instead_of.call, source))
    return any(_goes_on(write, _reads_on_the_way(name, found, source), found, source) for found in after)


def _reads_on_the_way(stored: cst.Name, write: Write, source: Source) -> list[cst.Name]:
    """The reads of what `stored` is given that are on a path to `write`, behind it too where that is given another
    name; what a function inside reads may be asked for at any time."""
    reads, end = source.reads(stored), outermost(write, source).call
    if not is_behind_ifs(stored, end, source):
        return reads
    name = source.assigned_name(end)
    if name is not None and name.value == stored.value:
        first, last = source.order(stored), source.order(end)
        own = source.scope(stored)
        reads = [read for read in reads if source.scope(read) != own or first < source.order(read) <= last]
    return [read for read in reads if not never_both(read, end, source)]


def _goes_on(before: Write, reads: list[cst.Name], write: Write | None, source: Source) -> bool:
    """Whether `reads`, all of what `before` returns, are of `write`, which goes on from it: as its array, and no more
    than parts of it in its values. A value that something else reads too is not just a step on the way."""
    if write is None or write.array not in reads:
        return False
    end = outermost(write, source).call
    return all(
        read is write.array
        or is_about(read, source)
        or (is_element(read, source) and _ends_in(read, end, source, _NAMES if _is_seen(before, read, source) else 0))
        for read in reads
    )


def _is_seen(before: Write, read: cst.Name, source: Source) -> bool:
    """Whether `read` is at the place of the write before, or at another, and both are said."""
    match source.parent(read):
        case cst.Subscript(slice=slices):
            place = elements(slices)
            return [*map(source.code, place)] == [*map(source.code, before.index)] or None not in map(
                constant, (*place, *before.index)
            )
    return False


def _ends_in(read: cst.CSTNode, end: cst.Call, source: Source, depth: int) -> bool:
    """Whether what is made of `read` goes into `end` and nowhere else, under names of its own too."""
    above = [read, *source.ancestors(read)]
    if any(a is end for a in above):
        return True
    name = next((name for a in above if (name := source.assigned_name(a)) is not None), None)
    again = source.reads(name) if name is not None and depth else []
    return bool(again) and all(_ends_in(one, end, source, depth - 1) for one in again)


def _is_nested(write: Write, source: Source) -> bool:
    """Whether the value of `write` is the array of the next write in the same expression."""
    for above in source.ancestors(write.call):
        if isinstance(above, cst.Attribute | cst.Subscript):
            continue
        after = at_write(above)
        return after is not None and after.array is write.call
    return False
