"""A loop that writes one place of an array in each step: `fori_loop(0, n, lambda i, x: x.at[i].set(f(i)), x)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    RANGES,
    Write,
    constant,
    holds,
    inside,
    is_literal,
    is_whole,
    names_read,
    reads,
)
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, brief, has_only
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.compiled.apart import turns_apart
from fusionlint.patterns.loops.one_each import Turn, is_one_each_turn
from fusionlint.patterns.loops.step_writes import LoneWrite, lone_writes
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.known_values import is_static_name
from fusionlint.patterns.values.one_number import is_one_number
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_COLLECTIVES = tuple(
    f"jax.lax.{name}"
    for name in (
        "all_gather",
        "all_to_all",
        "ragged_all_to_all",
        "ppermute",
        "pshuffle",
        "psum",
        "psum_scatter",
        "pmean",
    )
)
_FORI, _SCAN = "jax.lax.fori_loop", "jax.lax.scan"


@rule.source("Call", calls=(_FORI, _SCAN))
def written_step_by_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The body returns its carry with one place written, or added to, which depends on the step alone."""
    bodies = bodies_of(node, source)
    functions = definitions(bodies, source)
    if len(functions) != 1 or len(bodies) != 1 or not is_small(source.project, bodies[0]):
        return
    writes = lone_writes(functions[0], node, source)
    if not writes or any(one.write.value is None for one in writes) or _talks_to_others(functions[0], source):
        return
    found, is_apart = writes[0], all(one.is_apart for one in writes)
    where = "" if not isinstance(functions[0], cst.FunctionDef) else f" in `{functions[0].name.value}`"
    alone = "no step needs another" if is_apart else "no step reads what another wrote"
    more = f" and of {len(writes) - 1} more" if len(writes) > 1 else ""
    is_fixed = not more and source.calls(node, _FORI)
    yield source.finding(
        node,
        f"one place of `{source.code(found.write.array)}`{more} is written in each step{where}, and {alone}",
        write=_advice(found, source) + (", and so of the others" if more else ""),
        edits=_steps_at_once(node, found.write, source, is_apart=found.is_apart) if is_fixed else (),
        pair=int(not is_apart),
    )


@rule.barrier
def crosses_between_writes(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop whose turns each write a part of an array, and read none of it."""
    apart = turns_apart(barrier.computation, module)
    if apart is None or "array" not in apart.writes:
        return None
    return (
        "the values of all turns by jax.vmap, and one write of them; where the loop's end is computed, "
        "jnp.where(jnp.arange(n) < end, ...): no turn needs what another wrote (of two for one place, say which stays)"
    )


def _advice(found: LoneWrite, source: Source) -> str:
    write = found.write
    value = source.code(write.value) if write.value is not None else ""
    shown, name = brief(value, 40, "value"), source.code(write.array)
    is_scalar_literal = is_literal(write.value) or shown.isupper()
    jnp = source.jnp
    if not found.is_apart and is_scalar_literal:
        # One number everywhere: it does not matter which of two steps has a place.
        return f"one `{name}.at[places].set({shown})`, the places of all the steps by jax.vmap"
    if not found.is_apart:
        return (
            f"jax.vmap for all the places and all the values of `{shown}`, and one `{name}.at[places].set(values)`; "
            "where two steps may have the same place, a mask that leaves one of them, or `.max(values)`"
        )
    at_once = f"jax.vmap for all the values of `{shown}` and one `{name}.at[indices].{write.method}(values)`"
    if write.method != "set":  # at places that the data say, several times perhaps
        return at_once
    if is_scalar_literal:
        mask = f"comparisons of {jnp}.arange along each axis with the first and the last place"
        return f"`{jnp}.where(mask, {shown}, {name})`, the mask of {mask}, or one `{name}.at[indices].set({shown})`"
    return f"`{jnp}.where` of a comparison with {jnp}.arange, or {at_once}"


def _talks_to_others(body: cst.FunctionDef | cst.Lambda, source: Source) -> bool:
    """Whether a step sends something to other devices: that takes its turn."""
    return any(source.calls(part, *_COLLECTIVES) for part in inside(body.body))


def _steps_at_once(loop: cst.Call, write: Write, source: Source, *, is_apart: bool) -> tuple[Edit, ...]:
    """A line that counts the steps, and the write of all of them in place of the loop."""
    body, first = argument(loop, 2, "body_fun"), argument(loop, 3, "init_val")
    if not isinstance(body, cst.Lambda) or first is None or source.has_comment(loop) or not has_only(loop, 4):
        return ()
    step, carry = (parameter.name for parameter in body.params.params)
    jnp, numbers = source.alias_at(loop, "jax.numpy"), _numbers(loop, source)
    if jnp is None or numbers is None or not isinstance(write.array, cst.Name) or body.body is not write.call:
        return ()
    value = write.value
    if value is None or not _is_for_all(write, step.value, source, is_apart=is_apart):
        return ()
    if len(source.reads(carry)) > 1 or not isinstance(first, cst.Name | cst.Attribute | cst.Call):
        return ()
    name = free_name(step.value, loop, source)
    before = line_before(loop, f"{name} = {jnp}.arange({numbers})", source)
    if before is None:
        return ()
    counted = {read: name for read in names_read(write.call) if read.value == step.value}
    text = rewritten(write.call, {write.array: source.code(first), **counted}, source)
    return (before, in_place_of(loop, text, source))


def _numbers(loop: cst.Call, source: Source) -> str | None:
    """What `arange` counts: of bounds that are seen to be numbers of Python's."""
    begin, end = argument(loop, 0, "lower"), argument(loop, 1, "upper")
    if begin is None or end is None or not all(_is_python_s(bound, source) for bound in (begin, end)):
        return None
    return source.code(end) if constant(begin) == 0 else f"{source.code(begin)}, {source.code(end)}"


def _is_python_s(bound: cst.BaseExpression, source: Source) -> bool:
    """Whether a trace knows a bound: it is written out, called as a constant is, or a size."""
    match bound:
        case cst.Name(value=name):
            if is_called_constant(name) or is_static_name(bound, source) or _is_a_size(bound, source):
                return True
            value = source.value(bound)
            return value is not None and _is_python_s(value, source)
        case cst.BinaryOperation(left=left, right=right):
            return _is_python_s(left, source) and _is_python_s(right, source)
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return True
    return constant(bound) is not None or source.calls(bound, "len")


def _is_a_size(name: cst.Name, source: Source) -> bool:
    """Whether an array is made as long as a name says: `shape=(n,)`, `jnp.zeros(n)`."""
    written = source.written(name)
    for read in source.reads(written) if written is not None else ():
        for below, above in source.outward(read):
            if isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "shape":
                return True
            if isinstance(above, cst.Call):
                if above.args and above.args[0] is below and source.calls(above, *FRESH_BY_SHAPE, *RANGES):
                    return True
                break
    return False


def _is_for_all(write: Write, step: str, source: Source, *, is_apart: bool) -> bool:
    """Whether a write says the same of an array of all steps: one place on each axis, and one number for each of them,
    or for all."""
    value = write.value
    turn = Turn(
        step,
        lambda part: not reads(part, step),
        lambda part: is_one_number(part, source),
        lambda table, places: places == 1 and _is_an_array(table, source),
    )
    if value is None or not all(
        is_whole(part) or (isinstance(part, cst.BaseExpression) and is_one_each_turn(part, turn, source))
        for part in write.index
    ):
        return False
    if turn.is_the_same(value):
        is_a_constant = isinstance(value, cst.Name) and is_called_constant(value.value)
        return is_a_constant or is_one_number(value, source)
    return is_apart and not any(map(is_whole, write.index)) and is_one_each_turn(value, turn, source)


def _is_an_array(table: cst.BaseExpression, source: Source) -> bool:
    """Whether `table[i]`, with a traced `i`, is of an array of jax: nothing else of a function's takes that."""
    if kind(table, source) == "array" or source.calls(table, *FRESH_BY_SHAPE):
        return True
    is_plain = not holds(table, cst.Call)
    names = [*names_read(table)]
    return is_plain and all(source.facts.bound("", name.value) is None for name in names) and bool(names)
