"""How a loop that reads a number of every step, only to keep it or to add it up, reads all of them after it instead.

In: the reads of a loop of host code, `float(loss)`. Out: the edits that leave their values on the device, and read them
in lines behind the loop; none where they are not seen to be all that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import constant, names_read
from fusionlint.patterns.code.before import lines_beside
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.loops.carry import Loop, calls
from fusionlint.patterns.loops.loop_gates import is_seldom
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source

_NUMBERS = ("float", "int")
_WHOLE = ("numpy.asarray", "jax.device_get")


class _Kept(NamedTuple):
    """A read of the loop, what it reads, how, and the variable that keeps it, a list or a sum."""

    read: cst.BaseExpression
    what: cst.BaseExpression
    how: str
    name: cst.Name
    is_list: bool


def read_later(
    reads: Sequence[cst.BaseExpression], steps: Sequence[cst.Call], loop: Loop, source: Source
) -> tuple[Edit, ...]:
    """The edits for all `reads` of a loop that calls the compiled `steps`."""
    all_reads = [*reads, *(read for read in _others(loop, source) if read not in reads)]
    found = [_kept(read, source) for read in all_reads]
    kept = [each for each in found if each is not None]
    jax = imported("jax", loop, source)
    if jax is None or not kept or len(kept) != len(found) or not isinstance(source.parent(loop), cst.IndentedBlock):
        return ()
    if not all(_is_for_later(each, loop, source) and not _is_handed_on(each.what, steps) for each in kept):
        return ()
    lines = {each.name.value: _line(each, f"{jax.name}.device_get") for each in kept}
    if len({(each.name.value, each.how, each.is_list) for each in kept}) != len(lines):
        return ()  # one that is read in two ways
    behind = lines_beside(loop, source, behind=[*lines.values()])
    if behind is None:
        return ()
    return (*jax.edits, *(source.replace(each.read, source.code(each.what)) for each in kept), *behind)


def _others(loop: Loop, source: Source) -> Iterator[cst.Call]:
    """What else of every iteration waits for an array of jax, `float(jnp.mean(x))`."""
    for call in calls(loop.body):
        seen = _read(call, source)
        if seen is not None and kind(seen[0], source) == "array" and not is_seldom(call, loop, source):
            yield call


def _line(kept: _Kept, get: str) -> str:
    """`losses = [float(each) for each in jax.device_get(losses)]`, `total = float(total)`."""
    name = kept.name.value
    if not kept.is_list:
        return f"{name} = {kept.how}({name})"
    match kept.how:
        case "":
            return f"{name} = {get}({name})"
        case "item" | "tolist":
            return f"{name} = [each.{kept.how}() for each in {get}({name})]"
    return f"{name} = [{kept.how}(each) for each in {get}({name})]"


def _kept(read: cst.BaseExpression, source: Source) -> _Kept | None:
    seen = _read(read, source)
    if seen is None or source.has_comment(read):
        return None
    what, how = seen
    argument, above = source.parent(read), source.handed_to(read)
    match above:
        case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("append")), args=[only]) if (
            only is argument and isinstance(source.parent(above), cst.Expr)
        ):
            return _Kept(read, what, how, name, is_list=True)
    match source.parent(read):
        case cst.AugAssign(target=cst.Name() as name, operator=cst.AddAssign(), value=value) if value is read:
            how = "float" if how == "item" else how
            return _Kept(read, what, how, name, is_list=False) if how in _NUMBERS else None
    return None


def _read(node: cst.BaseExpression, source: Source) -> tuple[cst.BaseExpression, str] | None:
    """What a call reads, and by which function or method; "" for a copy of the whole as it is."""
    match node:
        case cst.Call(func=cst.Attribute(value=what, attr=cst.Name("item" | "tolist" as how)), args=[]):
            return what, how
        case cst.Call(func=function, args=[cst.Arg(keyword=None, star="", value=what)]):
            if source.calls(node, *_NUMBERS):
                return what, source.code(function)
            return (what, "") if source.calls(node, *_WHOLE) else None
    return None


def _is_for_later(kept: _Kept, loop: Loop, source: Source) -> bool:
    """Whether a list or a sum begins empty right before the loop, in the same block, and nothing in the loop reads it
    but to add to it."""
    uses = [use for use in source.uses(kept.name) if not _is_inside(use.node, loop, source)]
    within = [use.node for use in source.uses(kept.name) if _is_inside(use.node, loop, source)]
    if any(source.scope(use) != source.scope(kept.name) for use in (*within, *(use.node for use in uses))):
        return False  # a function that sees it
    if len(within) != sum(use.node is kept.name for use in source.uses(kept.name)):
        return False
    before = [use for use in uses if use.order < source.order(loop)]
    if not before or not before[-1].is_write:
        return False
    first = before[-1].node
    line = source.nearest(first, cst.SimpleStatementLine)
    if line is None or source.parent(line) is not source.parent(loop):
        return False
    match assigned(first, source):
        case cst.List(elements=[]):
            return kept.is_list
        case cst.Float(value=value):
            return not kept.is_list and float(value) == 0.0
        case cst.Integer() as number:
            return not kept.is_list and constant(number) == 0
    return False


def _is_inside(node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    return any(above is loop for above in source.ancestors(node))


def _is_handed_on(what: cst.BaseExpression, steps: Sequence[cst.Call]) -> bool:
    """Whether a part of what the next step takes is kept, which that may be told to write over."""
    given = {name.value for step in steps for name in _given(step)}
    return any(name.value in given for name in names_read(what))


def _given(step: cst.Call) -> Iterator[cst.Name]:
    for arg in step.args:
        yield from names_read(arg.value)
