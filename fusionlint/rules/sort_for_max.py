"""A whole sort of which only one end is read: `jnp.sort(x)[-1]`, `jnp.argsort(x)[0]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.calls import argument, as_argument, beside
from fusionlint.patterns.readers import sliced_to
from fusionlint.patterns.sort import FLAT, SORTS, Sorted, Taken, reads_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")


@rule.source(cst.Call, calls=SORTS)
def one_end_of_a_sort(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the sorted array takes its first or its last element."""
    found = reads_of(node, source) if source.calls(node, *SORTS) and source.is_traced(node) else None
    if found is None or any(one.count is not None for one in found[1]):
        return
    made, taken = found
    ends = sorted({one.end for one in taken}, reverse=True)
    text = {one.end: _instead(node, made, one, source) for one in taken}
    outermost = _read_whole(node, source)
    edits: tuple[Edit, ...] = ()
    if outermost is not None and isinstance(node.func, cst.Attribute) and not holds_comment(outermost):
        edits = (source.replace(outermost, text[ends[0]]),)
    yield source.finding(
        node,
        f"everything is sorted, and only the {' and the '.join(reversed(ends))} {'are' if ends[1:] else 'is'} read",
        until=outermost,
        write=" and ".join(text[end] for end in reversed(ends)),
        edits=edits,
    )


@rule.barrier
def sorted_for_one(barrier: Barrier, module: hlo.Module) -> str | None:
    """A sort whose readers cut one element from it."""
    if "sort" in barrier.opcodes and sliced_to(barrier, module) == 1:
        return "jnp.max, jnp.min, jnp.argmax or jnp.argmin instead of an end of a whole sort"
    return None


def _read_whole(call: cst.Call, source: Source) -> cst.Subscript | None:
    """The outermost of the subscripts that stand around `call`."""
    outermost: cst.Subscript | None = None
    below: cst.CSTNode = call
    for above in source.ancestors(call):
        if not isinstance(above, cst.Subscript) or above.value is not below:
            break
        outermost = below = above
    return outermost


def _instead(call: cst.Call, made: Sorted, one: Taken, source: Source) -> str:
    """`jnp.max(x, axis=-1)`, with the user's own names."""
    name = {"largest": "max", "smallest": "min"}[one.end]
    function = beside(call.func, f"arg{name}" if made.is_order else name, source) or f"jnp.{name}"
    axis = argument(call, 1, "axis")
    arguments = [as_argument(made.array, source)]
    if axis is not None and made.axis != FLAT:
        arguments.append(f"axis={source.code(axis)}")
    elif one.length > 1:
        arguments.append("axis=-1")
    if not one.is_single:
        arguments.append("keepdims=True")
    return f"{function}({', '.join(arguments)})"
