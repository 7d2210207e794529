"""Reading `x.at[index].set(value)`: shared by the rules about indexed updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from fusionlint.source.tree import Source

Part = cst.BaseExpression | cst.BaseSlice

_METHODS = frozenset(("set", "add", "subtract", "multiply", "mul", "divide", "div", "power", "min", "max", "apply"))


@dataclass(frozen=True, slots=True)
class Write:
    """One `array.at[index].method(value)`."""

    call: cst.Call
    array: cst.BaseExpression
    index: tuple[Part, ...]
    method: str
    value: cst.BaseExpression | None


def at_write(node: cst.CSTNode | None) -> Write | None:
    """The write that `node` is, None for anything else."""
    match node:
        case cst.Call(
            func=cst.Attribute(
                value=cst.Subscript(value=cst.Attribute(value=array, attr=cst.Name("at")), slice=slices),
                attr=cst.Name(method),
            ),
            args=args,
        ) if method in _METHODS:
            value = args[0].value if args and args[0].keyword is None else None
            return Write(node, array, _elements(slices), method, value)
    return None


def _elements(slices: Sequence[cst.SubscriptElement]) -> tuple[Part, ...]:
    """What stands between the brackets, one part an axis; a tuple in parentheses is its parts."""
    parts = [s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in slices]
    if len(parts) == 1 and isinstance(parts[0], cst.Tuple):
        return tuple(element.value for element in parts[0].elements)
    return tuple(parts)


def chain(last: Write, source: Source) -> list[Write]:
    """The writes that `last` is the end of, first to last: nested, or one statement after the other on one name."""
    writes = [last]
    while (before := _before(writes[-1], source)) is not None and before not in writes:
        writes.append(before)
    return writes[::-1]


def _before(write: Write, source: Source) -> Write | None:
    if (nested := at_write(write.array)) is not None:
        return nested
    if not isinstance(write.array, cst.Name):
        return None
    stored = source.written(write.array)
    # A value that something else reads too is not just a step on the way.
    if stored is None or len(source.reads(stored)) != 1:
        return None
    return at_write(source.value(write.array))


def is_last(write: Write, source: Source) -> bool:
    """Whether no other write goes on from this one."""
    match source.parent(write.call):
        case cst.Attribute(attr=cst.Name("at")):
            return False
    name = source.assigned_name(write.call)
    if name is None:
        return True
    reads = source.reads(name)
    return not (len(reads) == 1 and _is_written_on(reads[0], source))


def _is_written_on(read: cst.Name, source: Source) -> bool:
    attribute = source.parent(read)
    above = [attribute, *source.ancestors(attribute)][:4] if attribute else []
    return any((w := at_write(node)) is not None and w.array is read for node in above)


def is_whole(part: Part) -> bool:
    """`:` or `...`."""
    if isinstance(part, cst.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, cst.Ellipsis)


def constant(part: Part) -> int | None:
    """The value of an integer literal, negative ones included."""
    match part:
        case cst.Integer():
            return part.evaluated_value
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() as number):
            return -number.evaluated_value
    return None


def column(write: Write) -> int | None:
    """k of `.at[:, k]` or `.at[..., k]`, None for other places."""
    *before, last = write.index
    if not before or not all(is_whole(part) for part in before):
        return None
    return constant(last)
