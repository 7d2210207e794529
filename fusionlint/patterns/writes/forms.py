"""How each form of advice about writes one after the other is said: a stack, a scatter, a join, a `where`.

In: what is told of the writes. Out: the words, and of some the whole Advice, with the measured pair that shows what
comes of it. Which form holds is `advice.py`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Part, Write, constant, is_literal, place_of
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.axis import (
    along_one_axis,
    are_rows_of_a_short_one,
    leaves_rows_out,
    numbers_along,
    said_along,
)
from fusionlint.patterns.writes.begun import begun
from fusionlint.patterns.writes.carried import is_carried
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.many import are_arrays
from fusionlint.patterns.writes.seen import never_meet
from fusionlint.patterns.writes.stack import stack
from fusionlint.patterns.writes.stands import Stands, holds_slices
from fusionlint.patterns.writes.told import ARRAYS, COMPARED, ELEMENTS, Advice, Form, Told, pair_of
from fusionlint.patterns.writes.words import masked
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# An advice longer than this says less than its outline.
_LONG = 60
# So many elements are listed one by one: three by three by three.
_FEW = 27
_UNLESS = (
    "; not where two places may be equal, of which a scatter leaves open which value stays: there {jnp}.where, "
    "the last one outermost"
)


def one_by_one(told: Told) -> str:
    """What each place is given is made of what is there: a mask says so of the whole array, in whatever order."""
    axes = told.seen.axes or ()
    mask = f"compares {told.jnp}.arange along {'that axis' if len(axes) == 1 else 'each axis'} with the place"
    return (
        f"{told.jnp}.where(mask, new, x) for each, one after the other: mask {mask}, and new is made of all of x in "
        "place of what it reads there"
    )


def are_joined(told: Told) -> bool:
    """Whether the places are seen to be many, and one write can take them all."""
    are_many = are_arrays(told.writes, told.source) or told.seen.are_many
    return are_many and len(told.seen.methods) == 1 and Stands.SLICE not in told.seen.stand


def joined_places(told: Told) -> Advice:
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


def _are_one_of_each_row(told: Told) -> bool:
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


def _unless_they_meet(told: Told) -> str:
    return _UNLESS.format(jnp=told.jnp) if _may_meet(told.writes, told.source) else ""


def along(places: Sequence[Part], told: Told) -> Advice:
    writes, jnp = told.writes, told.jnp
    if is_carried(writes, told.source):
        return scattered(told)._replace(pair=ARRAYS)  # a CPU and a TPU gain nothing
    if any(_is_found_by_a_function(place, told.source) for place in places):
        of_slices = f"one {jnp}.concatenate of the parts and of what stands between them, in their order"
        otherwise = f"if not, one {jnp}.where with a mask of the places"
        return Advice(f"if the places are slices, {of_slices}; {otherwise}", pair_of(told))
    return Advice(
        said_along(writes, places, told.array, told.source, jnp, are_numbers=told.seen.are_numbers),
        pair_of(told),
        Form.MASKS,
    )


def _is_found_by_a_function(place: Part, source: Source) -> bool:
    """Whether a function of the project returns the place, alone or among others: a number, an array, or slices."""
    call = stored_in(place, source) if isinstance(place, cst.Name) else None
    if not isinstance(call, cst.Call):
        return False
    return dotted(call.func).startswith("self.") or ":" in (source.qualified_name(call.func) or "")


def planes(axis: int, told: Told) -> str:
    """One stack of what is numbered along an axis, planes and single places of some."""
    along = f", axis={axis}" if axis else ""
    rest = "what is left as it was" if told.seen.is_new else f"the others of {told.array}"
    most = max(map(len, told.seen.placed))
    single = any(len(places) == most and most > 1 for places in told.seen.placed)
    masks = f"; a single place in a part is {told.jnp}.arange along each axis, compared with it" if single else ""
    return f"one {told.jnp}.stack([...]{along}) of the parts and of {rest}{masks}"


def listed(told: Told) -> str | None:
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


def scattered(told: Told) -> Advice:
    """What only the run knows: one scatter to all places."""
    writes, source, jnp = told.writes, told.source, told.jnp
    method, unless = _method(told), _unless_they_meet(told)
    pair = ARRAYS if _are_corners(told) else ELEMENTS
    parts = [[source.code(places[axis]) for axis in sorted(places)] for places in told.seen.placed]
    is_whole = {len(found) for found in parts} == {len(write.index) for write in writes}
    is_called = any(isinstance(part, cst.Call) for places in told.seen.placed for part in places.values())
    # What a call returns may be an array, of any length.
    if is_whole and len(told.seen.methods) == 1 and (told.seen.are_numbers or not is_called):
        indices = ", ".join(_joined(axis, jnp) for axis in zip(*parts, strict=True))
        values = _joined([source.code(w.value) for w in writes if w.value is not None], jnp)
        settings = _settings(told)
        one = f"{told.array}.at[{indices}].{method}({', '.join([values, *filter(None, settings)])})"
        if len(settings) == 1 and len(one) <= 2 * _LONG and "\n" not in one:
            return Advice(one + unless, pair, Form.INDICES)
    return Advice(f"{all_at_once(told)}{unless}", pair, Form.INDICES)


def _are_corners(told: Told) -> bool:
    """Whether weights are spread over the places around each, `.at[i, j].add(a).at[i, j + 1].add(b)`: those of many
    points, of which a TPU takes one after the other either way."""
    is_spread = told.seen.methods == {"add"} and not told.seen.are_numbers
    return is_spread and never_meet(told.writes, told.source)


def all_at_once(told: Told) -> str:
    """One write, whatever the places are: numbers, or arrays of any length."""
    minus = ", what is subtracted with a minus" if len(told.seen.methods) > 1 else ""
    shape = "" if told.seen.are_numbers else ", joined where they are arrays"
    settings = _settings(told)
    values = ", ".join(["all the values", *(filter(None, settings) if len(settings) == 1 else ())])
    return f"{told.array}.at[all the indices].{_method(told)}({values}){shape}{minus}"


def _settings(told: Told) -> set[str]:
    """What the writes are told beside their values, `mode="drop"`; more than one where they differ in that."""
    return {", ".join(told.source.code(arg) for arg in write.call.args[1:]) for write in told.writes}


def _method(told: Told) -> str:
    return "add" if len(told.seen.methods) > 1 else told.writes[0].method


def of_slices(told: Told) -> str:
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
    return by_masks(told)


def _of_a_part(told: Told) -> str:
    """What is left to do where all lie in one part of the array, `[:, 0, 2]` and `[:, -1, 2]`."""
    return "" if told.seen.axes == told.seen.apart else ", and one write of that"


def by_masks(told: Told) -> str:
    """What holds for all places; of arrays of them beside others no one write does."""
    if Stands.MANY in told.seen.stand:
        return "one write for each kind of places, arrays of them joined"
    are_cut = any(holds_slices(part, told.source) for write in told.writes for part in write.index)
    is_padded = (are_cut or Stands.SLICE in told.seen.stand) and not all(is_literal(w.value) for w in told.writes)
    along = f"one {told.jnp}.concatenate of the parts and of what stands between them, along one axis; along several "
    is_strided = any(leaves_rows_out(part, told.source) for write in told.writes for part in write.index)
    return (along if are_cut else "") + masked(told.jnp, is_padded=is_padded, is_strided=is_strided)


def outline(told: Told) -> str:
    """The same for values whose names say nothing here: they mean something else at another write."""
    seen, jnp = told.seen, told.jnp
    if stack(told.writes, told.source, jnp) is not None:
        return f"one {jnp}.stack of them"
    if are_rows_of_a_short_one(told.writes, told.source):
        return f"one {jnp}.stack of the last of each place, and of what is left as it was"
    if are_joined(told):
        return all_at_once(told) + _unless_they_meet(told)
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
        return all_at_once(told) + unless
    return by_masks(told)


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
