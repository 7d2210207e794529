"""A loop of jax.lax whose steps each write one place of an array, and whether a step needs what another wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, at_write, inside, is_about, is_whole, names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.source.tree import Source

_SCAN = "jax.lax.scan"
# Writes that come to the same in any order, at one place too.
_IN_ANY_ORDER = frozenset(("add", "subtract", "min", "max"))
_LEAST = {"jax.numpy.minimum": "min", "jax.numpy.maximum": "max"}


class LoneWrite(NamedTuple):
    """The one write of a loop's steps, and whether no two of them can have the same place, or it does not matter."""

    write: Write
    is_apart: bool


def lone_write(function: cst.FunctionDef | cst.Lambda, loop: cst.Call, source: Source) -> LoneWrite | None:
    """The one write of the carry that `function` returns, None where it does more with it."""
    found = lone_writes(function, loop, source)
    return found[0] if len(found) == 1 else None


def lone_writes(function: cst.FunctionDef | cst.Lambda, loop: cst.Call, source: Source) -> list[LoneWrite]:
    """The writes of the arrays of the carry that `function` returns, one for each; none where it does more with one."""
    parameters = function.params.params
    if len(parameters) != 2:
        return []
    is_scan = source.calls(loop, _SCAN)
    carry, step = parameters if is_scan else reversed(parameters)
    returned = result(function)
    if is_scan:
        match returned:
            case cst.Tuple(elements=[cst.Element(value=returned), cst.Element(value=cst.Name("None"))]):
                pass
            case _:
                return []
    counted = step.name if not is_scan or _counts(loop, source) else None
    changed = _changed(carry.name, returned, source)
    found = [_lone(array, value, function, counted, source) for array, value in changed]
    writes = [one for one in found if one is not None]
    return writes if len(writes) == len(found) else []


def _lone(
    array: cst.Name,
    returned: cst.BaseExpression,
    function: cst.FunctionDef | cst.Lambda,
    step: cst.Name | None,
    source: Source,
) -> LoneWrite | None:
    """The write by which `array` becomes what is `returned`, in steps that are counted by `step` if they are."""
    written = source.value(returned) if isinstance(returned, cst.Name) else returned
    write = at_write(written)
    if write is None or not isinstance(write.array, cst.Name):
        return None
    if source.written(write.array) is not array and write.array not in source.reads(array):
        return None
    moves = _moves(write.index, function, source)
    if write.method in _IN_ANY_ORDER and moves and _is_read_for(array, write, (), source):
        return LoneWrite(write, True)  # two steps may have the same place
    place = [source.code(part) for part in write.index]
    if step is not None and _is_own_place(write.index, step, function, source):
        return LoneWrite(write, True) if _is_read_for(array, write, place, source) else None
    if not moves or write.method != "set":
        return None
    if _is_read_for(array, write, (), source):
        return LoneWrite(write, False)
    return _joined(array, write, place, source)


def _joined(carry: cst.Name, write: Write, place: Sequence[str], source: Source) -> LoneWrite | None:
    """What is made of the value that stands there as a write that reads nothing: `x.at[i].set(x[i] + v)` adds,
    `x.at[i].set(jnp.minimum(x[i], v))` takes the least, at one place too; `jnp.where(p, v, x[i])` leaves some places
    alone. None for anything else: of two steps at one place the later needs what the earlier wrote."""
    match source.meant(write.value):
        case cst.BinaryOperation(left=one, operator=cst.Add(), right=other):
            method = "add"
        case cst.Call(func=function, args=[cst.Arg(value=one), cst.Arg(value=other)]) if found := _LEAST.get(
            source.qualified_name(function) or ""
        ):
            method = found
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other)]) as choice if source.calls(choice, *CHOICES):
            method = "set"
        case _:
            return None
    for stands, value in ((one, other), (other, one)):
        reads = [name for name in source.reads(carry) if name in inside(stands)]
        if len(reads) == 1 and _is_at(stands, reads[0], place, source):
            others = [read for read in source.reads(carry) if read not in (write.array, reads[0])]
            if not all(is_about(read, source) for read in others):
                return None
            return (
                LoneWrite(write, False)
                if method == "set"
                else LoneWrite(replace(write, method=method, value=value), True)
            )
    return None


def carried(carry: cst.Name, source: Source) -> tuple[cst.Name, ...]:
    """The names that the carry is taken apart into; the carry itself where it is not."""
    for read in source.reads(carry):
        match source.parent(read):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))], value=value) if value is read:
                names = tuple(part.value for part in parts if isinstance(part.value, cst.Name))
                return names if len(names) == len(parts) else ()
    return (carry,)


def _changed(
    carry: cst.Name, returned: cst.BaseExpression | None, source: Source
) -> list[tuple[cst.Name, cst.BaseExpression]]:
    """The parts of the carry that a step changes, and to what; the others are handed on as they are."""
    names = carried(carry, source)
    if returned is None or names == (carry,):
        return [] if returned is None else [(carry, returned)]
    if not isinstance(returned, cst.Tuple) or len(returned.elements) != len(names):
        return []
    pairs = [(name, e.value) for name, e in zip(names, returned.elements, strict=True)]
    return [(n, v) for n, v in pairs if not (isinstance(v, cst.Name) and source.written(v) is n)]


def result(function: cst.FunctionDef | cst.Lambda) -> cst.BaseExpression | None:
    """What the function returns, where it does so in one place, at its end."""
    if isinstance(function, cst.Lambda):
        return function.body
    if sum(isinstance(node, cst.Return) for node in inside(function)) != 1:
        return None
    match function.body.body[-1]:
        case cst.SimpleStatementLine(body=[cst.Return(value=value)]):
            return value
    return None


def _counts(scan: cst.Call, source: Source) -> bool:
    """Whether the steps of a scan are 0, 1, 2, ..."""
    over = argument(scan, 2, "xs")
    meant = source.value(over) if isinstance(over, cst.Name) else over
    return source.calls(meant, "jax.numpy.arange")


def _is_own_place(index: tuple[Part, ...], step: cst.Name, function: cst.CSTNode, source: Source) -> bool:
    """Whether each step has a place of its own: the step itself on one axis, or as far from it in each, `i + 1`, and
    nothing that varies on the others."""
    reads = source.reads(step)
    own = [part for part in index if _goes_along(part, reads, function, source)]
    others = [part for part in index if part not in own]
    return len(own) == 1 and not any(node in reads for part in others if not is_whole(part) for node in inside(part))


def _goes_along(part: Part, reads: Sequence[cst.CSTNode], function: cst.CSTNode, source: Source) -> bool:
    """`i`, `first + i`, `n - 1 - i`, where `reads` are those of i, and the rest is the same in each step."""
    match part:
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
            along = [side for side in (left, right) if _goes_along(side, reads, function, source)]
            rest = tuple(side for side in (left, right) if side not in along)
            is_read = any(node in reads for side in rest for node in inside(side))
            return len(along) == 1 and not is_read and not _moves(rest, function, source)
    return isinstance(part, cst.Name) and part in reads


def _moves(index: tuple[Part, ...], function: cst.CSTNode, source: Source) -> bool:
    """Whether the place is made of what `function` is handed or computes, and not the same in each step."""
    names = (node for part in index for node in names_in(part))
    return any(written in inside(function) for name in names if (written := source.written(name)) is not None)


def _is_read_for(carry: cst.Name, write: Write, place: Sequence[str], source: Source) -> bool:
    """Whether the carry is read no more than as what is written to, and at `place`, where one is given."""
    for read in source.reads(carry):
        if read is write.array:
            continue
        if not is_about(read, source) and not (place and _is_at(source.parent(read), read, place, source)):
            return False
    return True


def _is_at(node: cst.CSTNode | None, read: cst.CSTNode, place: Sequence[str], source: Source) -> bool:
    """Whether a node is what stands at `place` of the array `read`."""
    match node:
        case cst.Subscript(value=value, slice=slices) if value is read:
            parts = [s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in slices]
            return [source.code(part) for part in parts] == place
    return False


def handed_on(body: cst.FunctionDef | cst.Lambda, source: Source) -> Iterator[tuple[cst.Name, cst.BaseExpression]]:
    """The parts of the carry, each with what the next turn gets of it."""
    returned = result(body)
    if not body.params.params or returned is None:
        return
    here = carried(body.params.params[-1].name, source)
    following = [e.value for e in returned.elements] if isinstance(returned, cst.Tuple) else [returned]
    if len(here) == len(following):
        yield from zip(here, following, strict=True)
