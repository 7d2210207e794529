"""Each write of a chain as a `where` that stands where the write stood: `jnp.where(jnp.arange(x.shape[0]) == i, a, x)`.

Nothing moves: whatever stands between the writes, reads what they left or means something else by the next one stays as
it is, behind an `if` too. In: writes of a Source that follow one another. Out: the edits, none where a place is not
seen to be one number, or a value is not seen to lie as a mask has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    Part,
    Write,
    at_write,
    constant,
    elements,
    inside,
    is_fresh,
    is_whole,
)
from fusionlint.patterns.code.broken import in_one_line
from fusionlint.patterns.code.calls import argument, as_operand, said_dtype
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.below_zero import may_be_below_zero
from fusionlint.patterns.values.floats import are_all_alike, is_float
from fusionlint.patterns.values.masks import is_mask
from fusionlint.patterns.values.one_number import is_one_number, is_written_out
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.counted import counted_once
from fusionlint.patterns.writes.into_new import axes_of, filled_with
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.merged import expressions, nested
from fusionlint.patterns.writes.places import meant
from fusionlint.patterns.writes.plain_parts import has_one_axis
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What a method does, and what changes nothing by it.
_SIGNS = {"add": ("+", "0"), "subtract": ("-", "0"), "multiply": ("*", "1"), "mul": ("*", "1"), "divide": ("/", "1")}
_FLOATS = regex(r"(^|\.)(float|bfloat)\w*$")
_INTS = regex(r"(^|\.)u?int\w*$")
# What is called as a length is.
_LENGTH = regex(r"(^|[._])(num_\w+|n_\w+|\w+_(dim|size|len|length|count)|dim|size|n)$", re.I)
_TRUTH = regex(r"_?(is|has|can|did|was)_")
# One inside the other nobody reads more.
_DEEP = 5
# An array that is written with more than this is not written twice.
_LONG = 60


class _Array(NamedTuple):
    """The array of a write: its code, how many axes it is seen to have, what its shape is written as, and what is said
    of its dtype, "float" where it is new and nothing is."""

    text: str
    is_named: bool
    axes: int | None
    sizes: tuple[str, ...]
    dtype: str


def by_masks(writes: Sequence[Write], source: Source) -> tuple[Edit, ...]:
    """A `where` in place of each of `writes`; those of one expression one inside the other."""
    jnp = source.alias_at(writes[0].call, "jax.numpy")
    begun = begun_with(writes[0], source)
    groups = [*expressions(writes), *_in_other_branches(writes, source)]
    if jnp is None or any(source.has_comment(group[-1].call) for group in groups):
        return ()
    texts = [text for group in groups if (text := _written(group, begun, jnp, source)) is not None]
    if len(texts) < len(groups):
        return ()
    calls = [group[-1].call for group in groups]
    edits = [source.replace(call, text) for call, text in zip(calls, texts, strict=True)]
    told = [*counted_once(writes, [group[0].array for group in groups], edits, source)]
    laid_out = [in_place_of(call, told.pop(0).text, source) for call in calls]
    return (*laid_out, *told)  # a line before them, if any


def _in_other_branches(writes: Sequence[Write], source: Source) -> Iterator[list[Write]]:
    """The writes to the same variable that stand between these, in branches that another path takes."""
    first, last = source.order(writes[0].call), source.order(writes[-1].call)
    told = {id(write.call) for write in writes}
    names = {name.value: name for write in writes if (name := source.assigned_name(write.call)) is not None}
    for name in names.values():
        for use in source.uses(name):
            write = at_write(assigned(use.node, source)) if use.is_write and first < use.order < last else None
            if write is not None and id(write.call) not in told:
                yield nested(write)


def _written(group: Sequence[Write], begun: Write, jnp: str, source: Source) -> str | None:
    array = _array(group[0].array, begun, source)
    if array is None:
        return None
    if len(group) > _DEEP:
        return None  # nobody reads such a nest
    text, is_kept = array.text, True
    told = [part for part in group[0].index if not is_whole(part)]
    if not array.is_named and group[0].method == "set" and len(told) == len(array.sizes):
        text = filled_with(begun, source)  # the mask is as large as the array
    for write in group:
        found = _masked(write, text, array, jnp, source)
        if found is None:
            return None
        text = found
        is_kept = is_kept and (found.startswith(f"{jnp}.logical_or(") or _keeps_the_dtype(write, array, source))
    is_sum = not text.startswith((f"{jnp}.where(", f"{jnp}.logical_or("))
    if not is_kept:
        dtype = f"{array.text}.dtype" if array.is_named else array.dtype
        return f"({text}).astype({dtype})" if is_sum else f"{text}.astype({dtype})"
    return f"({text})" if is_sum and _is_an_operand(group[-1].call, source) else text


def _array(array: cst.BaseExpression, begun: Write, source: Source) -> _Array | None:
    """What is seen of the array that an expression begins with; None where it is not to be written more than once."""
    text, fresh = source.code(array), meant(root(begun), source)
    is_named = isinstance(array, cst.Name | cst.Attribute) or (isinstance(array, cst.Subscript) and len(text) < _LONG)
    is_named = is_named and "\n" not in text and not any(isinstance(part, cst.Call) for part in inside(array))
    sizes: tuple[str, ...] = ()
    dtype = ""
    if isinstance(fresh, cst.Call) and is_fresh(fresh, source):
        sizes, dtype = tuple(_sizes(fresh, source)), _dtype(fresh, source)
    if not is_named and (array is not fresh or not sizes or not dtype):
        return None
    return _Array(text, is_named, len(sizes) or axes_of(begun, source) or _axes_seen(root(begun), source), sizes, dtype)


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


def _keeps_the_dtype(write: Write, array: _Array, source: Source) -> bool:
    """Whether what is written is of the kind that the array holds: a truth value goes with any, floats are set in
    floats, and what is new and of no dtype in particular is as wide as there is, of anything but complex numbers."""
    value = write.value
    if array.dtype == "float" and value is not None:
        return not any(isinstance(part, cst.Imaginary) for part in inside(value))
    is_true = isinstance(value, cst.Name) and value.value in ("True", "False")
    if value is not None and (is_true or _is_a_truth(value, source)):
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
    return _INTS.search(array.dtype) is not None and not any(
        isinstance(part, cst.Float | cst.Divide) for part in inside(value or write.call)
    )


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


def _masked(write: Write, text: str, array: _Array, jnp: str, source: Source) -> str | None:
    mask = _mask(write, array, jnp, source)
    value = _value(write, array, jnp, source)
    if mask is None or value is None or len(write.call.args) != 1:
        return None
    if write.method == "set":
        flag = _flag_beside_what_is_there(write, source)
        if flag is not None:
            return f"{jnp}.logical_or({text}, {mask if ' & ' in mask else f'({mask})'} & {flag})"
        return f"{jnp}.where({mask}, {value}, {text})"
    sign, nothing = _SIGNS.get(write.method, ("", ""))
    if not sign or (_is_read_back(write, source)):
        return None
    is_sum = sign in "+-"
    before = text if is_sum or not _is_a_sum(text, jnp) else f"({text})"
    return f"{before} {sign} {jnp}.where({mask}, {value}, {nothing})"


def _flag_beside_what_is_there(write: Write, source: Source) -> str | None:
    """`flag` of `x.at[i].set(jnp.logical_or(x[i], flag))`, in brackets where that takes some: one truth value, which
    goes to where the mask is."""
    match write.value:
        case cst.Call(args=[cst.Arg(value=there, keyword=None), cst.Arg(value=flag, keyword=None)]) as call:
            if not source.calls(call, "jax.numpy.logical_or") or not isinstance(there, cst.Subscript):
                return None
        case _:
            return None
    place = [source.code(part) for part in write.index]
    is_there = source.code(there.value) == source.code(write.array)
    if not is_there or [source.code(part) for part in elements(there.slice)] != place or not _is_a_truth(flag, source):
        return None
    return as_operand(flag, in_one_line(source.code(flag)))


def _is_a_truth(flag: cst.BaseExpression, source: Source) -> bool:
    """Whether this compares, or is called as what is true or not is."""
    meant = source.meant(flag)
    return is_mask(meant, source) or (isinstance(flag, cst.Name) and _TRUTH.match(flag.value) is not None)


def _is_a_sum(text: str, jnp: str) -> bool:
    return f") + {jnp}.where(" in text or f" + {jnp}.where(" in text or f" - {jnp}.where(" in text


def _is_read_back(write: Write, source: Source) -> bool:
    return any(True for _ in _reads_of_the_place(write, source))


def _mask(write: Write, array: _Array, jnp: str, source: Source) -> str | None:
    """Where the array is written: `jnp.arange(n) == i`, one comparison for each axis that is not taken whole."""
    asked: list[str] = []
    is_open = False
    for number, part in enumerate(write.index):
        is_open = is_open or isinstance(part, cst.Ellipsis)
        if is_whole(part):
            continue
        axis = number - len(write.index) if is_open else number
        counted = _counted(axis, array, jnp)
        compared = _compared(part, axis, array, counted, source) if counted is not None else None
        if compared is None:
            return None
        asked.append(compared)
    if not asked:
        return None
    return asked[0] if len(asked) == 1 else " & ".join(f"({one})" for one in asked)


def _counted(axis: int, array: _Array, jnp: str) -> str | None:
    """The numbers of the places along an axis, in the shape in which they compare with the array."""
    length = _length(axis, array)
    if length is None:
        return None
    behind = array.axes - 1 - axis if axis >= 0 and array.axes is not None else -1 - axis
    if axis >= 0 and array.axes is None:
        return f"{jnp}.indices({array.text}.shape, sparse=True)[{axis}]" if array.is_named else None
    count = f"{jnp}.arange({length})"
    if behind < 0:
        return None
    return f"{count}[:{', None' * behind}]" if behind else count


def _length(axis: int, array: _Array) -> str | None:
    size = array.sizes[axis] if -len(array.sizes) <= axis < len(array.sizes) else None
    if array.is_named and not (size or "").isdigit():
        return f"{array.text}.shape[{axis}]"
    return size


def _compared(part: Part, axis: int, array: _Array, counted: str, source: Source) -> str | None:
    if not isinstance(part, cst.BaseExpression) or not is_one_for_sure(part, source) or "\n" in source.code(part):
        return None
    number = constant(part)
    if number is not None and number < 0:
        length = _length(axis, array) or ""
        return f"{counted} == {int(length) + number if length.isdigit() else f'{length} - {-number}'}"
    if may_be_below_zero(part, source):
        return None
    is_operand = isinstance(
        part, cst.Name | cst.Attribute | cst.Subscript | cst.Call | cst.Integer | cst.BinaryOperation
    )
    return f"{counted} == {source.code(part)}" if is_operand else None


def _value(write: Write, array: _Array, jnp: str, source: Source) -> str | None:
    """The value as it lies beside the mask: as it is, where the places are on the first axes or it is one number."""
    value = write.value
    if value is None or isinstance(value, cst.List | cst.Tuple | cst.GeneratorExp):
        return None
    told_apart = [i for i, part in enumerate(write.index) if not is_whole(part)]
    text = in_one_line(source.code(value))
    if value.lpar and "\n" in text:
        text = f"({text})"
    if is_one_number(value, source):
        return text
    if told_apart == [*range(len(told_apart))]:
        return _with_all(write, text, source)
    is_last = any(isinstance(part, cst.Ellipsis) for part in write.index[:-1]) or array.axes == len(write.index)
    if is_last and told_apart == [len(write.index) - 1]:
        return f"{jnp}.expand_dims({text}, -1)"
    return None


def _with_all(write: Write, text: str, source: Source) -> str:
    """The value made of all of the array in place of what it reads at the place, `f(x)` for `f(x[i])`, where each step
    on the way is elementwise."""
    for read in _reads_of_the_place(write, source):
        pattern = rf"(?<![\w.]){re.escape(in_one_line(source.code(read)))}"
        text = re.sub(pattern, source.code(read.value).replace("\\", r"\\"), text)
    return text


def _reads_of_the_place(write: Write, source: Source) -> list[cst.Subscript]:
    """Where a value reads the array at the place that is written, if all that is made of it is elementwise."""
    if write.value is None:
        return []
    place, array = [source.code(part) for part in write.index], source.code(write.array)
    found: list[cst.Subscript] = []
    todo = [write.value]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Subscript) and source.code(node.value) == array:
            if [source.code(part) for part in elements(node.slice)] == place:
                found.append(node)
        else:
            todo += operands(node, source) or ()
    every = [node for node in inside(write.value) if isinstance(node, cst.Subscript)]
    others = [node for node in every if source.code(node.value) == array and node not in found]
    return [] if others else found


def _is_an_operand(call: cst.Call, source: Source) -> bool:
    """Whether something is asked of the result where it stands, or goes into arithmetic."""
    plain = cst.Arg | cst.Assign | cst.AnnAssign | cst.Return | cst.Element | cst.Lambda | cst.Index
    return not call.lpar and not isinstance(source.parent(call), plain)
