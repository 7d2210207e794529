"""Rows or columns that Python works on one by one: `jnp.array([mean + x[:, i] for i in range(n)])`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import elements, is_whole, names_in
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.modules import is_of_either
from fusionlint.patterns.compiled.rows import row_after_row
from fusionlint.patterns.loops.collected import JOINS, Comprehension, counting, is_few, iterated_by
from fusionlint.patterns.loops.counted_rows import counted_rows, is_light
from fusionlint.patterns.loops.mapped_rows import Mapped, called_as, mapped
from fusionlint.patterns.loops.mapped_turns import mapped_turns
from fusionlint.patterns.loops.numbered_turns import has_turns_apart, is_heavy
from fusionlint.patterns.loops.turns import writes_kernels
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING, Call
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_JOINS = ("jax.numpy.array", "jax.numpy.asarray", "jax.numpy.stack", "jax.numpy.vstack")
# The page's pairs about what is a kernel for every row, of the array that is counted and of any.
_LINALG, _NUMBERED = 1, 2
_SHOWN = 100


def _may_count(call: Call) -> bool:
    """Whether the facts of a call leave open that it is handed a comprehension, or a name for one: no list that is
    written out, nor what another call gives."""
    given = call.value.arguments[:1]
    return not given or given[0] == NOTHING or given[0].name.isidentifier()


@rule.source("Call", calls=_JOINS, like=_may_count, when=counting)
def worked_on_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Elementwise work on the rows, or columns, of one array or several, each by its number, and a stack of it all."""
    loop = _comprehension(argument(node, 0, "arrays") or argument(node, 0, "object"), source)
    if loop is None or writes_kernels(source) or is_concrete(node, source):
        return
    if counted_rows(loop, source) is not None:
        return  # told of below
    counter = loop.for_in.target
    if not isinstance(counter, cst.Name) or operands(loop.elt, source) is None:
        return
    rows = list(_rows(loop.elt, counter.value, source))
    read = [row for row in rows if row is not None]
    if not read or len(read) < len(rows):
        return
    instead = _written_out(node, loop, None, source)
    yield source.finding(
        node,
        "each row is worked on by itself: operations of its own for every one of them",
        write=_shown(instead, _mapped(loop, read, counter.value, source)) + ", or broadcasting",
        edits=instead.edits if instead is not None else (),
    )


@rule.source("Call", calls=tuple(JOINS), when=counting)
def counted_out(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Any work on each row of an array whose rows are counted by its own shape, and a join of it all."""
    loop = _loop_joined(node, source)
    if loop is None or writes_kernels(source) or is_concrete(node, source) or is_of_either(node.func, source):
        return  # numpy has no vmap
    rows = counted_rows(loop, source)
    if rows is None:
        return
    array = rows.size.array
    instead = _written_out(node, loop, array, source)
    yield source.finding(
        loop if isinstance(loop, cst.For) else node,
        f"`{array}` is cut up along axis {rows.size.axis}, and every part worked on by itself",
        pair=0 if is_light(loop, source) else _LINALG,
        write=_shown(
            instead, f"{source.alias('jax') or 'jax'}.vmap of what is done with one part, over that axis of `{array}`"
        ),
        edits=instead.edits if instead is not None else (),
    )


@rule.source("For", "ListComp", "GeneratorExp", calls=tuple(JOINS), when=counting)
def numbered_out(loop: cst.For | Comprehension, source: Source) -> Iterator[Finding]:
    """Work that is a kernel of its own, on what has the turn's number: a row of any array, a class, a basis vector."""
    if not has_turns_apart(loop, source) or not is_heavy(loop, source) or counted_rows(loop, source) is not None:
        return
    if writes_kernels(source) or is_concrete(loop, source):
        return
    counter = source.code(loop.target if isinstance(loop, cst.For) else loop.for_in.target)
    bound = iterated_by(loop)
    count = ", ".join(source.code(arg.value) for arg in bound.args) if isinstance(bound, cst.Call) else "n"
    jax, jnp = source.alias("jax") or "jax", source.jnp
    yield source.finding(
        loop,
        f"the work for each `{counter}` is written out by itself: kernels of its own for every one of them",
        pair=_NUMBERED,
        write=f"{jax}.vmap of what is done for one `{counter}`, over {jnp}.arange({brief(count, 30, 'n')})",
        edits=mapped_turns(loop, source) if isinstance(loop, cst.For) else (),
    )


def _written_out(join: cst.Call, loop: cst.For | Comprehension, size: str | None, source: Source) -> Mapped | None:
    """The map, where the join is of a comprehension that stands in it."""
    is_here = isinstance(loop, cst.ListComp) and bool(join.args) and join.args[0].value is loop
    return mapped(join, loop, source, size) if is_here and isinstance(loop, cst.ListComp) else None


def _shown(instead: Mapped | None, otherwise: str) -> str:
    """The map as advice, where that is short."""
    return otherwise if instead is None or brief(instead.text, _SHOWN) != instead.text else instead.text


@rule.barrier(pair=_LINALG)
def made_row_after_row(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in work that is in the program once for each row."""
    rows = row_after_row(barrier, module)
    if rows is None or rows.are_pairs:
        return None
    return f"jax.vmap of what is done for one row, or broadcasting: it is in the program {rows.times} times"


def _loop_joined(join: cst.Call, source: Source) -> cst.For | Comprehension | None:
    """The loop that makes the list that is joined."""
    given = argument(join, 0, "arrays") or argument(join, 0, "object")
    match given:
        case cst.ListComp() | cst.GeneratorExp():
            return given if given.for_in.inner_for_in is None else None
        case cst.Name():
            made = source.value(given)
            if isinstance(made, cst.ListComp | cst.GeneratorExp):
                return made if made.for_in.inner_for_in is None else None
            empty = source.written(given)
            reads = source.reads(empty) if empty is not None else []
            loops = [loop for read in reads if (loop := _appends_in(read, source)) is not None]
            return loops[0] if len(loops) == 1 else None
    return None


def _appends_in(read: cst.Name, source: Source) -> cst.For | None:
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name("append")) if value is read:
            loop = source.loop(read)
            return loop if isinstance(loop, cst.For) else None
    return None


def _comprehension(given: cst.BaseExpression | None, source: Source) -> Comprehension | None:
    """The comprehension over a `range` of several that is given, or a name for it that nothing else reads."""
    if isinstance(given, cst.Name):
        written = source.written(given)
        given = source.value(given) if written is not None and len(source.reads(written)) == 1 else None
    match given:
        case cst.ListComp(for_in=loop) | cst.GeneratorExp(for_in=loop) if not loop.ifs and loop.inner_for_in is None:
            over = loop.iter
            return given if source.calls(over, "range") and not is_few(over, source) else None
    return None


def _rows(made: cst.BaseExpression, counter: str, source: Source) -> Iterator[cst.Subscript | None]:
    """The rows that elementwise work is done on, None for whatever else depends on the number of the row."""
    if not _mentions(made, counter):
        return
    parts = operands(made, source)
    if parts is not None:
        for part in parts:
            yield from _rows(part, counter, source)
    else:
        yield made if isinstance(made, cst.Subscript) and _is_row(made, counter, source) else None


def _is_row(read: cst.Subscript, counter: str, source: Source) -> bool:
    """`x[:, i]`, `x[i, :]`: what nobody reads so is a list or a dict, and `x[i]` of an array may be a number."""
    index = elements(read.slice)
    numbers = [part for part in index if isinstance(part, cst.Name) and part.value == counter]
    if len(numbers) != 1 or not all(part in numbers or is_whole(part) for part in index):
        return False
    return len(index) > 1 and not _mentions(read.value, counter) and kind(read.value, source) in ("array", None)


def _mapped(loop: Comprehension, rows: list[cst.Subscript], counter: str, source: Source) -> str:
    """`jax.vmap(lambda row: mean + row, 1)(x[:, :n])`, where only one array is read."""
    jax = source.alias("jax") or "jax"
    read, made = source.code(rows[0]), brief(source.code(loop.elt), 60)
    over = loop.for_in.iter
    bounds = over.args if isinstance(over, cst.Call) else ()
    if len({source.code(row) for row in rows}) > 1 or len(bounds) != 1 or made == "...":
        return f"{jax}.vmap of what is done with one row"
    parts = [source.code(part) if not isinstance(part, cst.Slice) else ":" for part in elements(rows[0].slice)]
    axis = parts.index(counter)
    count = source.code(bounds[0].value)
    whole = f"{source.code(rows[0].value)}[{', '.join(f':{count}' if part == counter else part for part in parts)}]"
    place = "" if axis == 0 else f", {axis - len(parts) if '...' in parts else axis}"
    row = called_as(axis, elements(rows[0].slice))
    return f"{jax}.vmap(lambda {row}: {made.replace(read, row)}{place})({whole})"


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(part.value == name for part in names_in(node))
