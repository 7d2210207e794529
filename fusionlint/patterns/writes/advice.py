"""What to write instead of writes one after the other: whichever of a stack, a scatter or a `where` says the same.

Each form rests on what `seen.py` sees of the writes; of what meets no form's obligations the words are said that hold
for any: masks compared with the places, or one write of all that is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, Write, constant, is_literal, is_static, is_whole, place_of
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.runs.loop_bodies import bodies_by_parts
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.values.masks import is_kept_mask
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.axis import (
    along_one_axis,
    are_rows_of_a_short_one,
    fuses_on_a_gpu,
    is_called_a_slice,
    leaves,
    leaves_rows_out,
    numbers_along,
    said_along,
)
from fusionlint.patterns.writes.begun import begun
from fusionlint.patterns.writes.between import are_at_one_place, is_rebound, reads_back
from fusionlint.patterns.writes.carried import is_carried
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.fused import axis_of, is_worked_on_alone
from fusionlint.patterns.writes.interleaved import interleaved, laid_by_ranges
from fusionlint.patterns.writes.line import cuts_of, is_known, of_one_line
from fusionlint.patterns.writes.many import are_arrays, are_rows_of_ranges
from fusionlint.patterns.writes.needed import change_what_is_there, may_need
from fusionlint.patterns.writes.one_place import written_once
from fusionlint.patterns.writes.seen import Seen, never_meet, see
from fusionlint.patterns.writes.stack import begins_a_list, stack
from fusionlint.patterns.writes.stands import Stands, holds_slices
from fusionlint.patterns.writes.words import FIRST, FOR_MASKS, masked
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# An advice longer than this says less than its outline.
_LONG = 60
# So many elements are listed one by one: three by three by three.
_FEW = 27
_OF_THE_EARLIER = "; if two places may be equal, make the later value from the earlier one"
_UNLESS = (
    "; not where two places may be equal, of which a scatter leaves open which value stays: there {jnp}.where, "
    "the last one outermost"
)
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


class _Told(NamedTuple):
    """What is told of: the writes, what is seen of them, and what the code calls the array and jax.numpy."""

    writes: Sequence[Write]
    seen: Seen
    array: str
    jnp: str
    source: Source


def advice(writes: Sequence[Write], name: str, source: Source) -> Advice:
    """One stack, one scatter, or a `where` over the places: whichever says the same and is measured to be less."""
    jnp = source.jnp
    told = _Told(writes, see(writes, source), dotted(root(writes[0])) or name or "x", jnp, source)
    line = of_one_line(writes, told.array, source, jnp)
    if are_at_one_place(writes, source):
        return Advice(written_once(writes, told.array, source), _pair(told), Form.ONCE)
    is_set = told.seen.methods == {"set"}
    if is_set and all(any(is_kept_mask(part, source) for part in write.index) for write in writes):
        return Advice(FOR_MASKS.format(jnp=jnp, array=told.array), ALONG)
    is_anew = reads_back(writes, source) or is_rebound(writes, source)
    # Places that are written out are those of a short one.
    is_of_any_length = is_set and line is None and not told.seen.is_written_out
    if is_of_any_length and (is_anew or change_what_is_there(writes, source)) and _are_of_a_carry(writes, source):
        again = _OF_THE_EARLIER if may_need(writes, source) else ""
        return Advice(f"{FIRST}{_all_at_once(told)}{again}", ARRAYS)
    if told.seen.are_elements and told.seen.methods == {"set"} and change_what_is_there(writes, source):
        return Advice(_one_by_one(told), _pair(told), Form.MASKS)
    if is_anew:
        again = _OF_THE_EARLIER if may_need(writes, source) else ""
        form = Form.MASKS if told.seen.are_elements and not line else Form.WORDS
        return Advice(f"{FIRST}{line or _outline(told)}{again}", _pair(told), form)
    if line is not None:
        return Advice(line, ALONG, Form.LINE)
    if begins_a_list(writes, source):
        listed = "a list that begins with them, to which the loop behind appends what it writes"
        return Advice(f"{listed}, and one {jnp}.stack of it", _pair(told))
    if (joined := stack(writes, source, jnp)) is not None:
        return Advice(joined, _pair(told), Form.STACK)
    if are_rows_of_ranges(writes, source):
        return Advice(f"one {jnp}.concatenate of the parts, and of what stands between them, in their order", ALONG)
    return _of_places(told)


def _are_of_a_carry(writes: Sequence[Write], source: Source) -> bool:
    """Whether a loop of jax.lax carries the array, where some of its body's arguments are given before, too."""
    array = root(writes[0])
    is_parameter = isinstance(array, cst.Name) and source.parameter(array) is not None
    by_parts = bodies_by_parts(source.project) if is_parameter else ()
    return is_carried(writes, source) or source.place(writes[0].call) in by_parts


def _one_by_one(told: _Told) -> str:
    """What each place is given is made of what is there: a mask says so of the whole array, in whatever order."""
    axes = told.seen.axes or ()
    mask = f"compares {told.jnp}.arange along {'that axis' if len(axes) == 1 else 'each axis'} with the place"
    return (
        f"{told.jnp}.where(mask, new, x) for each, one after the other: mask {mask}, and new is made of all of x in "
        "place of what it reads there"
    )


def _of_places(told: _Told) -> Advice:
    """The form whose obligations are seen to be met."""
    writes, seen, jnp = told.writes, told.seen, told.jnp
    if (laid := laid_by_ranges(writes, told.source, jnp)) is not None:
        return Advice(laid, ALONG)
    if _are_joined(told):
        return _joined_places(told)
    if (places := along_one_axis(writes)) is not None and seen.are_elements:
        return _along(places, told)
    if (between := interleaved(writes, told.array, told.source, jnp)) is not None:
        return Advice(between, ALONG)
    if (axis := seen.plane_axis) is not None and seen.methods == {"set"}:
        return Advice(_planes(axis, told), _pair(told))
    if seen.are_elements and seen.is_written_out:
        listed = _listed(told)
        return Advice(listed or _masked(told), _pair(told), Form.WORDS if listed else Form.MASKS)
    if seen.are_elements and (len(seen.methods) == 1 or seen.are_sums):
        return _scattered(told)
    index = [part for write in writes for part in write.index]
    named = (part for part in index if isinstance(part, cst.Name))
    if seen.methods == {"set"} and any(leaves_rows_out(name, told.source) for name in named):
        return Advice(_masked(told), ALONG)
    if any(map(is_called_a_slice, index)):
        side_by_side = f"one {jnp}.concatenate of the parts where they lie side by side"
        return Advice(f"{side_by_side}, and one `.{writes[0].method}` of that", ALONG)
    if _may_add_up(told):
        return _joined_places(told)
    return Advice(_of_slices(told), _pair(told), Form.MASKS)


def _pair(told: _Told) -> int:
    if are_arrays(told.writes, told.source):
        return ALONG
    places = along_one_axis(told.writes)
    if places is None:
        last = told.writes[-1].call
        is_fused = (_are_parts_of_a_field(told) and not leaves(last, told.source)) or _are_slices_worked_on(told)
    else:
        is_fused = fuses_on_a_gpu(told.writes, places, told.source)
    return FUSED if is_fused else ALONG


def _are_parts_of_a_field(told: _Told) -> bool:
    """Whether parts of an array that is no handful of numbers are written at places that Python knows on every axis:
    one of them is cut from its end, `[:-1]`, or on one of several axes. Such parts XLA makes one kernel of with what
    reads them, and of a row that only the run knows it does not."""
    index = [part for write in told.writes for part in write.index]
    bounds = [bound for part in index if isinstance(part, cst.Slice) for bound in (part.lower, part.upper) if bound]
    is_long = any(len(write.index) > 1 for write in told.writes) or any((constant(b) or 0) < 0 for b in bounds)
    cuts = cuts_of(index)
    return bool(bounds) and is_long and all(is_whole(part) or is_known(part, cuts) for part in index)


def _are_slices_worked_on(told: _Told) -> bool:
    """Whether elementwise work alone reads what slices along one axis were set in, `best + noise.at[1:n].set(a)`: a
    trace knows where slices begin and end, and on a GPU all is one kernel, as measured, joined or not. What is cut at
    numbers that are written out may be a short vector, one of a batch: of those the parts are columns."""
    last, source = told.writes[-1].call, told.source
    cut = [part for write in told.writes for part in write.index if not is_whole(part)]
    if told.seen.methods != {"set"} or axis_of(told.writes) is None or under_vmap(last, source):
        return False
    is_short = all(is_static(part) for part in cut)
    return not is_short and all(isinstance(part, cst.Slice) for part in cut) and is_worked_on_alone(last, source)


def _are_joined(told: _Told) -> bool:
    """Whether the places are seen to be many, and one write can take them all."""
    are_many = are_arrays(told.writes, told.source) or told.seen.are_many
    return are_many and len(told.seen.methods) == 1 and Stands.SLICE not in told.seen.stand


def _may_add_up(told: _Told) -> bool:
    """Whether one method other than `set` goes to places that may be arrays, in which one may be there twice: a mask
    would add it once."""
    is_cut = any(isinstance(part, cst.Slice | cst.Ellipsis) for write in told.writes for part in write.index)
    is_set = told.seen.methods == {"set"} or len(told.seen.methods) > 1
    return not is_cut and not is_set and not told.seen.are_numbers


def _joined_places(told: _Told) -> Advice:
    writes, method = told.writes, told.writes[0].method
    if _are_one_of_each_row(told):
        one = f"{told.jnp}.where({told.jnp}.arange(«m») == column[:, None], value[:, None], 0)"
        return Advice(f"a sum of `{one}`, one for each write, of «m» columns: no scatter", COMPARED)
    codes = (told.source.code(part).lower() for write in told.writes for part in write.index)
    indices = (
        "indices, of a mask its flatnonzero," if any("mask" in code or "~" in code for code in codes) else "indices"
    )
    is_one = len({told.source.code(write.value) for write in told.writes if write.value is not None}) == 1
    values = "values that are arrays" if is_one else "values"
    joined = f"its {indices} and {values} joined by {told.jnp}.concatenate{_unless_they_meet(told)}"
    first = begun(writes, told.source, told.jnp) if told.seen.is_new else ""
    return Advice(f"{first}one `{told.array}.at[...].{method}(...)`, {joined}", ARRAYS, Form.JOINED)


def _are_one_of_each_row(told: _Told) -> bool:
    """Whether each write adds to one column of each row of a new array: `M.at[rows, k].add(a).at[rows, k + 1].add(b)`,
    with `rows = jnp.arange(n)`."""
    if not told.seen.is_new or told.seen.methods != {"add"} or any(len(write.index) != 2 for write in told.writes):
        return False
    rows = [write.index[0] for write in told.writes]
    meant = [told.source.meant(row) for row in rows if isinstance(row, cst.Name)]
    columns = [write.index[1] for write in told.writes]
    return (
        len(meant) == len(rows)
        and all(told.source.calls(row, "jax.numpy.arange") for row in meant)
        and not any(
            not isinstance(each, cst.BaseExpression)
            or isinstance(each, cst.Ellipsis)
            or is_literal(each)
            or is_a_number(each, told.source)
            for each in columns
        )
    )


def _unless_they_meet(told: _Told) -> str:
    return _UNLESS.format(jnp=told.jnp) if _may_meet(told.writes, told.source) else ""


def _along(places: Sequence[Part], told: _Told) -> Advice:
    writes, jnp = told.writes, told.jnp
    if is_carried(writes, told.source):
        return _scattered(told)._replace(pair=ARRAYS)  # a CPU and a TPU gain nothing
    if any(_is_found_by_a_function(place, told.source) for place in places):
        of_slices = f"one {jnp}.concatenate of the parts and of what stands between them, in their order"
        otherwise = f"if not, one {jnp}.where with a mask of the places"
        return Advice(f"if the places are slices, {of_slices}; {otherwise}", _pair(told))
    return Advice(
        said_along(writes, places, told.array, told.source, jnp, are_numbers=told.seen.are_numbers),
        _pair(told),
        Form.MASKS,
    )


def _is_found_by_a_function(place: Part, source: Source) -> bool:
    """Whether a function of the project returns the place, alone or among others: a number, an array, or slices."""
    call = stored_in(place, source) if isinstance(place, cst.Name) else None
    if not isinstance(call, cst.Call):
        return False
    return dotted(call.func).startswith("self.") or ":" in (source.qualified_name(call.func) or "")


def _planes(axis: int, told: _Told) -> str:
    """One stack of what is numbered along an axis, planes and single places of some."""
    along = f", axis={axis}" if axis else ""
    rest = "what is left as it was" if told.seen.is_new else f"the others of {told.array}"
    most = max(map(len, told.seen.placed))
    single = any(len(places) == most and most > 1 for places in told.seen.placed)
    masks = f"; a single place in a part is {told.jnp}.arange along each axis, compared with it" if single else ""
    return f"one {told.jnp}.stack([...]{along}) of the parts and of {rest}{masks}"


def _listed(told: _Told) -> str | None:
    """All elements of a small new array, one by one, or of the small matrix that stands at each place of its first
    axes, `jnp.zeros((n, 3, 3)).at[:, 0, 1]`; None of others."""
    made = told.source.meant(root(told.writes[0]))
    shape = argument(made, 0, "shape") if isinstance(made, cst.Call) else None
    axes = sorted(told.seen.axes or ())
    if not isinstance(shape, cst.Tuple) or not axes:
        return None
    before = len(shape.elements) - len(axes)
    if axes not in ([*range(before, len(shape.elements))], [*range(-len(axes), 0)]):
        return None
    count = 1
    for number in (constant(size.value) for size in shape.elements[before:]):
        count *= number if number is not None and number > 0 else _FEW + 1
    if not told.source.calls(made, *FRESH_BY_SHAPE) or told.seen.methods != {"set"} or count > _FEW:
        return None
    in_order = "in their order along the last axis" if before else "in their order"
    return f"one {told.jnp}.stack of all elements {in_order}, those that are not written too, and one reshape"


def _scattered(told: _Told) -> Advice:
    """What only the run knows: one scatter to all places."""
    writes, source, jnp = told.writes, told.source, told.jnp
    method, unless = _method(told), _unless_they_meet(told)
    parts = [[source.code(places[axis]) for axis in sorted(places)] for places in told.seen.placed]
    is_whole = {len(found) for found in parts} == {len(write.index) for write in writes}
    is_called = any(isinstance(part, cst.Call) for places in told.seen.placed for part in places.values())
    # What a call returns may be an array, of any length.
    if is_whole and len(told.seen.methods) == 1 and (told.seen.are_numbers or not is_called):
        indices = ", ".join(_joined(axis, jnp) for axis in zip(*parts, strict=True))
        values = _joined([source.code(w.value) for w in writes if w.value is not None], jnp)
        settings = {", ".join(source.code(arg) for arg in write.call.args[1:]) for write in writes}
        one = f"{told.array}.at[{indices}].{method}({', '.join([values, *filter(None, settings)])})"
        if len(settings) == 1 and len(one) <= 2 * _LONG and "\n" not in one:
            return Advice(one + unless, ELEMENTS, Form.INDICES)
    return Advice(f"{_all_at_once(told)}{unless}", ELEMENTS, Form.INDICES)


def _all_at_once(told: _Told) -> str:
    """One write, whatever the places are: numbers, or arrays of any length."""
    minus = ", what is subtracted with a minus" if len(told.seen.methods) > 1 else ""
    shape = "" if told.seen.are_numbers else ", joined where they are arrays"
    return f"{told.array}.at[all the indices].{_method(told)}(all the values){shape}{minus}"


def _method(told: _Told) -> str:
    return "add" if len(told.seen.methods) > 1 else told.writes[0].method


def _of_slices(told: _Told) -> str:
    """One join of what lies side by side, a sum of what may overlap, masks of anything else."""
    seen, jnp = told.seen, told.jnp
    if seen.are_sums and seen.is_known and Stands.SLICE in seen.stand:
        return (
            f"one {jnp}.concatenate where the parts lie side by side, a sum of them behind {jnp}.pad where they overlap"
        )
    if seen.methods == {"set"} and (seen.lie_side_by_side or seen.are_a_matrix):
        joins = "block" if seen.are_a_table else "concatenate"
        return f"one {jnp}.{joins} of the parts and of what stands between them{_of_a_part(told)}"
    if seen.lie_side_by_side:
        return f"one {jnp}.concatenate where the parts lie side by side"
    return _masked(told)


def _of_a_part(told: _Told) -> str:
    """What is left to do where all lie in one part of the array, `[:, 0, 2]` and `[:, -1, 2]`."""
    return "" if told.seen.axes == told.seen.apart else ", and one write of that"


def _masked(told: _Told) -> str:
    """What holds for all places; of arrays of them beside others no one write does."""
    if Stands.MANY in told.seen.stand:
        return "the values first, then one write for each kind of places, arrays of them joined"
    are_cut = any(holds_slices(part, told.source) for write in told.writes for part in write.index)
    is_padded = (are_cut or Stands.SLICE in told.seen.stand) and not all(is_literal(w.value) for w in told.writes)
    along = f"one {told.jnp}.concatenate of the parts and of what stands between them, along one axis; along several "
    is_strided = any(leaves_rows_out(part, told.source) for write in told.writes for part in write.index)
    return (along if are_cut else "") + masked(told.jnp, is_padded=is_padded, is_strided=is_strided)


def _outline(told: _Told) -> str:
    """The same for values whose names say nothing here: they mean something else at another write."""
    seen, jnp = told.seen, told.jnp
    if stack(told.writes, told.source, jnp) is not None:
        return f"one {jnp}.stack of them"
    if are_rows_of_a_short_one(told.writes, told.source):
        return f"one {jnp}.stack of the last of each place, and of what is left as it was"
    if _are_joined(told):
        return _all_at_once(told) + _unless_they_meet(told)
    if seen.are_elements and along_one_axis(told.writes) is not None:
        chosen = f"{jnp}.where(«k» == second, ..., {jnp}.where(«k» == first, ..., {told.array}))"
        unless = "" if seen.are_numbers else ", where each place is one number"
        along = numbers_along(told.writes[0], told.source, jnp)
        return f"one {jnp}.where inside the other: {chosen}, with {along}{unless}"
    if seen.are_sums and seen.is_known and Stands.SLICE in seen.stand:
        return f"one sum of them, each brought to its place by {jnp}.pad"
    if seen.lie_side_by_side or seen.are_a_matrix:
        return f"one {jnp}.concatenate of them and of what stands between them{_of_a_part(told)}"
    if seen.are_elements and len(seen.methods) == 1:
        unless = "" if never_meet(told.writes, told.source) or seen.methods != {"set"} else _UNLESS.format(jnp=jnp)
        return _all_at_once(told) + unless
    return _masked(told)


def _may_meet(writes: Sequence[Write], source: Source) -> bool:
    """Whether another value would be left if two of the places were one: neither of values that are all the same, nor
    of two that change places."""
    if writes[0].method != "set" or len({source.code(w.value) for w in writes if w.value is not None}) == 1:
        return False
    if never_meet(writes, source):
        return False
    array = dotted(root(writes[0]))
    taken = {f"{array}[{place_of(write, source)}]" for write in writes}
    return {source.code(w.value) for w in writes if w.value is not None} != taken


def _joined(parts: Sequence[str], jnp: str) -> str:
    return parts[0] if len({*parts}) == 1 else f"{jnp}.array([{', '.join(parts)}])"
