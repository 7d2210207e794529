"""Ones written into zeros by a scatter: `jnp.zeros((n, k)).at[jnp.arange(n), labels].set(1)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import (
    WRITES,
    Part,
    Write,
    at_write,
    constant,
    elements,
    is_literal,
    is_static,
    is_whole,
)
from fusionlint.patterns.code.calls import argument, as_operand, brief
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.compiled.behind import is_number
from fusionlint.patterns.compiled.scattered import axes_of_one_place, is_one_of_each_row, scatters_at
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.mapped import counts_elements
from fusionlint.patterns.runs.under import is_vectorized, under_vmap
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.chain import chain, is_last, root, write_on
from fusionlint.patterns.writes.compared import at_one_place, of_each_row, one_hot
from fusionlint.patterns.writes.firsts import are_few_firsts
from fusionlint.patterns.writes.folded import is_folded
from fusionlint.patterns.writes.heavy import is_made_for_a_loop, is_read_by_a_loop
from fusionlint.patterns.writes.into_new import axes_of, fill_of, filled_with, is_one, may_be_one, place_among_ranges
from fusionlint.patterns.writes.places import diagonal
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_PLACES = ("jax.numpy.argmax", "jax.numpy.argmin")
_LONG = 40


@rule.source("Call", calls=WRITES)
def one_hot_scattered(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A write into a new array that nothing else reads, at one place of each row or column, or at one place in all."""
    write = at_write(node)
    if write is None or write.method != "set" or write.value is None:
        return
    if not _is_new(write, source) or diagonal(write, source) is not None:
        return
    if is_folded([write], source) or all(map(_is_known, write.index)):
        return
    if not is_last(write, source) or len(chain(write, source)) > 1 or _is_written_on(node, source):
        return  # of several writes chained-at-set speaks
    if is_made_for_a_loop(node, source) or is_read_by_a_loop(node, source):
        return
    if not is_concrete(node, source):
        yield from _of_ones(write, source) or _of_values(write, source)


@rule.barrier
def one_of_each_row(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into a scatter of one number in each row of a new matrix, or comes out of it."""
    if not any(is_one_of_each_row(scatter, module) for scatter in scatters_at(barrier, module)):
        return None
    return "jnp.where(jnp.arange(n) == i, new, old), of ones in zeros jax.nn.one_hot: it fuses with what reads it"


@rule.barrier(pair=2)
def one_place_of_each(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of any values, and of planes."""
    for scatter in scatters_at(barrier, module):
        axes = axes_of_one_place(scatter, module)
        if axes and is_number(scatter.operand(0, module), module):
            where = "jnp.arange(n) == i" if axes == 1 else "(rows == i) & (columns == j)"
            return f"jnp.where({where}, new, old), with the places counted by jnp.arange: it fuses with what reads it"
    return None


def _of_ones(write: Write, source: Source) -> list[Finding]:
    """The literal 1 set at one place of each row or column of zeros, or at one place of a plane of zeros; or, under a
    vmap, any number at one place of a vector of zeros, or in one row."""
    node, is_mapped = write.call, under_vmap(write.call, source)
    if fill_of(write, source) != "0" or not (_is_one(write.value) or (_is_of_one_axis(write, source) and is_mapped)):
        return []
    if _is_of_rows(write, source):
        what, instead = "row", _one_hot(write.index[1], _length(write, 1, source), "", source)
        return [_of_each(write, what, instead, 0, source, _fix(write, 1, source))]
    if _is_of_columns(write, source):
        instead = _one_hot(write.index[0], _length(write, 0, source), ", axis=0", source)
        return [_of_each(write, "column", instead, 0, source, _fix(write, 0, source))]
    if _is_probe(node, source) or are_few_firsts([write], source):
        return []
    if not (_is_of_a_plane(write, source) or (_is_of_a_row(write, source) and is_mapped)):
        return []
    return [_of_one(write, source)]


def _of_values(write: Write, source: Source) -> list[Finding]:
    """Whatever is set at one place of each row of zeros; or at one place of a new array, in code that a vmap makes a
    scatter of."""
    node = write.call
    if are_few_firsts([write], source):
        return []
    among = place_among_ranges(write, source)
    if among is not None and axes_of(write, source) == len(write.index):
        found = of_each_row(write, source) if among == 1 else None
        edits = found[1] if found is not None else ()
        return [_of_each(write, "row", _chosen(write, among, source), 2, source, edits)]
    if source.in_loop(node) or _is_probe(node, source):
        return []
    if not is_vectorized(node, source) or axes_of(write, source) != len(write.index):
        return []
    places = [part for part in write.index if not _is_known(part)]
    if not all(may_be_one(part, source) for part in places) or not any(is_one(part, source) for part in places):
        return []
    return [_of_one(write, source)]


def _of_each(write: Write, what: str, instead: str, pair: int, source: Source, edits: tuple[Edit, ...] = ()) -> Finding:
    value = "the one" if _is_one(write.value) else "the number"
    message = f"a scatter writes {value} of each {what} into an array of {_kind(write, source)}"
    return source.finding(write.call, message, write=instead, edits=edits, pair=pair)


def _of_one(write: Write, source: Source) -> Finding:
    single = "a single one" if _is_one(write.value) else "a single number"
    message = f"a scatter writes {single} into an array of {_kind(write, source)}"
    found = at_one_place(write, source)
    edits = found[1] if found is not None else ()
    return source.finding(write.call, message, write=_compared(write, source), edits=edits, pair=1)


def _kind(write: Write, source: Source) -> str:
    return {"0": "zeros", "1": "ones"}.get(fill_of(write, source) or "", "one value")


def _is_known(part: Part) -> bool:
    """Whether a trace has a number here: what is written out, what a class has, `Yaku.PINFU`, or what an object was
    made with, `self.mask_token`."""
    match part:
        case cst.Attribute(value=cst.Name(value=owner)):
            return owner == "self" or owner.lstrip("_")[:1].isupper()
    return is_static(part)


def _is_probe(node: cst.Call, source: Source) -> bool:
    """Whether all of it goes into a function of somebody: `operator(zeros.at[i].set(1))`, which is most of the work; or
    says in which direction one is differentiated, `jax.jvp(f, (x,), (zeros.at[i].set(1.0),))`, and is such as x is."""
    name = source.assigned_name(node)
    reads = source.reads(name) if name is not None else [node]
    return bool(reads) and all(
        _is_a_direction(read, source)
        or (
            (call := source.handed_to(read)) is not None
            and not (source.qualified_name(call.func) or "").startswith("jax.")
        )
        for read in reads
    )


def _is_a_direction(read: cst.CSTNode, source: Source) -> bool:
    """Whether `read` is a tangent that `jax.jvp` is handed."""
    several = source.parent(source.parent(read) or read)
    call = source.handed_to(several) if isinstance(several, cst.Tuple | cst.List) else None
    return source.calls(call, "jax.jvp") and argument(call, 2, "tangents") is several


def _is_of_rows(write: Write, source: Source) -> bool:
    """`.at[arange(n), i]`."""
    return len(write.index) == 2 and place_among_ranges(write, source) == 1


def _is_of_columns(write: Write, source: Source) -> bool:
    """`.at[i, arange(n)]`."""
    return len(write.index) == 2 and place_among_ranges(write, source) == 0


def _is_of_a_plane(write: Write, source: Source) -> bool:
    """`.at[row, column]` or `.at[tuple(position)]`, at a place that is seen to be one."""
    if len(write.index) == 1:
        return source.calls(write.index[0], "tuple")
    return all(_is_place(part, source) or constant(part) is not None for part in write.index) and any(
        constant(part) is None for part in write.index
    )


def _is_of_a_row(write: Write, source: Source) -> bool:
    """`.at[i]` and `.at[i, :]` for a place that is seen to be one."""
    return all(map(is_whole, write.index[1:])) and _is_place(write.index[0], source)


def _is_of_one_axis(write: Write, source: Source) -> bool:
    """Whether what is written is a number, in zeros that are seen to have one axis, or one line."""
    return (len(write.index) == 1 and axes_of(write, source) == 1) or _is_a_line(write, source)


def _is_a_line(write: Write, source: Source) -> bool:
    """`.at[i, :]` for the place of an element of a vmap: all that is written is one line."""
    return len(write.index) == 2 and _is_counted(write.index[0], source) and is_whole(write.index[1])


def _is_counted(part: Part, source: Source) -> bool:
    return isinstance(part, cst.Name) and counts_elements(part, source)


def _is_place(part: Part, source: Source) -> bool:
    """An element, a field, what an argmax over everything returns, a choice between places that are written out, or
    the number of an element that a vmap goes over."""
    if _is_counted(part, source):
        return True
    part = meant_in_the_end(part, source)
    match part:
        case cst.Call(args=[_, *chosen]) if source.calls(part, *CHOICES):
            return len(chosen) == 2 and all(constant(arg.value) is not None for arg in chosen)
        case cst.Subscript(slice=slices):
            return all(constant(each) is not None for each in elements(slices))
        case cst.Attribute():
            return True
        case cst.Call(args=[_]):
            return source.calls(part, *_PLACES)
    return False


def _is_new(write: Write, source: Source) -> bool:
    """Whether the array is new, of one value, and used for nothing else."""
    array = root(write)
    if isinstance(array, cst.Name):
        stored = source.written(array)
        if stored is None or len(source.reads(stored)) != 1:
            return False
    return fill_of(write, source) is not None


def _is_written_on(node: cst.Call, source: Source) -> bool:
    """Whether the array with its one is only what other writes begin with."""
    name = source.assigned_name(node)
    return name is not None and any(write_on(read, source) is not None for read in source.reads(name))


def _is_one(value: cst.BaseExpression | None) -> bool:
    match value:
        case cst.Integer() | cst.Float():
            return value.evaluated_value == 1
        case cst.Name(value="True"):
            return True
    return False


def _one_hot(places: Part, length: str | None, axis: str, source: Source) -> str:
    place = _shown(places, source)
    if length is not None and _may_be_below_zero(places, source):  # where a write counts from the end
        place += f" % {length}" if length.isidentifier() or length.isdigit() else f" % ({length})"
    return f"{source.alias('jax') or 'jax'}.nn.one_hot({place}, {length or '...'}{axis})"


def _may_be_below_zero(places: Part, source: Source) -> bool:
    """`(x > 0).sum() - 1`."""
    made = meant_in_the_end(places, source)
    return isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.Subtract)


def _length(write: Write, axis: int, source: Source) -> str | None:
    """n of `jnp.zeros((n, k))` for the axis 0, k for 1."""
    fresh = meant_in_the_end(root(write), source)
    if not source.calls(fresh, "jax.numpy.zeros"):
        return None
    match argument(fresh, 0, "shape"):
        case cst.Tuple(elements=lengths) | cst.List(elements=lengths) if len(lengths) == len(write.index):
            asked = lengths[axis]
            return source.code(asked.value) if isinstance(asked, cst.Element) else None
    return None


def _fix(write: Write, axis: int, source: Source) -> tuple[Edit, ...]:
    """`jax.nn.one_hot`, where the shape of the zeros is seen, and every row or column gets its one.

    Not safe: an index below zero counts from the end in a write, and is no class for one_hot.
    """
    found = None if _may_be_below_zero(write.index[axis], source) else one_hot(write, axis, source)
    return found[1] if found is not None else ()


def _compared(write: Write, source: Source) -> str:
    jnp, fill = source.jnp, filled_with(write, source)
    value = _shown(write.value, source) if write.value is not None else "1"
    like = _as_made(write, source)
    is_plain = fill in ("0", "False") and _is_one(write.value)
    parts = [_shown(part, source) for part in write.index]
    match parts:
        case [one, ":"]:
            return f"{jnp}.where({jnp}.arange(«n»)[:, None] == {one}, {value}, {fill}){like}"
        case [one] if not is_plain:
            return f"{jnp}.where({jnp}.arange(«n») == {one}, {value}, {fill}){like}"
        case [row, column] if not is_plain:
            here = f"({jnp}.arange(«h»)[:, None] == {row}) & ({jnp}.arange(«w») == {column})"
            return f"{jnp}.where({here}, {value}, {fill}){like}"
        case [one] if not source.calls(write.index[0], "tuple"):
            return f"{jnp}.arange(«n») == {one}"
        case [row, column]:
            return f"({jnp}.arange(«h»)[:, None] == {row}) & ({jnp}.arange(«w») == {column})"
    return f"comparisons of {jnp}.arange with the place on each axis, one with the other by `&`"


def _as_made(write: Write, source: Source) -> str:
    """`.astype(jnp.float32)` behind whole numbers in place of an array that is said to hold others."""
    made = meant_in_the_end(root(write), source)
    said = argument(made, 1, "dtype") if isinstance(made, cst.Call) else None
    if said is None or write.value is None or constant(write.value) is None or "float" not in dotted(said):
        return ""
    return f".astype({source.code(said)})"


def _chosen(write: Write, among: int, source: Source) -> str:
    """`jnp.where(jnp.arange(k) == i[..., None], v[..., None], 0)`."""
    jnp, fill = source.jnp, filled_with(write, source)
    place, value = _operand(write.index[among], source), write.value
    if among < len(write.index) - 1:
        return f"a comparison of {jnp}.arange along that axis with {place}, and {jnp}.where(..., values, {fill})"
    length = _length(write, among, source) or "«k»"
    one = value is not None and (is_literal(value) or is_a_number(value, source))
    shown = "values" if value is None else _shown(value, source) if one else f"{_operand(value, source)}[..., None]"
    unless = "" if one else ", without the second `[..., None]` where it is a number"
    return f"{jnp}.where({jnp}.arange({length}) == {place}[..., None], {shown}, {fill}){unless}"


def _operand(node: Part, source: Source) -> str:
    shown = _shown(node, source)
    return as_operand(node, shown) if isinstance(node, cst.BaseExpression) else shown


def _shown(node: Part, source: Source) -> str:
    return brief(source.code(node), _LONG)
