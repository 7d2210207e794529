"""A traced loop over the elements of an array: `fori_loop(0, n, lambda i, total: total + f(x[i]), 0.0)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import Part, at_write, elements, inside, names_read
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.compiled.apart import turns_apart
from fusionlint.patterns.loops.turns import FORI, WHILE, Walk, is_written, walk
from fusionlint.patterns.runs.alternatives import is_instead_of
from fusionlint.patterns.runs.loop_bodies import bodies_of, loop_bodies
from fusionlint.patterns.writes.chain import root
from fusionlint.rule import Rule
from fusionlint.source.for_nobody import is_never_read
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# A place seldom has more names on its way.
_DEPTH = 3


@rule.source("Call", calls=(FORI, WHILE))
def element_by_element(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Each turn reads one element by the loop's counter, and does scalar work with it."""
    found = walk(node, source)
    if found is None or _is_said(node, found, source) or _needs_all_so_far(found, source):
        return
    if is_never_read(node, source) or is_instead_of(node, source, FORI, WHILE):
        return
    if _makes_up_for_rounding(found, source):
        return
    array = source.code(found.read.value)
    shown = f"`{array}`" if "\n" not in array and len(array) <= 40 else "an array"
    yield source.finding(
        _where(node, found, source),
        f"{shown} is gone through one element at a time, each in tiny kernels of its own",
        write=_advice(found, node, source),
    )


@rule.barrier
def summed_turn_by_turn(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop that adds up what its turns make, none of what another one has made."""
    apart = turns_apart(barrier.computation, module)
    if apart is None or not apart.sums or apart.turns is None or "array" in apart.writes:
        return None
    return (
        f"all {apart.turns} turns at once, with whole arrays or by jax.vmap, then jnp.sum or jnp.max: a turn only adds "
        "to what the loop carries"
    )


def _where(loop: cst.Call, found: Walk, source: Source) -> cst.CSTNode:
    """The loop, or its body where that stands apart."""
    body = found.turn.body
    if isinstance(body, cst.Lambda) or source.function(body) is source.function(loop):
        return loop
    return body.name


def _is_said(loop: cst.Call, found: Walk, source: Source) -> bool:
    """Whether an earlier loop of the file runs the same body: what stands apart is found once."""
    body = found.turn.body
    if _where(loop, found, source) is loop:
        return False
    loops = (call for call in source.calls_of((FORI, WHILE)) if source.is_traced(call))
    same = (call for call in loops if body in definitions(bodies_of(call, source), source))
    return next((call for call in same if call is loop or walk(call, source) is not None), loop) is not loop


def _needs_all_so_far(found: Walk, source: Source) -> bool:
    """Whether a turn computes with the whole array that the turns write, `f.at[i].set((cost[i] + f).min())`, or with
    those of its places that stand in another one, `y.at[i].set(b[i] - jnp.sum(v[i] * y[columns[i]]))`: each needs those
    before it, and no array form gives the same."""
    carry = zip(found.turn.carried, found.turn.returned, strict=True)
    above = [source.parent(r) for part, value in carry if is_written(value, source) for r in source.reads(part)]
    return any(isinstance(one, cst.BinaryOperation) or _is_looked_up(one, found, source) for one in above)


def _is_looked_up(read: cst.CSTNode | None, found: Walk, source: Source) -> bool:
    """`y[columns[i]]`, of a place that the turn does not write, or that says what it writes elsewhere, a pair of those
    that are free: `n.at[bins[i]].set(n[bins[i]] + 1)` is a sum by segments."""
    match read:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            writes = (write for part in inside(found.turn.body.body) if (write := at_write(part)) is not None)
            is_written_too = any(source.code(part) == source.code(place) for write in writes for part in write.index)
            is_apart = is_written_too and not _goes_elsewhere(read, source.code(place), source, _DEPTH)
            return _stands_in_an_array(place, source, _DEPTH) and not is_apart
    return False


def _goes_elsewhere(part: cst.CSTNode, place: str, source: Source, depth: int) -> bool:
    """Whether what is made of `part`, under other names too, is part of anything but a write at `place`."""
    for above in source.ancestors(part):
        write = at_write(above)
        if write is not None and any(source.code(one) == place for one in write.index):
            return False
        name = source.assigned_name(above)
        if name is not None:
            return not depth or any(_goes_elsewhere(read, place, source, depth - 1) for read in source.reads(name))
    return True


def _stands_in_an_array(place: cst.BaseExpression, source: Source, depth: int) -> bool:
    """Whether an element of an array is part of what `place` is made of: `jnp.where(mask, columns[i], 0)`."""
    for part in inside(place):
        if isinstance(part, cst.Subscript):
            return True
        value = stored_in(part, source) if isinstance(part, cst.Name) and depth else None
        if value is not None and _stands_in_an_array(value, source, depth - 1):
            return True
    return False


def _needs_another(found: Walk, source: Source) -> bool | None:
    """Whether a turn reads what another one has left: a number, or a place of an array that it writes elsewhere,
    `a.at[i].set(a[i - 1] + x[i])`. None where the counter alone does not say which places it writes."""
    writes = [write for part in inside(found.turn.body.body) if (write := at_write(part)) is not None]
    if not all(any(_is_counted_off(part, found, source) for part in write.index) for write in writes):
        return None
    written = {(dotted(root(write)), *map(source.code, write.index)) for write in writes}
    arrays = {name for name, *_ in written}
    for part in inside(found.turn.body.body):
        match part:
            case cst.Subscript(value=cst.Name(array), slice=places) if array in arrays:
                if (array, *map(source.code, elements(places))) not in written:
                    return True
    for name, value in zip(found.turn.carried, found.turn.returned, strict=True):
        is_kept = isinstance(value, cst.Name) and source.written(value) is name
        if name.value not in arrays and name is not found.turn.counter and not is_kept and source.reads(name):
            return True
    return False


def _row_around(found: Walk, loop: cst.Call, source: Source) -> str | None:
    """The counter of a loop around, `i` of `c.at[i, j].set(c[i, j - 1] + x[i, j])`, where all that is read of what the
    turns write, and all that they write, is of that row."""
    around = source.function(loop)
    bodies = loop_bodies(source.project)
    if around is None or bodies.get(source.body_place(around)) != FORI or not around.params.params:
        return None
    row = around.params.params[0].name.value
    writes = [write for part in inside(found.turn.body.body) if (write := at_write(part)) is not None]
    arrays = {dotted(root(write)) for write in writes}
    places = [write.index for write in writes]
    for part in inside(found.turn.body.body):
        match part:
            case cst.Subscript(value=cst.Name(array), slice=slices) if array in arrays:
                places.append(elements(slices))
    rows = {source.code(place[0]) for place in places}
    is_own = len(rows) == 1 and all(len(place) > 1 for place in places)
    return row if is_own and {name.value for name in names_read(places[0][0])} == {row} else None


def _is_counted_off(place: Part, found: Walk, source: Source) -> bool:
    """Whether each turn has a place of its own, `i` or `n - i - 1`."""
    match source.meant(place) if isinstance(place, cst.Name) and place.value != found.turn.counter.value else place:
        case cst.Name(name):
            return name == found.turn.counter.value
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
            return _is_counted_off(left, found, source) != _is_counted_off(right, found, source)
    return False


def _makes_up_for_rounding(found: Walk, source: Source) -> bool:
    """Whether a turn keeps what the last sum lost, `lost = (total - before) - term`: added up at once, all of that is
    lost."""
    for part in inside(found.turn.body.body):
        match part:
            case cst.BinaryOperation(
                left=cst.BinaryOperation(left=cst.Name() as total, operator=cst.Subtract(), right=before),
                operator=cst.Subtract(),
                right=term,
            ):
                match source.value(total):
                    case cst.BinaryOperation(left=one, operator=cst.Add(), right=other):
                        if {source.code(one), source.code(other)} == {source.code(before), source.code(term)}:
                            return True
    return False


def _looks_further_back(found: Walk) -> bool:
    """Whether a turn is made of two before it, `p[n - 1]` and `p[n - 2]`, as the polynomials of a series are."""
    counter, carried = found.turn.counter.value, {name.value for name in found.turn.carried}
    back = set()
    for node in inside(found.turn.body.body):
        match node:
            case cst.Subscript(
                value=cst.Name(array),
                slice=[
                    cst.SubscriptElement(
                        slice=cst.Index(
                            value=cst.BinaryOperation(
                                left=cst.Name(counted), operator=cst.Subtract(), right=cst.Integer(steps)
                            )
                        )
                    ),
                    *_,
                ],
            ) if array in carried and counted == counter:
                back.add((array, steps))
    return len({array for array, _ in back}) < len(back)


def _advice(found: Walk, loop: cst.Call, source: Source) -> str:
    jnp = source.jnp
    if _looks_further_back(found):
        return (
            f"each turn needs the two before it: a Python loop over a list and one {jnp}.stack, which is a kernel or "
            "few; where there are too many turns to compile, jax.lax.scan that carries those two, with `unroll`"
        )
    needed = _needs_another(found, source) if found.is_writing else None
    row = _row_around(found, loop, source) if needed else None
    if row is not None:
        return (
            f"no row of a loop over `{row}` needs another's: what is done with one, of arrays without that axis, by "
            "jax.vmap over the rows; where few turns are left in it a Python loop"
        )
    of_the_last = "a cumulative operation or jax.lax.associative_scan where each needs the one before"
    if needed:
        return f"{of_the_last} and is linear in it, else jax.lax.scan with `unroll`; small arrays in a loop on the host"
    if found.is_writing:
        others = "for no turn needs another's" if needed is False else "where no turn needs another's"
        rest = "" if needed is False else f", {of_the_last}; small arrays in a loop on the host"
        return f"the array form: all places at once, by whole arrays or jax.vmap, {others}{rest}"
    so_far = f" ({jnp}.cumsum, where a turn goes by the sum so far)" if source.calls(loop, WHILE) else ""
    return (
        f"the array form: all elements at once{so_far}, then {jnp}.sum, {jnp}.min, {jnp}.any, or {jnp}.argmax for the "
        "first that passes a test"
    )
