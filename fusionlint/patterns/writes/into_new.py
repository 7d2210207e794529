"""A write into a new array that is all of one value: whether it goes to one place of each row, or to one place in all.

In: a write of a Source. Of such a write a comparison with `jnp.arange` says the same, and fuses. A name nobody sees a
number in is none.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import RANGES, Part, Write, constant, elements, inside, is_literal, is_none, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.axis import is_called_an_array
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.many import is_many
from fusionlint.patterns.writes.stands import is_one_place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_LIKE = {"jax.numpy.zeros_like": "0", "jax.numpy.ones_like": "1"}
_OF_SHAPE = {"jax.numpy.zeros": "0", "jax.numpy.ones": "1"}
_FULL = ("jax.numpy.full", "jax.numpy.full_like")
# What calls itself so is one number: the length of an axis, or a place.
_LENGTH = regex(r"(^|[._])(n|num|dim|size|len|length|count|n_?\w+|num_\w+|\w+_(dim|size|len|length|count|p))$")
_PLACE = regex(
    r"(^|_)(x|y|idx|index|row|col|column|action|player|agent|color|colour|step|turn|time|level|address)$|[a-z]+adr$"
)


def fill_of(write: Write, source: Source) -> str | None:
    """What a new array is full of, as code: 0 of zeros; None of any other array."""
    made = meant_in_the_end(root(write), source)
    name = source.qualified_name(made.func) if isinstance(made, cst.Call) else None
    if name in _FULL and isinstance(made, cst.Call):
        fill = argument(made, 1, "fill_value")
        is_number = fill is not None and is_literal(fill) and not isinstance(fill, cst.List | cst.Tuple)
        return source.code(fill) if fill is not None and is_number else None
    return _LIKE.get(name or "") or _OF_SHAPE.get(name or "")


def filled_with(write: Write, source: Source) -> str:
    """The same, False and True where a new array is said to hold truth values."""
    fill, made = fill_of(write, source) or "0", meant_in_the_end(root(write), source)
    said = argument(made, 1, "dtype") if isinstance(made, cst.Call) else None
    is_of_truths = said is not None and dotted(said).rpartition(".")[2] in ("bool", "bool_")
    return {"0": "False", "1": "True"}.get(fill, fill) if is_of_truths else fill


def axes_of(write: Write, source: Source) -> int | None:
    """How many axes a new array is seen to have."""
    made = meant_in_the_end(root(write), source)
    if not source.calls(made, *_OF_SHAPE, "jax.numpy.full"):
        return None
    shape = argument(made, 0, "shape")
    match source.meant(shape) if shape is not None else None:
        case cst.Tuple(elements=sizes) | cst.List(elements=sizes):
            return None if any(isinstance(size, cst.StarredElement) for size in sizes) else len(sizes)
        case cst.Integer():
            return 1
        # `n + 1` is no tuple, whatever n is.
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right) if any(
            isinstance(side, cst.Integer) for side in (left, right)
        ):
            return 1
        case cst.Call() as size if source.calls(size, "len"):
            return 1
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape")), slice=[cst.SubscriptElement(cst.Index())]):
            return 1
    return 1 if isinstance(shape, cst.Name | cst.Attribute) and _LENGTH.search(dotted(shape)) else None


def place_among_ranges(write: Write, source: Source) -> int | None:
    """Which part of the index says a place for each of what the others count: 1 of `.at[jnp.arange(n), i]`, 2 of
    `.at[jnp.arange(n)[:, None], jnp.arange(m), i]`; None of any other index."""
    counted = [_counts_along(part, source) for part in write.index]
    places = [k for k, axis in enumerate(counted) if axis is None]
    if len(write.index) < 2 or len(places) != 1:
        return None
    # Each counts along an axis of its own, the first along the first.
    along = [axis for axis in counted if axis is not None]
    if along != [*range(len(along) - 1, -1, -1)] or not _may_be_many(write.index[places[0]], source):
        return None
    return places[0]


def is_one(part: Part, source: Source) -> bool:
    """Whether a part of an index is seen to be one place, in code that runs for one element of many: what stands for
    a number anywhere, or is called as the place of one player is."""
    part = part if not isinstance(part, cst.Name) else (source.value(part) or part)
    if not isinstance(part, cst.BaseExpression) or is_called_an_array(part) or is_many(part, source):
        return False
    if _is_said_to_be_python_s(part, source):
        return False  # which XLA knows, and folds
    # What a vmap hands on may be a row of places, whatever letter stands for it.
    is_letter = isinstance(part, cst.Name) and len(part.value) == 1 and source.parameter(part) is not None
    if is_one_place(part, source) and (not is_letter or kind(part, source) == "scalar"):
        return True
    match part:
        case cst.Name(name):
            return _PLACE.search(name) is not None and not _is_looked_into(part, source)
        case cst.Attribute(attr=cst.Name(field)):
            return _PLACE.search(field) is not None
        case cst.Subscript(value=cst.Name() | cst.Attribute(), slice=slices):
            return all(constant(each) is not None for each in elements(slices))
    return False


def _is_said_to_be_python_s(part: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a parameter that is said to be an `int`."""
    parameter = source.parameter(part) if isinstance(part, cst.Name) else None
    match parameter.annotation if parameter is not None else None:
        case cst.Annotation(annotation=cst.Name("int")):
            return True
    return False


def may_be_one(part: Part, source: Source) -> bool:
    """Whether a part of an index beside one that is one place is not seen to be more."""
    if is_whole(part) or isinstance(part, cst.Slice) or is_none(part):
        return False
    return not is_called_an_array(part) and not is_many(part, source)


def _counts_along(part: Part, source: Source) -> int | None:
    """The axis from the end along which a part counts up from zero: 0 of `jnp.arange(n)`, 1 of `[:, None]` of it."""
    match part:
        case cst.Subscript(value=counted, slice=slices) if _is_a_range(meant_in_the_end(counted, source), source):
            parts = elements(slices)
            own = [k for k, each in enumerate(parts) if is_whole(each)]
            is_spread = len(own) == 1 and all(is_none(each) for k, each in enumerate(parts) if k not in own)
            return len(parts) - 1 - own[0] if is_spread else None
    if isinstance(part, cst.Name):
        value = source.value(part)
        return _counts_along(value, source) if value is not None else None
    return 0 if _is_a_range(part, source) else None


def _is_a_range(node: cst.CSTNode, source: Source) -> bool:
    return source.calls(node, *RANGES) and len(node.args) == 1


def _may_be_many(part: Part, source: Source) -> bool:
    """Whether a part may be a place for each: no slice, no number, nothing with a new axis."""
    place = meant_in_the_end(part, source)
    if isinstance(place, cst.BaseSlice) or constant(place) is not None or is_whole(place):
        return False
    return not is_a_number(place, source) and not any(map(is_none, inside(place)))


def _is_looked_into(name: cst.Name, source: Source) -> bool:
    """Whether a parameter is read as an array is: `places[0]`, `places.shape`, `for place in places`."""
    written = source.written(name)
    for read in source.reads(written) if written is not None else ():
        match source.parent(read):
            case cst.Subscript(value=value) if value is read:
                return True
            case cst.Attribute(attr=cst.Name("shape" | "ndim" | "size" | "T")) | cst.For():
                return True
    return False
