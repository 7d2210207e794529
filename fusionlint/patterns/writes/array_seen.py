"""What is seen of the array that writes go to, as far as a fix needs that is to write it as one expression: how many
axes it has, what its shape is written as, what it holds.

In: an array of a Source, and the write that it begins with. Unknown is None, or "".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Write, holds, inside, is_fresh
from fusionlint.patterns.code.calls import argument, said_dtype
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.floats import are_all_alike, is_float
from fusionlint.patterns.values.masks import is_mask
from fusionlint.patterns.values.one_number import is_written_out
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.plain_parts import has_one_axis
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_FLOATS = regex(r"(^|\.)(float|bfloat)\w*$")
_INTS = regex(r"(^|\.)u?int\w*$")
# What is called as a length is.
_LENGTH = regex(r"(^|[._])(num_\w+|n_\w+|\w+_(dim|size|len|length|count)|dim|size|n)$", re.I)
_TRUTH = regex(r"_?(is|has|can|did|was)_")
# An array that is written with more than this is not written twice.
_LONG = 60


class Array(NamedTuple):
    """The array of a write: its code, how many axes it is seen to have, what its shape is written as, and what is said
    of its dtype, "float" where it is new and nothing is."""

    text: str
    is_named: bool
    axes: int | None
    sizes: tuple[str, ...]
    dtype: str


def array_of(array: cst.BaseExpression, begun: Write, source: Source) -> Array | None:
    """What is seen of the array that an expression begins with; None where it is not to be written more than once."""
    text, fresh = source.code(array), meant_in_the_end(root(begun), source)
    is_named = isinstance(array, cst.Name | cst.Attribute) or (isinstance(array, cst.Subscript) and len(text) < _LONG)
    is_named = is_named and "\n" not in text and not holds(array, cst.Call)
    sizes: tuple[str, ...] = ()
    dtype = ""
    if isinstance(fresh, cst.Call) and is_fresh(fresh, source):
        sizes, dtype = tuple(_sizes(fresh, source)), _dtype(fresh, source)
    if not is_named and (array is not fresh or not sizes or not dtype):
        return None
    return Array(text, is_named, len(sizes) or axes_of(begun, source) or _axes_seen(root(begun), source), sizes, dtype)


def _axes_seen(array: cst.BaseExpression, source: Source) -> int | None:
    """How many axes an array is said, or seen, to have."""
    said = axes_said(array, source) if isinstance(array, cst.Name) else None
    if said is not None and not any(axis[:1] in ("*", ".") for axis in said):
        return len(said)
    return 2 if is_matrix(array, source) else 1 if has_one_axis(array, source) else None


def _sizes(fresh: cst.Call, source: Source) -> Iterator[str]:
    """What the shape of a new array is written as, size by size, where each is short."""
    shape = argument(fresh, 0, "shape") if source.calls(fresh, *FRESH_BY_SHAPE) else None
    match shape:
        case cst.Tuple(elements=[*several]) if not any(isinstance(size, cst.StarredElement) for size in several):
            yield from (source.code(size.value) for size in several)
        case cst.Integer():
            yield source.code(shape)
        case cst.Name() | cst.Attribute() if _LENGTH.search(dotted(shape)):
            yield source.code(shape)


def _dtype(fresh: cst.Call, source: Source) -> str:
    """What a new array is said to hold, "float" of zeros of which nothing is said; "" where that is not seen."""
    said = said_dtype(fresh, source)
    if said is not None:
        return source.code(said)
    return "float" if source.calls(fresh, "jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty") else ""


def keeps_the_dtype(write: Write, array: Array, source: Source) -> bool:
    """Whether what is written is of the kind that the array holds: a truth value goes with any, floats are set in
    floats, and what is new and of no dtype in particular is as wide as there is, of anything but complex numbers."""
    value = write.value
    if array.dtype == "float" and value is not None:
        return not holds(value, cst.Imaginary)
    is_true = isinstance(value, cst.Name) and value.value in ("True", "False")
    if value is not None and (is_true or is_a_truth(value, source)):
        return write.method == "set"
    may_be_float = array.dtype.rpartition(".")[2] in ("", "float32") and are_all_alike(source)
    if may_be_float and (is_float(value, source) or _is_of_the_array(value, write, source)):
        return True
    if not is_written_out(value):
        return False
    if not array.dtype and (_is_no_truth(value) or is_float(root(write), source)):
        return True
    if _FLOATS.search(array.dtype):
        return True
    return _INTS.search(array.dtype) is not None and not holds(value or write.call, cst.Float, cst.Divide)


def _is_no_truth(value: cst.BaseExpression | None) -> bool:
    """Whether a number that is written out is set in numbers of its own kind: a decimal one in floats, -1 and 2 in what
    holds no truth values."""
    parts = [*inside(value)] if value is not None else []
    return any(isinstance(part, cst.Float | cst.Minus) for part in parts) or any(
        isinstance(part, cst.Integer) and part.evaluated_value > 1 for part in parts
    )


def _is_of_the_array(value: cst.BaseExpression | None, write: Write, source: Source) -> bool:
    """Whether a value is an element of the array itself, or that with a minus."""
    inner = value.expression if isinstance(value, cst.UnaryOperation) else value
    element = source.value(inner) if isinstance(inner, cst.Name) else inner
    is_not = isinstance(value, cst.UnaryOperation) and not isinstance(value.operator, cst.Minus)
    return isinstance(element, cst.Subscript) and not is_not and source.code(element.value) == dotted(root(write))


def is_a_truth(flag: cst.BaseExpression, source: Source) -> bool:
    """Whether this compares, or is called as what is true or not is."""
    meant = source.meant(flag)
    return is_mask(meant, source) or (isinstance(flag, cst.Name) and _TRUTH.match(flag.value) is not None)
