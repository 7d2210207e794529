"""Each write of a chain as a `where` that stands where the write stood: `jnp.where(jnp.arange(x.shape[0]) == i, a, x)`.

Nothing moves: whatever stands between the writes, reads what they left or means something else by the next one stays as
it is, behind an `if` too. In: writes of a Source that follow one another. Out: the edits, none where a place is not
seen to be one number, or a value is not seen to lie as a mask has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import Part, Write, at_write, constant, elements, inside, is_whole, told_axes
from fusionlint.patterns.code.broken import in_one_line
from fusionlint.patterns.code.calls import as_operand
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.values.below_zero import may_be_below_zero
from fusionlint.patterns.values.one_number import is_one_number
from fusionlint.patterns.writes.array_seen import Array, array_of, is_a_truth, keeps_the_dtype
from fusionlint.patterns.writes.counted import counted_once
from fusionlint.patterns.writes.into_new import filled_with
from fusionlint.patterns.writes.made import begun_with
from fusionlint.patterns.writes.merged import expressions, nested
from fusionlint.patterns.writes.sure_places import is_one_for_sure
from fusionlint.patterns.writes.words import SIGNS, all_of
from fusionlint.source.tree import Source

# One inside the other nobody reads more.
_DEEP = 5


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
    array = array_of(group[0].array, begun, source)
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
        is_kept = is_kept and (found.startswith(f"{jnp}.logical_or(") or keeps_the_dtype(write, array, source))
    is_sum = not text.startswith((f"{jnp}.where(", f"{jnp}.logical_or("))
    if not is_kept:
        dtype = f"{array.text}.dtype" if array.is_named else array.dtype
        return f"({text}).astype({dtype})" if is_sum else f"{text}.astype({dtype})"
    return f"({text})" if is_sum and _is_an_operand(group[-1].call, source) else text


def _masked(write: Write, text: str, array: Array, jnp: str, source: Source) -> str | None:
    mask = _mask(write, array, jnp, source)
    value = _value(write, array, jnp, source)
    if mask is None or value is None or len(write.call.args) != 1:
        return None
    if write.method == "set":
        flag = _flag_beside_what_is_there(write, source)
        if flag is not None:
            return f"{jnp}.logical_or({text}, {mask if ' & ' in mask else f'({mask})'} & {flag})"
        return f"{jnp}.where({mask}, {value}, {text})"
    sign, nothing = SIGNS.get(write.method, ("", ""))
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
    if not is_there or [source.code(part) for part in elements(there.slice)] != place or not is_a_truth(flag, source):
        return None
    return as_operand(flag, in_one_line(source.code(flag)))


def _is_a_sum(text: str, jnp: str) -> bool:
    return f") + {jnp}.where(" in text or f" + {jnp}.where(" in text or f" - {jnp}.where(" in text


def _is_read_back(write: Write, source: Source) -> bool:
    return any(True for _ in _reads_of_the_place(write, source))


def _mask(write: Write, array: Array, jnp: str, source: Source) -> str | None:
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
    return all_of(asked) if asked else None


def _counted(axis: int, array: Array, jnp: str) -> str | None:
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


def _length(axis: int, array: Array) -> str | None:
    size = array.sizes[axis] if -len(array.sizes) <= axis < len(array.sizes) else None
    if array.is_named and not (size or "").isdigit():
        return f"{array.text}.shape[{axis}]"
    return size


def _compared(part: Part, axis: int, array: Array, counted: str, source: Source) -> str | None:
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


def _value(write: Write, array: Array, jnp: str, source: Source) -> str | None:
    """The value as it lies beside the mask: as it is, where the places are on the first axes or it is one number."""
    value = write.value
    if value is None or isinstance(value, cst.List | cst.Tuple | cst.GeneratorExp):
        return None
    told_apart = told_axes(write.index)
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
    every = [*inside(write.value, cst.Subscript)]
    others = [node for node in every if source.code(node.value) == array and node not in found]
    return [] if others else found


def _is_an_operand(call: cst.Call, source: Source) -> bool:
    """Whether something is asked of the result where it stands, or goes into arithmetic."""
    plain = cst.Arg | cst.Assign | cst.AnnAssign | cst.Return | cst.Element | cst.Lambda | cst.Index
    return not call.lpar and not isinstance(source.parent(call), plain)
