"""What is told of writes one after the other, what is advised in their place, and which measured pair of the page of
chained-at-set shows what comes of it.

In: the writes and what `seen.py` sees of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Write, constant, is_static, is_whole
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.writes.axis import (
    along_one_axis,
    fuses_on_a_gpu,
    leaves,
)
from fusionlint.patterns.writes.fused import axis_of, is_worked_on_alone
from fusionlint.patterns.writes.line import cuts_of, is_known
from fusionlint.patterns.writes.many import are_arrays
from fusionlint.patterns.writes.seen import Seen
from fusionlint.source.tree import Source

# The measured pairs of the rule's page: elements by one scatter, loops, arrays of places by one scatter, places along
# an axis by `where` or a stack, these where XLA fuses a GPU's writes with what reads them, and loops that make each
# piece of the one before.
ELEMENTS, LOOP, ARRAYS, ALONG, FUSED, RECURRENT, COMPARED = range(7)


class Form(Enum):
    """What is written in place of the writes; of what there are only words for no fix is tried."""

    WORDS = auto()
    MASKS = auto()
    ONCE = auto()
    LINE = auto()
    STACK = auto()
    INDICES = auto()
    JOINED = auto()


class Advice(NamedTuple):
    """What to write, the pair of the rule's page that shows what comes of it, and what a fix makes of the writes."""

    text: str
    pair: int
    form: Form = Form.WORDS


class Told(NamedTuple):
    """What is told of: the writes, what is seen of them, and what the code calls the array and jax.numpy."""

    writes: Sequence[Write]
    seen: Seen
    array: str
    jnp: str
    source: Source


def pair_of(told: Told) -> int:
    """The measured pair that shows what comes of a `where`, a stack or a join."""
    if are_arrays(told.writes, told.source):
        return ALONG
    places = along_one_axis(told.writes)
    if places is None:
        last = told.writes[-1].call
        is_fused = (_are_parts_of_a_field(told) and not leaves(last, told.source)) or _are_slices_worked_on(told)
    else:
        is_fused = fuses_on_a_gpu(told.writes, places, told.source)
    return FUSED if is_fused else ALONG


def _are_parts_of_a_field(told: Told) -> bool:
    """Whether parts of an array that is no handful of numbers are written at places that Python knows on every axis:
    one of them is cut from its end, `[:-1]`, or on one of several axes. Such parts XLA makes one kernel of with what
    reads them, and of a row that only the run knows it does not."""
    index = [part for write in told.writes for part in write.index]
    bounds = [bound for part in index if isinstance(part, cst.Slice) for bound in (part.lower, part.upper) if bound]
    is_long = any(len(write.index) > 1 for write in told.writes) or any((constant(b) or 0) < 0 for b in bounds)
    cuts = cuts_of(index)
    return bool(bounds) and is_long and all(is_whole(part) or is_known(part, cuts) for part in index)


def _are_slices_worked_on(told: Told) -> bool:
    """Whether elementwise work alone reads what slices along one axis were set in, `best + noise.at[1:n].set(a)`: a
    trace knows where slices begin and end, and on a GPU all is one kernel, as measured, joined or not. What is cut at
    numbers that are written out may be a short vector, one of a batch: of those the parts are columns."""
    last, source = told.writes[-1].call, told.source
    cut = [part for write in told.writes for part in write.index if not is_whole(part)]
    if told.seen.methods != {"set"} or axis_of(told.writes) is None or under_vmap(last, source):
        return False
    is_short = all(is_static(part) for part in cut)
    return not is_short and all(isinstance(part, cst.Slice) for part in cut) and is_worked_on_alone(last, source)
