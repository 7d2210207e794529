"""Parts that are divided, or raised to a power: jax divides all by an array of ones into which it writes the divisor.

In: writes of a Source. Out: whether XLA makes those ones within the kernel that divides, as measured on the page of
arithmetic-by-at: it does, but for columns of a table that are not its last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Write, constant, is_literal, is_static, is_whole
from fusionlint.source.tree import Source

BY_ONES = frozenset(("divide", "div", "power"))
# A table has two axes; of one that has more, GPUs fuse a part wherever it is.
_TABLE = 2


def are_ones_within_a_kernel(writes: Sequence[Write], source: Source) -> bool:
    """Whether all are divisions by numbers, at places that a trace knows and no kernel is made for."""
    return all(
        write.method in BY_ONES
        and write.value is not None
        and is_literal(source.meant(write.value))
        and all(map(is_static, write.index))
        and (not is_whole(write.index[0]) or is_at_an_end(write) or has_three_axes(write))
        for write in writes
    )


def is_at_an_end(write: Write) -> bool:
    """`.at[:, -1]`, `.at[..., 3:]`: what is worked on ends with its axis."""
    parts = [part for part in write.index if not is_whole(part)]
    return all(part.upper is None if isinstance(part, cst.Slice) else constant(part) == -1 for part in parts)


def has_three_axes(write: Write) -> bool:
    """`.at[:, 0, :]`, and `.at[..., 0, :]`: nobody writes `...` where it stands for one."""
    is_open = any(isinstance(part, cst.Ellipsis) for part in write.index)
    return len(write.index) + is_open > _TABLE
