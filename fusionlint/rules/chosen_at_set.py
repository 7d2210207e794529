"""Writes that conditions let through, one after the other: `x = jnp.where(p, x.at[i].set(v), x)` twice or more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES, Write, at_write, elements, inside, is_cut, is_whole, place_of
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.compiled.chosen_writes import is_chosen_write_after_write
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.mapped import differs
from fusionlint.patterns.runs.under import is_vectorized
from fusionlint.patterns.values.known_values import DEPTH, Reader
from fusionlint.patterns.writes.carried import is_carried_array
from fusionlint.patterns.writes.chain import chain
from fusionlint.patterns.writes.chosen import (
    Chosen,
    both_written,
    choices_of_one_place,
    chosen,
    chosen_chain,
    is_chosen_again,
    is_last_choice,
)
from fusionlint.patterns.writes.into_new import is_one, may_be_one
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# The page's pairs: writes to several places, all to one, one of two, and one alone.
_PLACES, _ONE_PLACE, _BOTH, _ALONE = range(4)
_LONG = 30


@rule.source("Call", calls=WRITES)
def chosen_one_after_the_other(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The last of two or more such choices on one array. By a cond only where a vmap makes a choice of it."""
    write = at_write(node)
    last = chosen(write, source) if write is not None else None
    if last is None or not is_last_choice(last, source):
        return
    choices = chosen_chain(last, source)
    if len(choices) < 2 or not _are_of_one_form(choices) or is_concrete(node, source):
        return
    if any(_reads_another(one, source) for one in choices[1:]):
        return
    if any(one.is_cond for one in choices) and not is_vectorized(node, source):
        return
    jnp, name = source.jnp, source.code(choices[0].array)
    is_one_place = len({place_of(write, source) for one in choices for write in chain(one.write, source)}) == 1
    outside = f'where places that stay as they are lie outside: `{jnp}.where(on, i, n)`, and mode="drop"'
    yield source.finding(
        choices[0].choice,
        f"`{name}` is written {len(choices)} times in a row, and each time all of it is chosen or not",
        until=last.choice,
        write=_of_the_value(name, place_of(last.write, source), jnp)
        if is_one_place
        else f"one `{name}.at[places].{last.write.method}(values)`, {outside}",
        pair=_ONE_PLACE if is_one_place else _PLACES,
    )


@rule.source("Call", calls=WRITES)
def chosen_for_one_place(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The last of several choices that differ in what stands at one place."""
    write = at_write(node)
    choices = choices_of_one_place(write, source) if write is not None else []
    if write is None or not choices or is_concrete(node, source):
        return
    jnp, array = source.jnp, source.code(write.array)
    yield source.finding(
        choices[0],
        f"`{array}` is written {len(choices)} times at one place, and each time all of it is chosen or not",
        until=choices[-1],
        write=_of_the_value(array, place_of(write, source), jnp),
        pair=_ONE_PLACE,
    )


@rule.source("Call", calls=WRITES)
def one_of_two_writes(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first side of a choice between two writes of one array, at places that only the run knows: under a vmap each
    is a scatter. One that is known is a choice of elements to XLA."""
    write = at_write(node)
    both = both_written(write, source) if write is not None else None
    if both is None or is_concrete(node, source):
        return
    if not is_vectorized(node, source):
        return  # each write is part of the choice's kernel
    sides = both.first, both.second
    if not all(one.method == "set" and _is_of_places(one) for side in sides for one in side):
        return
    reader = Reader(source, frozenset())
    if any(all(reader.is_known(part, DEPTH) for one in side for part in one.index) for side in sides):
        return
    jnp, name = source.jnp, both.array.value
    (first, *_), (second, *_) = sides
    is_one_place = place_of(first, source) == place_of(second, source)
    place = place_of(first, source) if is_one_place else f"{jnp}.where(p, i, j)"
    is_one_write = len(both.first) == len(both.second) == 1
    yield source.finding(
        both.choice,
        f"`{name}` is written in two ways, and all of one or of the other is taken",
        write=f"{name}.at[{place}].set(value), once, with the choice made of the value alone"
        if is_one_place and is_one_write
        else f"the choice made of places and values: `{name}.at[{jnp}.where(p, i, j)].set({jnp}.where(p, v, w))`; what "
        'one side alone writes lies outside for the other, and mode="drop"',
        pair=_BOTH,
    )


@rule.source("Call", calls=WRITES)
def chosen_alone(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A single write to a place that only the run knows, there or not, of code that a vmap makes a scatter of."""
    write = at_write(node)
    one = chosen(write, source) if write is not None else None
    if write is None or one is None or one.is_cond or is_concrete(node, source):
        return
    if not is_last_choice(one, source) or len(chosen_chain(one, source)) > 1 or len(chain(write, source)) > 1:
        return
    if choices_of_one_place(write, source) or is_chosen_again(write, one.choice, source):
        return
    if _is_of_one_place(write, source) and is_vectorized(node, source):
        jnp, array = source.jnp, source.code(one.array)
        yield source.finding(
            one.choice,
            f"`{array}` is copied and written at one place, only for all of it to be chosen or not",
            write=_of_the_value(array, place_of(write, source), jnp)
            if is_carried_array(one.array, source)
            else _compared(one, array, source),
            pair=_ALONE,
        )


@rule.barrier
def chosen_whole_write_after_write(barrier: Barrier, module: hlo.Module) -> str | None:
    """The array between two writes of which each is there only if its condition holds."""
    if not is_chosen_write_after_write(barrier, module):
        return None
    return (
        'one scatter of all places, x.at[jnp.where(on, i, n)].set(v, mode="drop") leaves out those that are not on; of '
        "one place, choose the value, x.at[i].set(jnp.where(p, v, x[i]))"
    )


def _of_the_value(array: str, place: str, jnp: str) -> str:
    chosen = f"`{jnp}.where(on, new, {array}[{place}])`"
    return f"{array}.at[{place}].set(value), once, with the choices made of the value alone: {chosen}"


def _compared(one: Chosen, array: str, source: Source) -> str:
    """`jnp.where(p & (jnp.arange(n) == i), new, x)`."""
    jnp, write = source.jnp, one.write
    new = brief(source.code(write.value), _LONG, "new") if write.method == "set" and write.value else "changed"
    places = (brief(source.code(part), _LONG, f"place{axis}") for axis, part in enumerate(write.index))
    here = [f"({jnp}.arange(«n») == {place})" for place in places]
    along = "each comparison along its own axis" if len(here) > 1 else "of rows the comparison takes an axis more"
    return f"{jnp}.where({_condition(one, source)} & {' & '.join(here)}, {new}, {array}), {along}"


def _condition(one: Chosen, source: Source) -> str:
    """What lets the write through, where it is short."""
    test, written, _ = (arg.value for arg in one.choice.args)
    text = brief(source.code(test), _LONG, "p")
    is_atom = isinstance(test, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
    shown = text if text == "p" or is_atom else f"({text})"  # beside an `&`
    return shown if written is one.write.call else f"~{shown}"


def _is_of_one_place(write: Write, source: Source) -> bool:
    """Whether what is written is one place along each axis, and one of them only the run knows."""
    reader = Reader(source, frozenset())
    places = [part for part in write.index if not reader.is_known(part, DEPTH)]
    are_one = _is_of_places(write) and all(may_be_one(part, source) for part in write.index)
    return are_one and any(is_one(part, source) or differs(part, source) for part in places)


def _is_of_places(write: Write) -> bool:
    """Whether a write is to one place of each axis that it names: no part, no mask."""
    return not any(isinstance(part, cst.Slice | cst.Comparison) or is_whole(part) for part in write.index)


def _reads_another(one: Chosen, source: Source) -> bool:
    """Whether the value is made of another place of the array than it is written to, which a choice before may have
    written: `xi.at[1].set(xi[0] / a)`; or of a part, of which it may have written some: `x.at[1:].set(roll(x[1:], -1))`
    after `x.at[2:]`."""
    place = [*map(source.code, one.write.index)]
    is_part = any(map(is_cut, one.write.index))
    for node in inside(one.write.value) if one.write.value is not None else ():
        match node:
            case cst.Subscript(value=cst.Name(name), slice=slices) if name == source.code(one.array):
                if is_part or [*map(source.code, elements(slices))] != place:
                    return True
    return False


def _are_of_one_form(choices: list[Chosen]) -> bool:
    """Whether at least two of the writes could be one: places, or slices, on the same axes."""
    forms = Counter(
        (one.write.method, *("slice" if isinstance(p, cst.Slice) else "place" for p in one.write.index))
        for one in choices
        if not any(isinstance(part, cst.Comparison) or is_whole(part) for part in one.write.index)
    )
    return max(forms.values(), default=0) > 1
