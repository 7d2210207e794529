"""Parts that are divided, or raised to a power: jax divides all by an array of ones into which it writes the divisor.

In: a write. Out: whether XLA makes those ones within the kernel that divides, as measured on the page of
arithmetic-by-at: it does, but for columns of a table that are not its last ones.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.at import Write, constant, is_whole

BY_ONES = frozenset(("divide", "div", "power"))
# A table has two axes; of one that has more, GPUs fuse a part wherever it is.
_TABLE = 2


def is_at_an_end(write: Write) -> bool:
    """`.at[:, -1]`, `.at[..., 3:]`: what is worked on ends with its axis."""
    parts = [part for part in write.index if not is_whole(part)]
    return all(part.upper is None if isinstance(part, cst.Slice) else constant(part) == -1 for part in parts)


def has_three_axes(write: Write) -> bool:
    """`.at[:, 0, :]`, and `.at[..., 0, :]`: nobody writes `...` where it stands for one."""
    is_open = any(isinstance(part, cst.Ellipsis) for part in write.index)
    return len(write.index) + is_open > _TABLE
