"""Arrays that are known when a program is compiled: XLA writes them out, whatever is set in them one after the other.

In: writes of a Source. Out: whether the array, the places and the values are made of numbers that are written out, of
sizes, settings and what Python counts. Of that a compiled program keeps a constant, as measured on the pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, is_cut, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.values.array_sizes import FILLED, FULL, sizes_of
from fusionlint.patterns.values.known_values import DEPTH, Reader
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source

# An array is seldom written more often in a row.
_WRITES = 32


def is_folded(writes: Sequence[Write], source: Source) -> bool:
    """Whether XLA knows the result before the program runs: known values at known places of a known array."""
    made = [root(writes[0]), *(write.value for write in writes if write.value is not None)]
    sizes = frozenset(size for one in made for size in sizes_of(one, source))
    # Where a slice ends at a field, `: self.count`, along a second axis, XLA leaves the write as it is, as measured.
    return _is_known(writes, Reader(source, sizes), Reader(source, frozenset(filter(str.isidentifier, sizes))))


def is_set_up(writes: Sequence[Write], source: Source) -> bool:
    """Whether a few writes in a row make what an object knows of itself, `bounds(self)` of a problem: numbers that are
    written out, at places that its settings say. XLA folds them, and whoever asks without a trace does so once.

    Of a loop nothing is said: so many writes are many dispatches there.
    """
    function = source.function(writes[0].call)
    if not isinstance(function, cst.FunctionDef) or source.code(function.params).strip() not in ("self", "cls"):
        return False
    sizes = frozenset(filter(str.isidentifier, sizes_of(root(writes[0]), source)))
    reader = Reader(source, sizes, is_wide=True)
    return _is_known(writes, reader, reader._replace(is_of_self=True))


def is_grid(writes: Sequence[Write], source: Source) -> bool:
    """Whether known numbers are set in a grid of places, `jnp.mgrid[:h, :w] + step`: a GPU makes it anew in the kernel
    that looks up by it, in 2 launches as measured, and in 3 of a stack; a TPU and a CPU write part after part."""
    reader = Reader(source, frozenset(), is_of_grids=True)
    return _is_known(writes, reader, reader)


def _is_known(writes: Sequence[Write], values: Reader, places: Reader) -> bool:
    """Whether one reader knows the values that are written, and the other where they are."""
    array = root(writes[0])
    return (
        values.is_array(array, _WRITES)
        and all(write.value is not None and values.is_value(write.value, write.index) for write in writes)
        and all(places.is_known(part, DEPTH) for write in writes for part in _asked(write, array, values))
    )


def _asked(write: Write, array: cst.BaseExpression, values: Reader) -> Sequence[Part]:
    """The parts of an index that have to be known: not where a slice of rows begins and ends, which a trace knows,
    `.at[begin:end]`, or `.at[:, begin:end]` of a row. Slices along other axes are left as writes, as measured, where
    more than a little is written."""
    first, *others = write.index[_ones_of(array, values.source) :] or write.index
    return () if is_cut(first) and all(map(is_whole, (*others, *write.index[: -1 - len(others)]))) else write.index


def _ones_of(array: cst.BaseExpression, source: Source) -> int:
    """How many of the first axes of a new array are one long, as its shape says."""
    made = source.meant(array)
    shape = argument(made, 0, "shape") if source.calls(made, *FILLED, *FULL) else None
    sizes = shape.elements if isinstance(shape, cst.Tuple | cst.List) else ()
    return len([*takewhile(lambda size: constant(size.value) == 1, sizes)])
