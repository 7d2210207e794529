"""The steps of a loop of jax.lax that each write one place, at once: `x.at[i, y[i]].set(v)`, with an array for what
counts them.

In: a `fori_loop` of a lambda in a Source, and its one write. Out: the edits; none where a trace does not know how many
steps there are, or where a step works with more than single numbers of arrays.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    RANGES,
    Write,
    constant,
    holds,
    is_whole,
    names_read,
    reads,
)
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.loops.one_each import Turn, is_one_each_turn
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.known_values import is_static_name
from fusionlint.patterns.values.one_number import is_one_number
from fusionlint.source.tree import Source


def steps_at_once(loop: cst.Call, write: Write, source: Source, *, is_apart: bool) -> tuple[Edit, ...]:
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
