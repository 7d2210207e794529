"""A loop of jax.lax whose steps each write one place of an array, and whether a step needs what another wrote."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.at import Part, Write, at_write, inside, is_whole
from fusionlint.patterns.at_chain import root
from fusionlint.patterns.calls import argument
from fusionlint.source.tree import Source

_SCAN = "jax.lax.scan"
# Writes that come to the same in any order, at one place too.
_IN_ANY_ORDER = frozenset(("add", "subtract", "min", "max"))
# What is asked of the array without reading what was written.
_ABOUT = frozenset(("shape", "dtype", "ndim", "size"))


def lone_write(function: cst.FunctionDef | cst.Lambda, loop: cst.Call, source: Source) -> Write | None:
    """The one write of the carry that `function` returns, None where it does more with it."""
    parameters = function.params.params
    if len(parameters) != 2:
        return None
    is_scan = source.calls(loop, _SCAN)
    carry, step = parameters if is_scan else reversed(parameters)
    returned = result(function)
    if is_scan:
        match returned:
            case cst.Tuple(elements=[cst.Element(value=returned), cst.Element(value=cst.Name("None"))]):
                pass
            case _:
                return None
    written = source.value(returned) if isinstance(returned, cst.Name) else returned
    write = at_write(written)
    if write is None or root(write) is not write.array or not isinstance(write.array, cst.Name):
        return None
    if source.written(write.array) is not carry.name and write.array not in source.reads(carry.name):
        return None
    is_added = write.method in _IN_ANY_ORDER and _moves(write.index, function, source)
    if is_added and _is_read_for(carry.name, write, (), source):
        return write  # two steps may have the same place
    if (is_scan and not _counts(loop, source)) or not _is_own_place(write.index, step.name, source):
        return None
    place = [source.code(part) for part in write.index]
    return write if _is_read_for(carry.name, write, place, source) else None


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
    return meant is not None and source.calls(meant, "jax.numpy.arange")


def _is_own_place(index: tuple[Part, ...], step: cst.Name, source: Source) -> bool:
    """Whether each step has a place of its own: the step itself on one axis, nothing that varies on the others."""
    reads = source.reads(step)
    plain = [part for part in index if isinstance(part, cst.Name) and part in reads]
    others = [part for part in index if part not in plain]
    return len(plain) == 1 and not any(node in reads for part in others if not is_whole(part) for node in inside(part))


def _moves(index: tuple[Part, ...], function: cst.CSTNode, source: Source) -> bool:
    """Whether the place is made of what `function` is handed or computes, and not the same in each step."""
    names = (node for part in index for node in inside(part) if isinstance(node, cst.Name))
    return any(written in inside(function) for name in names if (written := source.written(name)) is not None)


def _is_read_for(carry: cst.Name, write: Write, place: Sequence[str], source: Source) -> bool:
    """Whether the carry is read no more than as what is written to, and at `place`, where one is given."""
    for read in source.reads(carry):
        if read is write.array:
            continue
        match source.parent(read):
            case cst.Attribute(value=value, attr=cst.Name(about)) if value is read and about in _ABOUT:
                continue
            case cst.Subscript(value=value, slice=slices) if value is read and place:
                parts = [s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in slices]
                if [source.code(part) for part in parts] == place:
                    continue
        return False
    return True
