"""Two writes to a new array, one of which sets what is the same at all its places: `x.at[kept].set(rows)`, and
`x.at[masked].set(token)`. Measured, of 147 of 196 rows: begun with the token, 4 launches are 3 on a GPU, and 18 are 8
on a TPU.

In: writes of a Source that follow one another. Out: words of advice.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Write, constant, is_literal
from fusionlint.source.tree import Source

_TWO = 2


def begun(writes: Sequence[Write], source: Source, jnp: str) -> str:
    """What to do where the two are all places that there are; "" of other writes."""
    same = [write for write in writes if write.value is not None and _is_of_all(write.value, source)]
    if len(writes) != _TWO or len(same) != 1 or any(write.method != "set" for write in writes):
        return ""
    value = same[0].value
    begin = f"{jnp}.broadcast_to({source.code(value) if value is not None else '...'}, «shape»)"
    return f"where the two are all places there are, begin with `{begin}` and write the others; elsewhere "


def _is_of_all(value: cst.BaseExpression, source: Source) -> bool:
    """Whether a value is one number, or one row, as a module keeps it: `self.param("mask", init, (1, 1, width))`."""
    match source.meant(value):
        case cst.Call(
            func=cst.Attribute(value=cst.Name("self"), attr=cst.Name("param")),
            args=[_, _, cst.Arg(value=cst.Tuple(elements=[*before, _])), *_],
        ):
            return all(constant(size.value) == 1 for size in before)
    return is_literal(value)
