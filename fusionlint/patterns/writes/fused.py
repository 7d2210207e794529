"""Blocks, and elements of a grid, that XLA makes part of what reads them: elementwise work alone reads the new array.

Measured, written and joined. Along the first axis, or that of a vector, both are one kernel on a CPU and a GPU, and
joined is less on a TPU. Along the last of three axes joined is several kernels on a CPU where written is one, and a GPU
gains nothing. The columns of a matrix are written by kernels of their own whatever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, Write, constant, counted_axis, is_about, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import is_worked_on
from fusionlint.patterns.values.array_sizes import is_vector
from fusionlint.patterns.values.static_fields import is_static_field
from fusionlint.source.tree import Source

# A name seldom stands for more names than this.
_DEPTH = 4
# Which argument of a call is read element by element.
_SPREADS = {
    "jax.numpy.full": (1, "fill_value"),
    "jax.numpy.broadcast_to": (0, "array"),
    "jax.random.categorical": (1, "logits"),
}


def is_worked_on_alone(value: cst.CSTNode, source: Source, loop: cst.For | None = None) -> bool:
    """Whether elementwise work alone reads `value`, behind `loop` if that writes it: of the same function, or of all
    that are seen to call one which returns it."""
    name = source.assigned_name(value)
    if name is None:
        return _is_fused(value, source)
    reads = [read for read in source.reads(name) if loop is None or loop not in source.ancestors(read)]
    reads = [read for read in reads if not is_about(read, source)]
    function = source.function(value)
    return bool(reads) and all(_is_fused(read, source) and source.function(read) is function for read in reads)


def are_known_elements(writes: Sequence[Write], source: Source) -> bool:
    """Whether elements of a grid are set at places that a trace knows, and elementwise work alone reads it: of a grid
    of 13 by 13 a GPU makes one kernel of two writes and their reader, and three of one scatter."""
    is_set = all(write.method == "set" and len(write.index) > 1 for write in writes)
    are_known = all(_is_a_size(part, source, _DEPTH) for write in writes for part in write.index)
    return is_set and are_known and is_worked_on_alone(writes[-1].call, source)


def _is_a_size(part: cst.CSTNode, source: Source, depth: int) -> bool:
    """A number that is written out, or made of those, of sizes and of what a class says is no array."""
    match part:
        case cst.Name():
            value = source.value(part) if depth else None
            return value is not None and _is_a_size(value, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right):
            return _is_a_size(left, source, depth) and _is_a_size(right, source, depth)
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return True
    return isinstance(part, cst.BaseExpression) and (constant(part) is not None or is_static_field(part, source))


def _is_fused(read: cst.CSTNode, source: Source) -> bool:
    """Whether elementwise work reads a value here, or what XLA does with each element, and in the kernel of that."""
    if is_worked_on(read, source) or _is_spread(read, source) or _is_mapped_number_by_number(read, source):
        return True
    return isinstance(source.parent(read), cst.Return) and _is_worked_on_by_callers(read, source)


def _is_spread(read: cst.CSTNode, source: Source) -> bool:
    """Whether one row is written to all, `jnp.full((n, n), row)`, or a draw adds noise to all before it takes the
    largest: measured, on a GPU one kernel with the writes, or as many as joined."""
    call = source.handed_to(read)
    if call is None:
        return False
    return any(source.calls(call, name) and argument(call, *where) is read for name, where in _SPREADS.items())


def _is_mapped_number_by_number(read: cst.CSTNode, source: Source) -> bool:
    """`jax.vmap(f)(v)` of a vector: a number goes into arithmetic first, whatever `f` does."""
    call = source.handed_to(read)
    if call is None or not isinstance(read, cst.Name) or not source.calls(call.func, "jax.vmap"):
        return False
    is_plain = isinstance(call.func, cst.Call) and len(call.func.args) == 1
    return is_plain and is_vector(read, source)


def _is_worked_on_by_callers(read: cst.CSTNode, source: Source) -> bool:
    """Whether all that call the function around stand in this file, and do elementwise work on what it returns."""
    function = source.function(read)
    if not isinstance(function, cst.FunctionDef):
        return False
    called = source.project.name_of(source.body_place(function))
    calls = [*source.calls_of((called,))]
    if any(caller.path != source.path for caller in source.project.callers(called)):
        return False
    return bool(calls) and all(is_worked_on(call, source) for call in calls)


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
    if source.calls(made, *FRESH_BY_SHAPE) and made.args:
        shape = made.args[0].value
        if isinstance(shape, cst.Tuple) and not any(isinstance(size, cst.StarredElement) for size in shape.elements):
            return len(shape.elements)
    if any(isinstance(part, cst.Ellipsis) for write in writes for part in write.index):
        return None
    return max(len(write.index) for write in writes)
