"""One place of an array overwritten, only to reduce the array: `x.at[i].set(-jnp.inf).max()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES, Part, Write, at_write, constant, is_literal, is_whole
from fusionlint.patterns.code.calls import argument, brief, call_of
from fusionlint.patterns.compiled.readers import is_handed_out, readers_of, steps_of, value_of
from fusionlint.patterns.compiled.scattered import axes_of_one_place, scatters_at
from fusionlint.patterns.operations.softmax import LOG_SOFTMAX, SOFTMAX
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.patterns.writes.chain import chain
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_METHODS = frozenset(("sum", "max", "min", "argmax", "argmin", "mean", "any", "all", "prod"))
_REDUCTIONS = (
    *(f"jax.numpy.{name}" for name in _METHODS),
    *("jax.nn.logsumexp", "jax.scipy.special.logsumexp", "jax.numpy.nansum", *SOFTMAX, *LOG_SOFTMAX),
)
_LOGSUMEXP = ("jax.nn.logsumexp", "jax.scipy.special.logsumexp")
_PLACES = ("jax.numpy.argmax", "jax.numpy.argmin")
_LONG = 40


@rule.source("Call", calls=WRITES)
def overwritten_and_reduced(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One traced place is set to a constant, and nothing but reductions reads the array."""
    write = at_write(node)
    if write is None or write.method != "set":
        return
    place = _place(write)
    if place is None or not _is_constant(write.value, source) or len(chain(write, source)) > 1:
        return
    if _is_of_rows(place, source):
        return
    reducers = _reducers(node, source)
    if not reducers:
        return
    # The loss of one label is a case of the first pair: batches of labels go through it, wherever that is written.
    is_a_loss = all(source.calls(reducer, *_LOGSUMEXP) for reducer in reducers)
    yield source.finding(
        node,
        "one place is written by kernels of its own, only for the array to be reduced",
        write=_compared(write, place, reducers, source),
        pair=0 if is_a_loss or under_vmap(node, source) else 1,
    )


@rule.barrier
def scattered_and_reduced(barrier: Barrier, module: hlo.Module) -> str | None:
    """What one place of each row was set in by a scatter, where all that reads it reduces it."""
    if barrier.opcodes[-1:] != ("scatter",) or is_handed_out(barrier, module):
        return None
    if not any(axes_of_one_place(scatter, module) == 1 for scatter in scatters_at(barrier, module)):
        return None
    size = value_of(barrier, module).shape.nbytes
    for reader in readers_of(barrier, module):
        reduces = any(step.opcode == "reduce" for step in steps_of(reader, module))
        if not reduces or reader.shape.nbytes >= size:
            return None
    return "jnp.where(jnp.arange(n) == i, value, x) within the reduction: the write is a kernel before it"


def _place(write: Write) -> Part | None:
    """i of `.at[i]` or `.at[..., i]`, where it is a name or an element: not a slice, a number, a mask."""
    *before, last = write.index
    if not all(is_whole(part) for part in before) or constant(last) is not None:
        return None
    return last if isinstance(last, cst.Name | cst.Attribute | cst.Subscript) else None


def _is_of_rows(place: Part, source: Source) -> bool:
    """Whether the place is an array, of the largest of each row: to compare it takes more than `arange(n) == place`."""
    value = source.value(place) if isinstance(place, cst.Name) else None
    found = value if source.calls(value, *_PLACES) else None
    return found is not None and argument(found, 1, "axis") is not None


def _is_constant(value: cst.BaseExpression | None, source: Source) -> bool:
    """A number, `jnp.inf`, `-jnp.inf`."""
    match value:
        case cst.UnaryOperation(expression=inner):
            return _is_constant(inner, source)
        case cst.Attribute() | cst.Name() if source.qualified_name(value):
            return (source.qualified_name(value) or "").rpartition(".")[2] in ("inf", "nan", "pi")
    return is_literal(value)


def _reducers(node: cst.Call, source: Source) -> list[cst.Call]:
    """The reductions that take the array; none where anything else does."""
    takers = [_reducer(read, source) for read in source.readers(node)]
    found = [taker for taker in takers if taker is not None]
    return found if len(found) == len(takers) else []


def _reducer(read: cst.CSTNode, source: Source) -> cst.Call | None:
    match source.parent(read):
        case cst.Arg() as arg:
            call = source.parent(arg)
            is_first = isinstance(call, cst.Call) and call.args[0] is arg
            return call if isinstance(call, cst.Call) and is_first and source.calls(call, *_REDUCTIONS) else None
        case cst.Attribute(attr=cst.Name(method)) as attribute if method in _METHODS:
            return call_of(attribute, source)
    return None


def _compared(write: Write, place: Part, reducers: list[cst.Call], source: Source) -> str:
    jnp = source.jnp
    array = source.code(write.array)
    array = brief(array, _LONG, "x")
    value = source.code(write.value) if write.value is not None else "value"
    is_row = len(write.index) == 1 and (is_matrix(write.array, source) or any(map(_is_along_a_later_axis, reducers)))
    numbers = f"{jnp}.arange(«n»){'[:, None]' if is_row else ''}"
    return f"{jnp}.where({numbers} == {source.code(place)}, {value}, {array})"


def _is_along_a_later_axis(reducer: cst.Call) -> bool:
    """Whether an axis is said that an array of one has not: `max(1)`, `jnp.max(x, axis=1)`."""
    given = (arg.value for arg in reducer.args if arg.keyword is None or arg.keyword.value == "axis")
    return any((constant(one) or 0) >= 1 or (constant(one) or 0) < -1 for one in given)
