"""Writes to every second, third, ... place: `x.at[:, 0::2].set(a).at[:, 1::2].set(b)`.

In: writes of a Source that follow one another. Out: the one stack that lays their values in between each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.at import Part, Write, constant, is_whole
from fusionlint.patterns.calls import brief
from fusionlint.source.tree import Source

_LONG = 40


def interleaved(writes: Sequence[Write], array: str, source: Source, jnp: str) -> str | None:
    """`jnp.stack([a, b], axis=2).reshape(x.shape)` for `k::m` along one axis, once for each k below m; None of other
    writes. Values of another shape than their part, a number among them, have to be brought to it. A TPU keeps the
    last axis in its lanes: 7 launches become 5 there that move more, where a CPU and a GPU are left with one."""
    axes = {_strided(write) for write in writes}
    axis = next(iter(axes))
    if len(axes) != 1 or axis is None or any(write.method != "set" for write in writes):
        return None
    in_order = starts_of([write.index[axis] for write in writes])
    if in_order is None:
        return None
    given = (writes[i].value for i in in_order)
    values = (brief(source.code(value), _LONG) if value is not None else "..." for value in given)
    is_open = any(isinstance(part, cst.Ellipsis) for part in writes[0].index[:axis])
    behind = axis - len(writes[0].index) if is_open else axis + 1
    if is_open and behind != -1:
        return None
    stack = f"{jnp}.stack([{', '.join(values)}], axis={behind})"
    laid = f"`{stack}.reshape({array}.shape)`, of values in the shape of their parts"
    return f"{laid}; along the last axis a TPU gains little"


def starts_of(parts: Sequence[Part]) -> list[int] | None:
    """Which of `parts` comes first, second, ..., where they are `k::m` for each k below m; None of others."""
    starts = [_start(part, len(parts)) for part in parts]
    return [starts.index(k) for k in range(len(parts))] if sorted(starts) == [*range(len(parts))] else None


def _strided(write: Write) -> int | None:
    """The one axis that the write does not take whole."""
    axes = [axis for axis, part in enumerate(write.index) if not is_whole(part)]
    return axes[0] if len(axes) == 1 and isinstance(write.index[axes[0]], cst.Slice) else None


def _start(part: Part, steps: int) -> int:
    """k of `k::steps`, and -1 of anything else."""
    match part:
        case cst.Slice(lower=lower, upper=None, step=cst.BaseExpression() as step) if constant(step) == steps:
            start = 0 if lower is None else constant(lower)
            return -1 if start is None else start
    return -1
