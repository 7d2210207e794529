"""Writes that are best left as they are: windows of a large array, and both halves of a symmetric one.

In: writes of a Source that follow one another. Out: whether a scatter of all of them is measured to be more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, elements, is_cut, is_fresh, is_new_axis, is_whole
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.writes.axis import SLICES, is_called_a_slice
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.many import is_many
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_HALVES = tuple(f"{module}.{name}_indices" for module in ("numpy", "jax.numpy") for name in ("triu", "tril"))


def are_windows(writes: Sequence[Write], source: Source) -> bool:
    """Whether each write is to a window of its own, of one part of an array that is there, `E.at[axis, *face]`: XLA
    updates those in place, and a scatter of the two goes over them element by element."""
    if len({tuple(map(source.code, write.index)) for write in writes}) == 1:
        return False
    return not is_fresh(root(writes[0]), source) and all(_is_window(write.index, source) for write in writes)


def _is_window(index: Sequence[Part], source: Source) -> bool:
    parts = [part for part in index if not is_whole(part)]
    return len(parts) > 1 and any(is_called_a_slice(part) or _is_cut(part, source) for part in parts)


def _is_cut(part: Part, source: Source) -> bool:
    """Whether a name is of what is called slices: `sx, sy, sz = self.grid_slice`."""
    written = source.written(part) if isinstance(part, cst.Name) else None
    made = unpacked(written, source)
    called = dotted(made.func if isinstance(made, cst.Call) else made) if made is not None else ""
    return bool(SLICES.search(called.rpartition(".")[2]))


def are_grids(writes: Sequence[Write]) -> bool:
    """Whether places of several axes are laid out along new ones, `[rows[:, None], columns[None, :]]`: grids of two
    shapes, which nothing joins."""
    return all(sum(map(_is_laid_out, write.index)) > 1 for write in writes)


def are_each_of_a_kind(writes: Sequence[Write], source: Source) -> bool:
    """Whether arrays of places stand beside slices, other slices in each write, `.at[coming, :1].set(a)` and
    `.at[leaving, -1:].set(b)`: two faces, which no one write takes."""
    cuts = {tuple(source.code(p) for p in w.index if is_cut(p)) for w in writes}
    is_apart = len(cuts) == len(writes) and () not in cuts
    return is_apart and all(any(is_many(part, source) for part in write.index) for write in writes)


def of_one_rank(writes: list[Write]) -> list[Write]:
    """All of `writes`; where some go to a grid, `[rows[:, None], columns]`, and others to places one by one,
    `[rows, rows]`, which nothing joins, the most of one kind in a row."""
    runs = (list(run) for _, run in groupby(writes, lambda write: any(map(_is_laid_out, write.index))))
    return max(runs, key=len)


def _is_laid_out(part: Part) -> bool:
    return isinstance(part, cst.Subscript) and any(map(is_new_axis, elements(part.slice)))


def is_mirrored(writes: Sequence[Write], source: Source) -> bool:
    """Whether one value goes to a triangle and to its mirror image, `.at[i, j].set(d).at[j, i].set(d)`: joined, the
    places are computed for both, and nothing is saved."""
    if len(writes) != 2 or len({source.code(w.value) for w in writes if w.value is not None}) != 1:
        return False
    one, other = ([source.code(part) for part in w.index if not is_whole(part)] for w in writes)
    return one == other[::-1] and all(_is_half(part, source) for part in writes[0].index if not is_whole(part))


def _is_half(part: Part, source: Source) -> bool:
    written = source.written(part) if isinstance(part, cst.Name) else None
    made = unpacked(written, source)
    return source.calls(made, *_HALVES)
