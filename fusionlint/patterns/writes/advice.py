"""What to write instead of writes one after the other: whichever of a stack, a scatter or a `where` says the same.

Each form rests on what `seen.py` sees of the writes; of what meets no form's obligations the words are said that hold
for any: masks compared with the places, or one write of all that is joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Write
from fusionlint.patterns.runs.loop_bodies import bodies_by_parts
from fusionlint.patterns.values.masks import is_kept_mask
from fusionlint.patterns.writes.axis import (
    along_one_axis,
    is_called_a_slice,
    leaves_rows_out,
)
from fusionlint.patterns.writes.between import are_at_one_place, is_rebound, reads_back
from fusionlint.patterns.writes.carried import is_carried
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.forms import (
    all_at_once,
    along,
    are_joined,
    by_masks,
    joined_places,
    listed,
    of_slices,
    one_by_one,
    outline,
    planes,
    scattered,
)
from fusionlint.patterns.writes.interleaved import interleaved, laid_by_ranges
from fusionlint.patterns.writes.line import of_one_line
from fusionlint.patterns.writes.many import are_rows_of_ranges
from fusionlint.patterns.writes.needed import change_what_is_there, may_need
from fusionlint.patterns.writes.one_place import written_once
from fusionlint.patterns.writes.own_value import of_their_own
from fusionlint.patterns.writes.seen import see
from fusionlint.patterns.writes.stack import begins_a_list, stack
from fusionlint.patterns.writes.told import ALONG, ARRAYS, Advice, Form, Told, pair_of
from fusionlint.patterns.writes.words import FIRST, FOR_MASKS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_OF_THE_EARLIER = "; if two places may be equal, make the later value from the earlier one"


def advice(writes: Sequence[Write], name: str, source: Source) -> Advice:
    """One stack, one scatter, or a `where` over the places: whichever says the same and is measured to be less."""
    jnp = source.jnp
    told = Told(writes, see(writes, source), dotted(root(writes[0])) or name or "x", jnp, source)
    line = of_one_line(writes, told.array, source, jnp)
    if are_at_one_place(writes, source):
        return Advice(written_once(writes, told.array, source), pair_of(told), Form.ONCE)
    is_set = told.seen.methods == {"set"}
    if is_set and (own := of_their_own(writes, told.array, jnp, source)) is not None:
        return Advice(own, pair_of(told))
    if is_set and all(any(is_kept_mask(part, source) for part in write.index) for write in writes):
        return Advice(FOR_MASKS.format(jnp=jnp, array=told.array), ALONG)
    is_anew = reads_back(writes, source) or is_rebound(writes, source)
    # Places that are written out are those of a short one.
    is_of_any_length = is_set and line is None and not told.seen.is_written_out
    if is_of_any_length and (is_anew or change_what_is_there(writes, source)) and _are_of_a_carry(writes, source):
        again = _OF_THE_EARLIER if may_need(writes, source) else ""
        return Advice(f"{FIRST}{all_at_once(told)}{again}", ARRAYS)
    if told.seen.are_elements and told.seen.methods == {"set"} and change_what_is_there(writes, source):
        return Advice(one_by_one(told), pair_of(told), Form.MASKS)
    if is_anew:
        again = _OF_THE_EARLIER if may_need(writes, source) else ""
        form = Form.MASKS if told.seen.are_elements and not line else Form.WORDS
        return Advice(f"{FIRST}{line or outline(told)}{again}", pair_of(told), form)
    if line is not None:
        return Advice(line, ALONG, Form.LINE)
    if begins_a_list(writes, source):
        begun = "a list that begins with them, to which the loop behind appends what it writes"
        return Advice(f"{begun}, and one {jnp}.stack of it", pair_of(told))
    if (joined := stack(writes, source, jnp)) is not None:
        return Advice(joined, pair_of(told), Form.STACK)
    if are_rows_of_ranges(writes, source):
        return Advice(f"one {jnp}.concatenate of the parts, and of what stands between them, in their order", ALONG)
    return _of_places(told)


def _are_of_a_carry(writes: Sequence[Write], source: Source) -> bool:
    """Whether a loop of jax.lax carries the array, where some of its body's arguments are given before, too."""
    array = root(writes[0])
    is_parameter = isinstance(array, cst.Name) and source.parameter(array) is not None
    by_parts = bodies_by_parts(source.project) if is_parameter else ()
    return is_carried(writes, source) or source.place(writes[0].call) in by_parts


def _of_places(told: Told) -> Advice:
    """The form whose obligations are seen to be met."""
    writes, seen, jnp = told.writes, told.seen, told.jnp
    if (laid := laid_by_ranges(writes, told.source, jnp)) is not None:
        return Advice(laid, ALONG)
    if are_joined(told):
        return joined_places(told)
    if (places := along_one_axis(writes)) is not None and seen.are_elements:
        return along(places, told)
    if (between := interleaved(writes, told.array, told.source, jnp)) is not None:
        return Advice(between, ALONG)
    if (axis := seen.plane_axis) is not None and seen.methods == {"set"}:
        return Advice(planes(axis, told), pair_of(told))
    if seen.are_elements and seen.is_written_out:
        text = listed(told)
        return Advice(text or by_masks(told), pair_of(told), Form.WORDS if text else Form.MASKS)
    if seen.are_elements and (len(seen.methods) == 1 or seen.are_sums):
        return scattered(told)
    index = [part for write in writes for part in write.index]
    named = (part for part in index if isinstance(part, cst.Name))
    if seen.methods == {"set"} and any(leaves_rows_out(name, told.source) for name in named):
        return Advice(by_masks(told), ALONG)
    if any(map(is_called_a_slice, index)):
        side_by_side = f"one {jnp}.concatenate of the parts where they lie side by side"
        return Advice(f"{side_by_side}, and one `.{writes[0].method}` of that", ALONG)
    if _may_add_up(told):
        return joined_places(told)
    return Advice(of_slices(told), pair_of(told), Form.MASKS)


def _may_add_up(told: Told) -> bool:
    """Whether one method other than `set` goes to places that may be arrays, in which one may be there twice: a mask
    would add it once."""
    is_cut = any(isinstance(part, cst.Slice | cst.Ellipsis) for write in told.writes for part in write.index)
    is_set = told.seen.methods == {"set"} or len(told.seen.methods) > 1
    return not is_cut and not is_set and not told.seen.are_numbers
