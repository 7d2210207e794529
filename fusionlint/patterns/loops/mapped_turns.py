"""A Python loop whose turns need nothing of one another as a function of the turn's number, and one `jax.vmap` of it in
place of the join of what the turns list.

In: such a `for` of a Source, as `numbered_turns` finds it. Out: the edits: the loop's head becomes that of a function,
and what a turn appends is what that returns; none where more than one list is made, or where a name of the loop is read
behind it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import constant, holds, inside, names_in
from fusionlint.patterns.code.before import free_name
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.code.imports import numpy_of_jax, vmap_of_jax
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.left_unused import whole_line, without_gaps
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.loops.whole_turns import is_read_behind, stored_by
from fusionlint.source.tree import Source

_JOINS = ("jax.numpy.stack", "jax.numpy.array", "jax.numpy.asarray")


def mapped_turns(loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """The edits for a loop over `range(n)` that appends to one list at its end."""
    vmap, jnp, appended = vmap_of_jax(loop, source), numpy_of_jax(loop, source), _appended(loop, source)
    if vmap is None or jnp is None or (vmap.edits and jnp.edits) or appended is None:
        return ()
    call, values = appended
    line, join = _made_empty(values, loop, source), _joined(values, source)
    if line is None or join is None or not isinstance(loop.target, cst.Name) or not isinstance(loop.iter, cst.Call):
        return ()
    if _is_read_behind(loop, source) or source.has_comment(join) or any(a.keyword or a.star for a in loop.iter.args):
        return ()
    counter, axis = loop.target.value, argument(join, 1, "axis")
    along = 0 if axis is None else constant(axis)
    if along is None or not has_only(join, 2, "axis") or not source.calls(join, *_JOINS[: 1 if along else 3]):
        return ()
    name = free_name(f"of_{counter}", loop, source)
    where, body = source.location(loop), source.location(loop.iter)
    head = where._replace(end_line=body.end_line, end_column=body.end_column)
    numbers = ", ".join(source.code(arg.value) for arg in loop.iter.args)
    out = f", out_axes={along}" if along else ""
    mapped = f"{vmap.name}({name}{out})({jnp.name}.arange({numbers}))"
    return (
        *vmap.edits,
        *jnp.edits,
        *without_gaps([Edit(line, "")], source),
        Edit(head, f"def {name}({counter})"),
        source.replace(call, f"return {_moved(call, source)}"),
        in_place_of(join, mapped, source),
    )


def _appended(loop: cst.For, source: Source) -> tuple[cst.Call, cst.Name] | None:
    """The one call that appends, which ends the body, and the list that it appends to."""
    if not isinstance(loop.body, cst.IndentedBlock) or loop.orelse is not None:
        return None
    if holds(loop.body, cst.Await, cst.Yield, cst.NamedExpr):
        return None
    appends = [
        part
        for part in inside(loop.body, cst.Call)
        if isinstance(part.func, cst.Attribute) and part.func.attr.value == "append"
    ]
    match loop.body.body[-1]:
        case cst.SimpleStatementLine(
            body=[cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as values), args=[_]) as call)]
        ) if appends == [call] and not source.has_comment(call):
            return call, values
    return None


def _moved(call: cst.Call, source: Source) -> str:
    """What is appended, as it stands where the call does: one of several lines in its own brackets alone."""
    value = call.args[0].value
    where, there = source.location(value), source.location(call)
    text = as_argument(value, source)
    if where.line == there.line:
        return text
    return text.replace("\n" + " " * (where.column - there.column), "\n")


def _made_empty(values: cst.Name, loop: cst.For, source: Source) -> Location | None:
    """The line of the block of the loop that makes the list."""
    written = source.written(values)
    statement = assignment(written, source)
    if statement is None or len(statement.targets) > 1 or not isinstance(statement.value, cst.List):
        return None
    line = source.parent(statement)
    is_beside = line is not None and source.parent(line) is source.parent(loop)
    return whole_line(statement, source) if is_beside and not statement.value.elements else None


def _joined(values: cst.Name, source: Source) -> cst.Call | None:
    """The join that alone reads the list, but for what appends to it."""
    written = source.written(values)
    reads = [read for read in source.reads(written) if read is not values] if written is not None else []
    join = source.handed_to(reads[0]) if len(reads) == 1 else None
    return join if source.calls(join, *_JOINS) and join.args[0].value is reads[0] else None


def _is_read_behind(loop: cst.For, source: Source) -> bool:
    """Whether something outside reads what the loop counts, or gives a name."""
    stored = stored_by(loop)
    within = (name for name in names_in(loop.body) if name.value in stored)
    written = (use.node for name in within for use in source.uses(name) if use.is_write and use.node is name)
    return is_read_behind(loop, source) or any(
        loop not in source.ancestors(read) for name in written for read in source.reads(name)
    )
