"""Writes into one line of an array, part by part: `x.at[t, ::3].set(a).at[t, 1::3].set(b)`, `x.at[i, 0].set(c)`.

In: writes of a Source that follow one another. Out: the line, made first, and one write of it; and whether Python knows
where a part of it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, is_static, is_whole, names_read
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.writes.chain import shown
from fusionlint.patterns.writes.interleaved import starts_of
from fusionlint.source.tree import Source


def of_one_line(writes: Sequence[Write], array: str, source: Source, jnp: str) -> str | None:
    """What makes the line and writes it once, where each write takes a part of it on the last axis that it names; None
    of other writes."""
    *around, _ = writes[0].index
    if len({tuple(map(source.code, write.index[:-1])) for write in writes}) != 1 or not any(map(_is_a_place, around)):
        return None
    parts = [write.index[-1] for write in writes]
    is_set = all(write.method == "set" for write in writes) and all(_is_a_place(p) or is_whole(p) for p in around)
    if not is_set or len({source.code(part) for part in parts}) < len(parts):
        return None
    places = around[: max(i for i, part in enumerate(around) if _is_a_place(part)) + 1]
    at, before = (", ".join(map(source.code, some)) for some in (places, around))
    if (in_order := starts_of(parts)) is not None:
        given = (writes[i].value for i in in_order)
        values = ", ".join(shown(value, source) for value in given)
        line = f"{jnp}.stack([{values}], axis=-1).reshape({array}[{at}].shape)"
        return f"one `{array}.at[{at}].set({line})`, of values in the shape of their parts"
    numbers = sorted(number for part in parts if (number := constant(part)) is not None)
    if len(numbers) == len(parts) and 0 <= numbers[0] == numbers[-1] - len(numbers) + 1:
        cut = f"{before}, {numbers[0]}:{numbers[-1] + 1}"
        stack = f"one {jnp}.stack of the values in the order of their places, along their last axis"
        return f"{stack}, and one `{array}.at[{cut}].set(...)` of it"
    cuts = cuts_of(parts)
    if not all(is_known(part, cuts) for part in parts) or all(map(is_static, around)):
        return None
    joined = f"one {jnp}.concatenate of the parts and of what stands between them in that line, along its last axis"
    return f"{joined}, and one `{array}.at[{at}].set(...)` of it"


def _is_a_place(part: Part) -> bool:
    return not isinstance(part, cst.Slice | cst.Ellipsis | cst.List | cst.Tuple | cst.Comparison | cst.Call)


def cuts_of(parts: Sequence[Part]) -> set[str]:
    """What slices are cut at, which Python has to know; of fields nothing is said."""
    return {name.value for part in parts if isinstance(part, cst.Slice) for name in names_read(part)} - {"self"}


def is_known(part: Part, cuts: set[str]) -> bool:
    """Whether Python knows where this is: what is written out, every slice and what they are cut at, `1 + n` beside
    `1 : 1 + n`, and what is called as constants are."""
    match part:
        case cst.Name(value=name) if is_called_constant(name):
            return True
        case cst.Attribute(attr=cst.Name(name)) if name.isupper():
            return True
    return is_static(part) or isinstance(part, cst.Slice) or cuts.issuperset(name.value for name in names_read(part))
