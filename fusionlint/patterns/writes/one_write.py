"""Which of several writes to one array a single one could do: all in one scatter, `where` or `stack`.

In: writes one after the other, as `chain.py` finds them. Out: those of them that count, and whether one says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, Write, constant, is_literal, is_static, is_whole
from fusionlint.patterns.values.one_number import is_scalar_literal
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.folded import is_folded
from fusionlint.patterns.writes.many import are_arrays, are_rows_of_ranges, is_many
from fusionlint.patterns.writes.stands import Stands, stands
from fusionlint.source.tree import Source

# These are written where several may be at one place: of two of them no one write makes what both do.
_FOR_WHAT_MEETS = frozenset(("min", "max"))


def could_be_one(writes: Sequence[Write], source: Source) -> bool:
    """Whether one scatter, `where` or `stack` says the same: the places are written out, or at least two of them are
    of one form. A row and a column at an index that only the run knows are not."""
    if all(is_static(part) for write in writes for part in write.index):
        return True
    if any(isinstance(part, cst.Comparison) for write in writes for part in write.index):
        return False  # a mask: not code of a trace
    forms = Counter(_form(write.index, source) for write in writes)
    return max(forms.values()) > 1


def behind_a_fill(writes: list[Write]) -> list[Write]:
    """The writes behind the last one of all of the array, `x.at[:].set(0)`, where what was there before is lost; that
    one alone where none follows."""
    filled = [i for i, write in enumerate(writes) if write.method == "set" and all(map(is_whole, write.index))]
    return (writes[filled[-1] + 1 :] or writes[-1:]) if filled else writes


def folded_first(writes: list[Write], source: Source) -> int:
    """How many of the first writes XLA folds: all, or all numbers but for one write at the end, which is no chain then.
    Of several that follow all are told."""
    if is_folded(writes, source):
        return len(writes)
    *first, _ = writes
    is_one_left = bool(first) and all(_is_a_number(write.value, source) for write in first) and is_folded(first, source)
    return len(first) if is_one_left else 0


def _is_a_number(value: cst.BaseExpression | None, source: Source) -> bool:
    """One that is written out, or has a name for that, `TRUE = jnp.bool_(True)`."""
    return value is not None and (is_literal(value) or is_scalar_literal(source.meant(value), source))


def is_set_and_added(writes: Sequence[Write], source: Source) -> bool:
    """Whether one method takes many places, or such as nobody sees, and another takes others,
    `.at[born].set(e).at[parents].add(-e)`, `.at[cells].min(a).at[cells].max(b)`, or where what is there is wiped out
    before, `.at[cells].set(big).at[cells].min(a)`: no one scatter says it, and no mask."""
    places = {tuple(map(source.code, write.index)) for write in writes}
    methods = {write.method for write in writes}
    is_begun_anew = writes[0].method == "set" and {write.method for write in writes[1:]} <= _FOR_WHAT_MEETS
    if len(methods) > 1 and (methods <= _FOR_WHAT_MEETS or (is_begun_anew and len(places) == 1)):
        return any(stands(part, source) in (Stands.MANY, Stands.UNSEEN) for part in writes[0].index)
    if len(methods) == 1 or len(places) == 1:
        return False
    named = (part for write in writes for part in write.index if isinstance(part, cst.Name | cst.Attribute))
    is_unseen = any(stands(part, source) is Stands.UNSEEN for part in named)
    may_be_arrays = is_unseen and any(write.method == "set" for write in writes) and not _is_small(writes, source)
    return may_be_arrays or are_arrays(writes, source)


def _is_small(writes: Sequence[Write], source: Source) -> bool:
    """Whether a new array is as long as is written out, `jnp.zeros(4)`: arrays of places nobody has for that."""
    made = source.meant(root(writes[0]))
    is_made = source.calls(made, *FRESH_BY_SHAPE) and bool(made.args)
    return is_made and isinstance(made, cst.Call) and is_literal(made.args[0].value)


def of_one_kind(writes: list[Write], source: Source) -> list[Write]:
    """All of `writes`; where some are to an array of places and some to a number's, which no scatter has both of, the
    most numbers' in a row."""
    numbers = [all(constant(part) is not None for part in write.index) for write in writes]
    if not any(numbers) or not any(is_many(part, source) for write in writes for part in write.index):
        return writes
    if are_rows_of_ranges(writes, source):
        return writes
    runs = (list(run) for is_number, run in groupby(zip(numbers, writes, strict=True), itemgetter(0)) if is_number)
    return [write for _, write in max(runs, key=len)]


def _form(index: Sequence[Part], source: Source) -> tuple[str, ...]:
    """What stands on each axis: a place, a slice, all of it; trailing `:` say nothing."""
    form = [_kind(part, source) for part in index]
    while form and form[-1] == ":":
        form.pop()
    return tuple(form)


def _kind(part: Part, source: Source) -> str:
    if is_whole(part):
        return ":"
    if isinstance(part, cst.Slice):
        return "slice"
    if isinstance(part, cst.Call):
        # diag_indices and tril_indices are places of different shapes.
        return source.qualified_name(part.func) or "place"
    return "place"
