"""How many numbers a row of an array has, by what a field or a variable is made with: `history: Array = zeros((8, 6))`.

In: an array of a Source. Out: the numbers of one row, of an array with rows; None where a size of them is not seen.
"""

from __future__ import annotations

from math import prod

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, constant, inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.runs.options import default_of
from fusionlint.patterns.values.factors import axes_of
from fusionlint.patterns.values.how_many import whole_number
from fusionlint.source.tree import Source


def moves_no_rows(roll: cst.Call, source: Source) -> bool:
    """Whether a roll moves elements in a row, `jnp.roll(history, 8)`, by another number than a row is seen to have; by
    one, those of a matrix."""
    array, shift = argument(roll, 0, "a"), argument(roll, 1, "shift")
    if array is None or shift is None or argument(roll, 2, "axis") is not None:
        return False
    by, row = constant(shift), row_made(array, source)
    if by is None or row is None:
        return by in (1, -1) and axes_of(array, source) == "matrix"
    return abs(by) != row


def row_made(array: cst.BaseExpression, source: Source) -> int | None:
    """Of `state.history` what the one class of the file that has such a field gives it, whatever is written there."""
    made = default_of(array.attr.value, array, source) if isinstance(array, cst.Attribute) else source.meant(array)
    new = [one for one in inside(made) if source.calls(one, *FRESH_BY_SHAPE)] if made is not None else []
    shape = argument(new[0], 0, "shape") if len(new) == 1 and isinstance(new[0], cst.Call) else None
    if not isinstance(shape, cst.Tuple) or len(shape.elements) < 2:
        return None
    sizes = [whole_number(size.value, source) for size in shape.elements[1:]]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None
