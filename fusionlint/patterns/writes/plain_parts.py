"""What is written as it can stand in a join by itself: where the code shows its shape and its dtype, nothing has to
bring it to those of its place.

In: a write to a part of an axis, in a Source. Out: the code of what stands there; None where its shape is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import (
    TO_ARRAY,
    Part,
    Write,
    constant,
    elements,
    is_fresh,
    is_literal,
    is_whole,
    number_in,
)
from fusionlint.patterns.code.broken import in_one_line
from fusionlint.patterns.code.calls import argument, keyword, said_dtype
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.values.floats import are_all_alike, is_float
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# A name seldom stands for more names than this.
_DEPTH = 6
# What returns an array of one axis, whatever it is handed.
_OF_ONE_AXIS = tuple(
    f"{module}.{name}"
    for module in ("jax.numpy", "numpy")
    for name in ("arange", "linspace", "ravel", "diff", "hstack")
)
_OF_TWO = ("jax.numpy.maximum", "jax.numpy.minimum")
_SHAPED = tuple(f"{module}.{name}" for module in ("jax.numpy", "numpy") for name in ("zeros", "ones", "full", "empty"))


def in_a_row(writes: Sequence[Write], order: Sequence[int], source: Source) -> Sequence[str] | None:
    """The parts of a new array of one axis, all of which is written: numbers, and arrays that are seen to be such."""
    array = root(writes[0])
    if not is_fresh(array, source) or axes_of(writes[0], source) != 1:
        return None
    if any(write.method != "set" or write.value is None for write in writes):
        return None
    parts = [write.index[0] for write in writes]
    for part, write in zip(parts, writes, strict=True):
        assert write.value is not None
        if isinstance(part, cst.Slice) and not has_one_axis(write.value, source):
            return None
        if not isinstance(part, cst.Slice) and isinstance(source.meant(write.value), cst.List | cst.Tuple):
            return None
    if not any(isinstance(part, cst.Slice) for part in parts):
        return None
    return [in_one_line(source.code(writes[i].value or parts[i])) for i in order]


def in_columns(writes: Sequence[Write], order: Sequence[int], axis: int, source: Source) -> Sequence[str] | None:
    """The columns of a new array of two axes, all of which are written: each is seen to be an array of one axis."""
    made = source.meant(root(writes[0]))
    if not isinstance(made, cst.Call) or not is_fresh(made, source):
        return None
    values = [write.value for write in writes if write.value is not None and write.method == "set"]
    if len(values) < len(writes):
        return None
    are_vectors = axes_of(writes[0], source) == 2 and axis in (1, -1)
    if not (are_vectors and all(has_one_axis(value, source) for value in values)):
        return None
    return [in_one_line(source.code(values[i])) for i in order]


def dtype_of(writes: Sequence[Write], source: Source) -> str | None:
    """What has to be said of the dtype of a join in place of a new array: "" where the parts are seen to have it; None
    where nothing says which that is."""
    made = source.meant(root(writes[0]))
    if not isinstance(made, cst.Call):
        return None
    said = said_dtype(made, source)
    if said is not None:
        text = source.code(said)
        is_plain = dotted(said).rpartition(".")[2] == "float32" and are_all_alike(source)
        return "" if is_plain and any(is_float(write.value, source) for write in writes) else text
    if not source.calls(made, "jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty"):
        return None
    return "" if any(is_float(write.value, source) for write in writes) else "float"


def has_one_axis(value: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a value is seen to be an array of one axis, and no number."""
    match value if depth else None:
        case cst.Name() as name:
            meant = source.value(name)
            return _is_looked_into(name, source) if meant is None else has_one_axis(meant, source, depth - 1)
        case cst.UnaryOperation(expression=inner):
            return has_one_axis(inner, source, depth)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            either = has_one_axis(left, source, depth) or has_one_axis(right, source, depth)
            return either and not isinstance(operator, cst.MatrixMultiply)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name("ravel" | "flatten"))):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name("reshape")), args=[cst.Arg(value=size)]):
            return constant(size) is not None
        case cst.Call(args=[cst.Arg(value=first), *_]) as call if source.calls(call, *_SHAPED):
            is_number = isinstance(first, cst.Integer | cst.BinaryOperation) and not _is_of_sizes(first)
            return is_number or (isinstance(first, cst.Tuple | cst.List) and len(first.elements) == 1)
        case cst.Call(args=[cst.Arg(value=first), *_]) as call if source.calls(call, *TO_ARRAY):
            several = first.elements if isinstance(first, cst.List) else ()
            return bool(several) and all(is_a_number(each.value, source) for each in several)
        case cst.Call(args=[_, cst.Arg(value=order)]) if source.calls(value, "jax.random.permutation"):
            return has_one_axis(order, source, depth - 1)
        case cst.Call() as call:
            if source.calls(call, *_OF_ONE_AXIS) or _is_drawn_in_a_row(call, source):
                return True
            return any(has_one_axis(each, source, depth - 1) for each in operands(call, source) or ())
    return False


def _is_of_sizes(shape: cst.BaseExpression) -> bool:
    """`(3,) + x.shape[1:]`: as many axes as both have, and no number."""
    match shape:
        case cst.Tuple() | cst.List() | cst.Attribute(attr=cst.Name("shape")):
            return True
        case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return _is_of_sizes(inner)
        case cst.BinaryOperation(left=left, right=right):
            return _is_of_sizes(left) or _is_of_sizes(right)
    return False


def _is_drawn_in_a_row(call: cst.Call, source: Source) -> bool:
    """`jax.random.bernoulli(key, 0.5, shape=(n,))`."""
    shape = keyword(call, "shape") if (source.qualified_name(call.func) or "").startswith("jax.random.") else None
    return isinstance(shape, cst.Tuple) and len(shape.elements) == 1 and isinstance(shape.elements[0], cst.Element)


def _is_looked_into(name: cst.Name, source: Source) -> bool:
    """Whether a variable is read as an array of one axis is: `x[1:]`, `x[0]`, `len(x)`, `x.size`."""
    written = source.written(name)
    for read in source.reads(written) if written is not None else ():
        match source.parent(read):
            case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Slice())]) if whole is read:
                return True
            case cst.Attribute(attr=cst.Name("size")):
                return True
            case cst.Arg() as given:
                call = source.parent(given)
                if source.calls(call, "len"):
                    return True
    return False


def cut_alike(write: Write, part: Part, array: str, source: Source) -> str | None:
    """What is written at one place of an axis, made of elements of the array itself, which is called `array` here:
    `x[:, 1:2]` of `x.at[:, 0].set(x[:, 1])`."""
    if write.value is None or write.method != "set" or isinstance(part, cst.Slice):
        return None
    own = [*_own(write.value, write, part, array, source)]
    if not own or None in own:
        return None
    text = in_one_line(source.code(write.value))
    for read in own:
        assert read is not None
        text = re.sub(
            rf"(?<![\w.]){re.escape(in_one_line(source.code(read)))}", _with_an_axis(read, write, part, source), text
        )
    return text


def _own(
    value: cst.BaseExpression, write: Write, part: Part, array: str, source: Source
) -> Iterator[cst.Subscript | None]:
    """Where elementwise arithmetic reads the array at places on the same axis; None for whatever else it reads, but for
    numbers."""
    if is_literal(value) or is_a_number(value, source):
        return
    here = number_in(write.index, part)
    match value:
        case cst.Subscript(value=whole, slice=slices) if source.code(whole) == array:
            place = elements(slices)
            others = [source.code(each) for i, each in enumerate(place) if i != here]
            beside = [source.code(each) for i, each in enumerate(write.index) if i != here]
            is_one = len(place) == len(write.index) and constant(place[here]) is not None
            yield value if is_one and others == beside else None
            return
    inner = operands(value, source)
    if inner is None or isinstance(value, cst.Comparison | cst.Call):
        yield None
        return
    for each in inner:
        yield from _own(each, write, part, array, source)


def _with_an_axis(read: cst.Subscript, write: Write, part: Part, source: Source) -> str:
    """`x[:, 1:2]` for `x[:, 1]`."""
    here = number_in(write.index, part)
    place = [source.code(each) for each in elements(read.slice)]
    at = constant(elements(read.slice)[here]) or 0
    place[here] = f"{at if at else ''}:{'' if at == -1 else at + 1}"
    return f"{source.code(read.value)}[{', '.join(place)}]"


def lies_alike(write: Write, part: Part) -> bool:
    """Whether what is written to a slice is cut as the slice is: `x.at[:, 1:].set(ids[:, :-1])`, of as many axes."""
    match write.value:
        case cst.Subscript(slice=slices) if isinstance(part, cst.Slice):
            place = elements(slices)
            pairs = zip(place, write.index, strict=False)
            is_even = all(is_whole(one) if is_whole(other) else isinstance(one, cst.Slice) for one, other in pairs)
            is_open = any(isinstance(each, cst.Ellipsis) for each in (*place, *write.index))
            return len(place) == len(write.index) and is_even and not is_open
    return False


def is_of_its_dtype(write: Write, source: Source) -> bool:
    """Whether what is written is seen to hold what the array holds: it is like what that was made like, or both are
    floats."""
    made, value = source.meant(root(write)), write.value
    if source.calls(made, "jax.numpy.zeros_like", "jax.numpy.ones_like"):
        like = argument(made, 0, "a")
        if like is not None and isinstance(value, cst.Subscript) and len(made.args) == 1:
            return source.code(value.value) == source.code(like)
    return are_all_alike(source) and is_float(value, source)


def has_its_shape(write: Write, part: Part, first: cst.BaseExpression, source: Source) -> bool:
    """Whether elementwise work on the very place of an array, `first` before all writes, makes what is written there,
    `x.at[:2].set(x[:2] + y)`, or work on another place of the same axis: what is more than that would not fit in."""
    return write.value is not None and _reads_it(write.value, write.index, part, first, source)


def _reads_it(
    value: cst.BaseExpression,
    index: Sequence[Part],
    part: Part,
    first: cst.BaseExpression,
    source: Source,
    depth: int = _DEPTH,
) -> bool:
    match value if depth else None:
        case cst.Name() as name if (meant := source.value(name)) is not None:
            return _reads_it(meant, index, part, first, source, depth - 1)
        case cst.Subscript(value=whole, slice=slices) if _is_the_array(whole, first, source):
            place, here = elements(slices), [each is part for each in index].index(True)
            if len(place) != len(index):
                return False
            pairs = zip(place, index, strict=True)
            is_same = [source.code(one) == source.code(other) for one, other in pairs]
            is_single = not isinstance(part, cst.Slice) and constant(part) is not None
            is_same[here] |= is_single and constant(place[here]) is not None
            return all(is_same)
    inner = operands(value, source) or ()
    return any(_reads_it(each, index, part, first, source, depth - 1) for each in inner)


def _is_the_array(whole: cst.BaseExpression, first: cst.BaseExpression, source: Source) -> bool:
    return source.code(whole) == source.code(first) and (whole is first or is_same_at(whole, first, source))


def keeps_its_dtype(write: Write, first: cst.BaseExpression, source: Source) -> bool:
    """Whether what is written is seen to be of the dtype of that array: floats of the one width there is, or parts of
    the array itself, and what sums and choices make of those with whole numbers."""
    if are_all_alike(source) and is_float(write.value, source):
        return True
    is_kept = write.value is not None and _is_kept(write.value, first, source, _DEPTH)
    return is_kept and not is_literal(write.value)


def _is_kept(value: cst.BaseExpression, first: cst.BaseExpression, source: Source, depth: int) -> bool:
    match value if depth else None:
        case cst.Integer():
            return True
        case cst.Name() as name if (meant := source.value(name)) is not None:
            return _is_kept(meant, first, source, depth - 1)
        case cst.Subscript(value=whole):
            return _is_the_array(whole, first, source)
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _is_kept(inner, first, source, depth)
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply(), right=right):
            return all(_is_kept(side, first, source, depth) for side in (left, right))
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(value, "jax.numpy.where"):
            return all(_is_kept(side, first, source, depth) for side in (one, other))
        case cst.Call(args=[cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(value, *_OF_TWO):
            return all(_is_kept(side, first, source, depth) for side in (one, other))
    return False
