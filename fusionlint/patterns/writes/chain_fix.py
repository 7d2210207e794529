"""The edits for writes one after the other, by the form of the advice that is given of them.

In: writes of a Source that follow one another, and the form. Out: edits, none where the code does not show that they
say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Part, Write, constant, elements, is_literal, is_whole
from fusionlint.patterns.code.calls import said_dtype
from fusionlint.patterns.code.unpacked import meant_in_the_end, unpacked
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_one_number
from fusionlint.patterns.values.same_shape import are_of_one_shape, has_an_axis
from fusionlint.patterns.writes.axis import is_called_an_array
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.masked import by_masks
from fusionlint.patterns.writes.merged import as_one
from fusionlint.patterns.writes.one_place import once
from fusionlint.patterns.writes.seen import never_meet
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.patterns.writes.told import Form
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What comes to the same in any order, also where places meet.
_IN_ANY_ORDER = ("add", "subtract", "min", "max")

# What has a number for each axis, and what is one.
_POSITION = regex(r"(^|[_.])(pos|position|loc|location|coords?)$")
_LENGTH = regex(r"^(height|width|depth|length|size|num_\w+|n_\w+)$")
# A name seldom stands for more names than this.
_DEPTH = 8


def of_chain(writes: Sequence[Write], form: Form, source: Source, *, is_path: bool) -> tuple[Edit, ...]:
    """What a fix writes in place of `writes`; `is_path` where some stand behind an `if`."""
    if form is Form.MASKS:
        return by_masks(writes, source)
    jnp = source.alias_at(writes[-1].call, "jax.numpy")
    if is_path or jnp is None:
        return ()
    match form:
        case Form.ONCE:
            text = once(writes, source.code(writes[0].array), source)
            return as_one(writes, text, source) if text is not None else ()
        case Form.LINE:
            return _line(writes, jnp, source)
        case Form.STACK:
            return _stack(writes, jnp, source)
        case Form.INDICES:
            return _indices(writes, jnp, source)
        case Form.JOINED:
            return _joined(writes, jnp, source) or _stacked(writes, jnp, source)
    return ()


def _line(writes: Sequence[Write], jnp: str, source: Source) -> tuple[Edit, ...]:
    """`x.at[i, 0].set(a).at[i, 1].set(b)` as one `x.at[i, 0:2].set(...)` of a stack: along the last axis where the
    index names all there are, along the first where it names one place."""
    *around, _ = writes[0].index
    places = {constant(write.index[-1]): write for write in writes}
    numbers = [number for number in places if number is not None]
    if len(numbers) < len(writes) or sorted(numbers) != [*range(min(numbers), min(numbers) + len(writes))]:
        return ()
    values = [places[number].value for number in sorted(numbers)]
    if any(value is None or is_literal(value) for value in values) or min(numbers) < 0:
        return ()
    if axes_of(begun_with(writes[0], source), source) == len(writes[0].index):
        axis = ", axis=-1"
    elif all(isinstance(part, cst.BaseExpression) and is_one_for_sure(part, source) for part in around):
        axis = ""
    else:
        return ()
    settings = _settings(writes, source)
    if settings is None:
        return ()
    before = "".join(f"{source.code(part)}, " for part in around)
    stack = f"{jnp}.stack([{', '.join(source.code(value) for value in values if value is not None)}]{axis})"
    array = source.code(writes[0].array)
    return as_one(writes, f"{array}.at[{before}{min(numbers)}:{max(numbers) + 1}].set({stack}{settings})", source)


def _settings(writes: Sequence[Write], source: Source) -> str | None:
    """What else than a value all writes are handed, with a comma before; None where it differs."""
    settings = {"".join(f", {source.code(arg)}" for arg in write.call.args[1:]) for write in writes}
    return settings.pop() if len(settings) == 1 else None


def _stack(writes: Sequence[Write], jnp: str, source: Source) -> tuple[Edit, ...]:
    """The numbers that a new vector is made of: each place is written."""
    array = writes[0].array
    made = meant_in_the_end(root(writes[0]), source)
    if axes_of(writes[0], source) != 1 or not isinstance(made, cst.Call) or any(len(w.call.args) > 1 for w in writes):
        return ()
    if any(isinstance(write.value, cst.List | cst.Tuple | cst.GeneratorExp) for write in writes):
        return ()
    dtype = said_dtype(made, source)
    said = f", dtype={source.code(dtype)}" if dtype is not None else ""
    values = ", ".join(source.code(write.value) for write in writes if write.value is not None)
    new = array if isinstance(array, cst.Name) else None
    return as_one(writes, f"{jnp}.stack([{values}]{said})", source, new=new)


def _indices(writes: Sequence[Write], jnp: str, source: Source) -> tuple[Edit, ...]:
    """One write to all places, each of which is seen to be one number: of one number to all of them; or of one to each,
    where the index names all axes, and no place is seen to be another's; or of rows of one shape, likewise."""
    if any(is_whole(part) or not isinstance(part, cst.BaseExpression) for write in writes for part in write.index):
        return ()
    parts = [part for write in writes for part in write.index if isinstance(part, cst.BaseExpression)]
    settings, methods = _settings(writes, source), {write.method for write in writes}
    if settings is None or len(methods) > 1 or not all(_is_one_place(part, source) for part in parts):
        return ()
    values = [write.value for write in writes if write.value is not None]
    if len(values) < len(writes) or any(isinstance(v, cst.List | cst.Tuple) for v in values):
        return ()
    codes = [source.code(value) for value in values]
    one = len({*codes}) == 1
    is_all = axes_of(begun_with(writes[0], source), source) == len(writes[0].index)
    are_rows = not any(is_one_number(value, source) for value in values) and (
        all(_is_a_row(value, source) for value in values) or _are_alike(values, source)
    )
    if not is_all and not are_rows and not (one and is_one_number(values[0], source)):
        return ()
    if not one and methods == {"set"} and not never_meet(writes, source):
        return ()
    axes = [[source.code(part) for part in along] for along in zip(*(write.index for write in writes), strict=True)]
    index = ", ".join(axis[0] if len({*axis}) == 1 else f"{jnp}.array([{', '.join(axis)}])" for axis in axes)
    if all(len({*axis}) == 1 for axis in axes):
        return ()
    value = codes[0] if one else f"{jnp}.array([{', '.join(codes)}])"
    return as_one(writes, f"{source.code(writes[0].array)}.at[{index}].{writes[0].method}({value}{settings})", source)


def _is_a_row(value: cst.BaseExpression, source: Source) -> bool:
    """Whether a value is an array, or picked out of one: as large as its place, then, and not one number for a row."""
    return kind(value, source) == "array" or isinstance(source.meant(value), cst.Subscript)


def _is_one_place(part: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a place is seen to be one number: also of a position, `y, x = position`, and of a length."""
    if depth == 0 or is_one_for_sure(part, source):
        return depth > 0
    match part:
        case cst.Name():
            value = source.value(part)
            if value is not None:
                return _is_one_place(value, source, depth - 1)
            several = unpacked(source.written(part), source)
            return isinstance(several, cst.Name | cst.Attribute) and _POSITION.search(dotted(several)) is not None
        case cst.Attribute(attr=cst.Name(field)):
            return _LENGTH.search(field) is not None
        case cst.Subscript(value=whole):
            is_number = all(constant(each) is not None for each in elements(part.slice))
            return is_number and _POSITION.search(dotted(whole)) is not None
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_one_place(side, source, depth - 1) for side in (left, right))
    return False


def _stacked(writes: Sequence[Write], jnp: str, source: Source) -> tuple[Edit, ...]:
    """One write to arrays of places that are seen to be of one shape, one beside the other: of what is added in
    whatever order, or of one number."""
    settings, first = _settings(writes, source), writes[0]
    axes, told = _axes(writes, source)
    if settings is None or not any(told) or told != sorted(told, reverse=True):
        return ()  # those that all have come last
    named = [[part for part in axis if isinstance(part, cst.BaseExpression)] for axis in axes[: sum(told)]]
    if not all(len(axis) == len(writes) and _are_alike(axis, source) for axis in named):
        return ()
    value = _stacked_value(writes, jnp, source)
    if value is None:
        return ()
    parts = [f"{jnp}.stack([{', '.join(map(source.code, axis))}])" for axis in named]
    parts += [source.code(axis[0]) for axis, is_told in zip(axes, told, strict=True) if not is_told]
    array = source.code(first.array)
    return as_one(writes, f"{array}.at[{', '.join(parts)}].{first.method}({value}{settings})", source)


def _axes(writes: Sequence[Write], source: Source) -> tuple[list[tuple[Part, ...]], list[bool]]:
    """What stands on each axis, and whether that tells the writes of one method apart; none where they all have
    something else there than all of an axis."""
    if len({(write.method, len(write.index)) for write in writes}) > 1:
        return [], []
    axes = [*zip(*(write.index for write in writes), strict=True)]
    told = [len({source.code(part) for part in axis}) > 1 for axis in axes]
    others = (axis[0] for axis, is_told in zip(axes, told, strict=True) if not is_told)
    return (axes, told) if all(map(is_whole, others)) else ([], [])


def _stacked_value(writes: Sequence[Write], jnp: str, source: Source) -> str | None:
    """What is written beside such places: the one value of all, or a stack of arrays of one shape."""
    values = [write.value for write in writes if write.value is not None]
    codes = [source.code(value) for value in values]
    if len(values) < len(writes):
        return None
    is_sum = writes[0].method in _IN_ANY_ORDER
    if len({*codes}) == 1:
        return codes[0] if is_sum or is_literal(values[0]) else None
    if not is_sum or not _are_alike(values, source) or not all(has_an_axis(value, source) for value in values):
        return None
    return f"{jnp}.stack([{', '.join(codes)}])"


def _are_alike(values: Sequence[cst.BaseExpression], source: Source) -> bool:
    return all(are_of_one_shape(values[0], value, source) for value in values[1:])


def _joined(writes: Sequence[Write], jnp: str, source: Source) -> tuple[Edit, ...]:
    """One write to arrays of places that are seen to be of one shape: of what is added to the one and taken from the
    other, `x.at[i].add(f).at[j].add(-f)`, or of one number at `i, j` and `j, i`."""
    settings = _settings(writes, source)
    first, *others = writes
    axes, told = _axes(writes, source)
    named = [part for axis, is_told in zip(axes, told, strict=True) if is_told for part in axis]
    if settings is None or not named:
        return ()
    if not all(is_called_an_array(part) and isinstance(part, cst.BaseExpression) for part in named):
        return ()
    values = [write.value for write in writes if write.value is not None]
    codes = [source.code(value) for value in values]
    if len(values) < len(writes):
        return ()
    if _are_of_one_kind(values, codes, first.method, source):
        # Behind axes that are taken whole, what is added may be a row for all of them.
        axis = ", axis=-1" if not told[0] else ""
        value = f"{jnp}.concatenate([{', '.join(codes)}]{axis})"
        if not (told[0] and told.count(True) == 1) and not (told[-1] and told.count(True) == 1):
            return ()
    elif len({*codes}) == 1 and is_literal(first.value) and all(_are_turned(first, other, source) for other in others):
        value = codes[0]
    else:
        return ()
    parts = [
        f"{jnp}.concatenate([{', '.join(map(source.code, axis))}])" if is_told else source.code(axis[0])
        for axis, is_told in zip(axes, told, strict=True)
    ]
    array = source.code(first.array)
    return as_one(writes, f"{array}.at[{', '.join(parts)}].{first.method}({value}{settings})", source)


def _are_of_one_kind(values: Sequence[cst.BaseExpression], codes: Sequence[str], method: str, source: Source) -> bool:
    """Whether two values are a name, and that with a minus."""
    if method != "add" or len(values) != 2 or any(is_one_number(value, source) for value in values):
        return False
    plain = {code.removeprefix("-").strip() for code in codes}
    return len(plain) == 1 and len({*codes}) == 2 and plain.pop().isidentifier()


def _are_turned(one: Write, other: Write, source: Source) -> bool:
    """Whether the places of one write are those of another, with the axes turned round."""
    return sorted(map(source.code, one.index)) == sorted(map(source.code, other.index))
