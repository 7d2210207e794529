"""The entries of small matrices, one matrix for each element: `jnp.zeros((n, 2, 2)).at[:, 0, 0].set(a)`.

In: writes of a Source that follow one another. Out: whether they are such entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Write, constant, is_literal, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source

# So many entries are listed one by one: four by four, and a few more.
_FEW = 27
# Fewer than these are no formula for a matrix.
_ENTRIES = 3


def are_entries(writes: Sequence[Write], source: Source) -> bool:
    """Whether each write sets one entry, at a known row and column, of all matrices of a new array, to what may be as
    long as the array is."""
    sizes = _sizes(root(writes[0]), source)
    if (
        len(writes) < _ENTRIES
        or len(sizes) < 3
        or any(write.method != "set" or is_literal(write.value) for write in writes)
    ):
        return False
    rows, columns = sizes[-2:]
    are_few = rows is not None and columns is not None and rows * columns <= _FEW
    return are_few and None not in sizes[-2:] and all(_is_entry(write, len(sizes)) for write in writes)


def _is_entry(write: Write, rank: int) -> bool:
    *around, row, column = write.index if len(write.index) > 2 else (None, None, None)
    is_seen = row is not None and column is not None and None not in (constant(row), constant(column))
    are_whole = all(part is not None and is_whole(part) for part in around)
    return is_seen and are_whole and (len(write.index) == rank or isinstance(around[0], cst.Ellipsis))


def _sizes(array: cst.BaseExpression, source: Source) -> list[int | None]:
    """The sizes of a new array, where they are written out one by one; None for those that are no numbers."""
    made = source.meant(array)
    if not source.calls(made, *FRESH_BY_SHAPE):
        return []
    shape = source.meant(argument(made, 0, "shape"))
    parts = shape.elements if isinstance(shape, cst.Tuple | cst.List) else ()
    return [constant(part.value) for part in parts]
