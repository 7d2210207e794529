"""Writes to every second, third, ... place: `x.at[:, 0::2].set(a).at[:, 1::2].set(b)`.

In: writes of a Source that follow one another. Out: the one stack that lays their values in between each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    Part,
    Write,
    constant,
    counted_axis,
    elements,
    told_axes,
)
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.writes.chain import root, shown
from fusionlint.source.tree import Source

_LONG = 40
# What takes one array and leaves its shape.
_OF_ONE = frozenset(f"jax.numpy.{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt"))


def interleaved(writes: Sequence[Write], array: str, source: Source, jnp: str) -> str | None:
    """`jnp.stack([a, b], axis=2).reshape(x.shape)` for `k::m` along one axis, once for each k below m; None of other
    writes. Values of another shape than their part, a number among them, have to be brought to it; where the parts are
    not seen to be equally long, the last may be shorter by one, and what it is padded with is cut off again. A TPU
    keeps the last axis in its lanes: 7 launches become 5 there that move more, where a CPU and a GPU are left with one.
    """
    axes = {_strided(write) for write in writes}
    axis = next(iter(axes))
    if len(axes) != 1 or axis is None or any(write.method != "set" for write in writes):
        return None
    in_order = starts_of([write.index[axis] for write in writes])
    if in_order is None:
        return None
    given = (writes[i].value for i in in_order)
    values = (shown(value, source, _LONG) for value in given)
    is_open = any(isinstance(part, cst.Ellipsis) for part in writes[0].index[:axis])
    behind = axis - len(writes[0].index) if is_open else axis + 1
    if is_open and behind != -1:
        return None
    if not _are_equally_long(writes, axis, source):
        padded = f"a shorter one padded by {jnp}.pad where `{array}` is no multiple of {len(writes)} long"
        stack = f"one {jnp}.stack(..., axis={behind}) of values in the shape of their parts, {padded}"
        return f"{stack}, one reshape, and as much of it as `{array}` is long; along the last axis a TPU gains little"
    stack = f"{jnp}.stack([{', '.join(values)}], axis={behind})"
    laid = f"`{stack}.reshape({array}.shape)`, of values in the shape of their parts"
    return f"{laid}; along the last axis a TPU gains little"


def laid_by_ranges(writes: Sequence[Write], source: Source, jnp: str) -> str | None:
    """The same of places that are counted, `.at[jnp.arange(0, n, 3)].set(x).at[jnp.arange(1, n, 3)].set(y)`, in one
    part of the array or more; None of other writes."""
    parts = [write.index[0] for write in writes if len(write.index) == 1]
    if len(parts) < len(writes) or any(write.method != "set" for write in writes):
        return None
    counted = [part for part in parts if source.calls(part, "jax.numpy.arange")]
    steps = [argument(call, 2, "step") for call in counted]
    strided = [
        (source.code(call.args[1].value), source.code(step)) for call, step in zip(counted, steps, strict=True) if step
    ]
    if len(counted) < len(writes) or max(map(strided.count, strided), default=0) < 2:
        return None
    apart = f"those that are a step apart laid in between each other by {jnp}.stack([...], axis=1) and a reshape"
    return f"one {jnp}.concatenate of the parts and of what stands between them, in their order, {apart}"


def starts_of(parts: Sequence[Part]) -> list[int] | None:
    """Which of `parts` comes first, second, ..., where they are `k::m` for each k below m; None of others."""
    starts = [_start(part, len(parts)) for part in parts]
    return [starts.index(k) for k in range(len(parts))] if sorted(starts) == [*range(len(parts))] else None


def _strided(write: Write) -> int | None:
    """The one axis that the write does not take whole."""
    axes = told_axes(write.index)
    return axes[0] if len(axes) == 1 and isinstance(write.index[axes[0]], cst.Slice) else None


def _start(part: Part, steps: int) -> int:
    """k of `k::steps`, and -1 of anything else."""
    match part:
        case cst.Slice(lower=lower, upper=None, step=cst.BaseExpression() as step) if constant(step) == steps:
            start = 0 if lower is None else constant(lower)
            return -1 if start is None else start
    return -1


def _are_equally_long(writes: Sequence[Write], axis: int, source: Source) -> bool:
    """Whether all parts are seen to be of one length: the array is made `len(writes) * n` long, the values are made of
    one array by functions that leave its shape, or each of two takes what stands in the place of the other."""
    values = [write.value for write in writes if write.value is not None]
    if len(values) < len(writes):
        return False
    shaped = {source.code(_shaped(value, source)) for value in values}
    is_of_one_shape = len(shaped) == 1 and any(_is_of_one(value, source) for value in values)
    return is_of_one_shape or _is_multiple(_length(writes, axis, source), len(writes), source) or _are_turned(writes)


def _length(writes: Sequence[Write], axis: int, source: Source) -> cst.BaseExpression | None:
    """How long a new array is made along an axis."""
    made = source.meant(root(writes[0]))
    shape = argument(made, 0, "shape") if isinstance(made, cst.Call) else None
    if shape is None or not source.calls(made, *FRESH_BY_SHAPE):
        return None
    shape = source.meant(shape)
    if not isinstance(shape, cst.Tuple | cst.List):
        return shape if axis == 0 else None
    if any(isinstance(part, cst.StarredElement) for part in shape.elements):
        return None
    number = counted_axis(axis, writes[0].index)
    return shape.elements[number].value if -len(shape.elements) <= number < len(shape.elements) else None


def _is_multiple(length: cst.BaseExpression | None, times: int, source: Source) -> bool:
    """Whether a length is `times * n`, or a number that is."""
    if length is None:
        return False
    match meant := source.meant(length):
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return times in (constant(left), constant(right))
    number = constant(meant)
    return number is not None and number % times == 0


def _shaped(value: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """`t` of `-jnp.sin(t)`: an array of the same shape."""
    match meant := source.meant(value):
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _shaped(inner, source)
        case cst.Call(args=[cst.Arg(star="", keyword=None, value=given)]) if source.calls(meant, *_OF_ONE):
            return given
    return value


def _is_of_one(value: cst.BaseExpression, source: Source) -> bool:
    return _shaped(value, source) is not value


def _are_turned(writes: Sequence[Write]) -> bool:
    """`x.at[::2].set(-x[1::2]).at[1::2].set(x[::2])`: of parts that were not equally long neither would go."""
    if len(writes) != 2:
        return False
    one, other = (_taken(write.value) for write in writes)
    if one is None or other is None:
        return False
    places = [[*map(_start_of_two, elements(taken.slice))] for taken in (one, other)]
    written = [[*map(_start_of_two, write.index)] for write in writes]
    return one.value.deep_equals(other.value) and places == written[::-1]


def _start_of_two(part: Part) -> int:
    return _start(part, 2)


def _taken(value: cst.BaseExpression | None) -> cst.Subscript | None:
    match value:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _taken(inner)
        case cst.Subscript():
            return value
    return None
