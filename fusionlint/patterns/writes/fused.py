"""Blocks that XLA makes part of what reads them: elementwise work alone reads the new array.

Measured, written and joined. Along the first axis, or that of a vector, both are one kernel on a CPU and a GPU, and
joined is less on a TPU. Along the last of three axes joined is several kernels on a CPU where written is one, and a GPU
gains nothing. The columns of a matrix are written by kernels of their own whatever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, Write, counted_axis, is_about, is_whole
from fusionlint.patterns.code.elementwise import is_worked_on
from fusionlint.source.tree import Source


def is_worked_on_alone(value: cst.CSTNode, source: Source, loop: cst.For | None = None) -> bool:
    """Whether elementwise work of the same function alone reads `value`, behind `loop` if that writes it."""
    name = source.assigned_name(value)
    if name is None:
        return is_worked_on(value, source)
    reads = [read for read in source.reads(name) if loop is None or loop not in source.ancestors(read)]
    reads = [read for read in reads if not is_about(read, source)]
    function = source.function(value)
    return bool(reads) and all(is_worked_on(read, source) and source.function(read) is function for read in reads)


def axis_of(writes: Sequence[Write]) -> int | None:
    """The one axis that blocks lie along, behind `...` counted from the end; None where they lie along several."""
    axes = {tuple(_axes(write.index)) for write in writes}
    only = axes.pop() if len(axes) == 1 else ()
    return only[0] if len(only) == 1 else None


def _axes(index: Sequence[Part]) -> Iterator[int]:
    for i, part in enumerate(index):
        if not is_whole(part):
            yield counted_axis(i, index)


def is_last_of_three(writes: Sequence[Write], made: cst.BaseExpression, source: Source) -> bool:
    """Whether blocks lie along the last axis of three or more: of `...` nobody writes where there are two."""
    axis, count = axis_of(writes), _count(writes, made, source)
    return axis == -1 if count is None else count > 2 and axis in (-1, count - 1)


def are_columns(writes: Sequence[Write], made: cst.BaseExpression, source: Source) -> bool:
    """Whether blocks lie along the last of two axes."""
    return _count(writes, made, source) == 2 and axis_of(writes) in (-1, 1)


def _count(writes: Sequence[Write], made: cst.BaseExpression, source: Source) -> int | None:
    """How many axes a new array has: as many as its shape says, or else as are written at."""
    if source.calls(made, *FRESH_BY_SHAPE) and isinstance(made, cst.Call) and made.args:
        shape = made.args[0].value
        if isinstance(shape, cst.Tuple) and not any(isinstance(size, cst.StarredElement) for size in shape.elements):
            return len(shape.elements)
    if any(isinstance(part, cst.Ellipsis) for write in writes for part in write.index):
        return None
    return max(len(write.index) for write in writes)
