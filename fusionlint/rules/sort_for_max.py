"""A whole sort of which only one end is read: `jnp.sort(x)[-1]`, `jnp.argsort(x)[0]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import argument, as_argument, beside
from fusionlint.patterns.code.functions import mentioned
from fusionlint.patterns.compiled.readers import sorted_to
from fusionlint.patterns.operations.sort import FLAT, SORTS, Sorted, Taken, is_beside_a_decomposition, reads_of
from fusionlint.patterns.values.two_axes import has_rows, is_read_by_rows
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_GOES_OVER = ("list", "tuple", "enumerate", "zip", "len", "sorted", "reversed")
# Who names one of these expects numbers that are none.
_NANS = frozenset(
    ("jax.numpy.nan", "numpy.nan", "math.nan", "jax.numpy.isnan", "jax.numpy.nan_to_num",
     *(f"jax.numpy.nan{name}" for name in ("min", "max", "argmin", "argmax", "sum", "mean", "median")))
)  # fmt: skip


@rule.source("Call", calls=SORTS)
def one_end_of_a_sort(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the sorted array takes its first or its last element."""
    found = reads_of(node, source)
    if found is None or any(one.count is not None for one in found[1]):
        return
    made, taken = found
    is_of_one_row = all(one.length == 1 for one in taken)
    if is_of_one_row and (
        (made.axis == -1 and _has_rows(node, made.array, taken, source)) or is_beside_a_decomposition(node, source)
    ):
        return
    if _is_read_elsewhere(node, source):
        return
    ends = sorted({one.end for one in taken}, reverse=True)
    text = {one.end: _instead(node, made, one, source) for one in taken}
    outermost = _read_at_once(node, taken, source)
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


def _is_read_elsewhere(node: cst.Call, source: Source) -> bool:
    """Whether the same array is sorted once more in the function, and another place of it read: XLA sorts once for all,
    and has to."""
    function = source.function(node)
    again = (part for part in inside(function.body) if part is not node) if function is not None else ()
    for other in again:
        if not source.calls(other, *SORTS) or not other.args:
            continue
        if source.code(other.args[0].value) == source.code(node.args[0].value):
            found = reads_of(other, source)
            if found is None or any(one.count is not None for one in found[1]):
                return True
    return False


def _has_rows(call: cst.Call, array: cst.BaseExpression, taken: Sequence[Taken], source: Source) -> bool:
    """Whether the sorted array is seen to have an axis more, of which `[0]` is the first: it is made so, what is read
    is gone over, or what is sorted is read elsewhere by two indices."""
    if has_rows(array, source) or any(_is_gone_over(one.node, source) for one in taken):
        return True
    of = [name for name in names_read(array) if source.function(name) is source.function(call)]
    uses = [use.node for name in of for use in source.uses(name)]
    return any(is_read_by_rows(use, source) for use in uses)


def _is_gone_over(read: cst.CSTNode, source: Source) -> bool:
    """`for place in order[0]`, `list(order[0])`."""
    match source.parent(read):
        case cst.For(iter=over) | cst.CompFor(iter=over):
            return over is read
        case cst.Arg() as argument:
            call = source.parent(argument)
            return isinstance(call, cst.Call) and dotted(call.func) in _GOES_OVER
    return False


@rule.barrier
def sorted_for_one(barrier: Barrier, module: hlo.Module) -> str | None:
    """A sort whose readers cut one element from it."""
    words = "jnp.max, jnp.min, jnp.argmax or jnp.argmin instead of an end of a whole sort"
    return words if sorted_to(barrier, module) == 1 else None


def _read_at_once(call: cst.Call, taken: Sequence[Taken], source: Source) -> cst.Subscript | None:
    """The subscript that reads the end, where only others stand between `call` and it: `jnp.sort(x)[::-1][0]`."""
    for below, above in source.outward(call):
        if not isinstance(above, cst.Subscript) or above.value is not below:
            return None
        if any(one.node is above for one in taken):
            return above
    return None


def _instead(call: cst.Call, made: Sorted, one: Taken, source: Source) -> str:
    """`jnp.max(x, axis=-1)`, with the user's own names."""
    name = ("arg" if made.is_order else "") + {"largest": "max", "smallest": "min"}[one.end]
    if _passes_nans_over(call, made, one) and _expects_nans(call, source):
        name = f"nan{name}"
    function = beside(call.func, name, source) or f"jnp.{name}"
    axis = argument(call, 1, "axis")
    arguments = [made.as_mapped(as_argument(made.array, source))]
    if axis is not None and made.axis != FLAT:
        arguments.append(f"axis={source.code(axis)}")
    elif one.length > 1:
        arguments.append("axis=-1")
    if not one.is_single:
        arguments.append("keepdims=True")
    return f"{function}({', '.join(arguments)})"


def _passes_nans_over(call: cst.Call, made: Sorted, one: Taken) -> bool:
    """Whether the other end than the last is read, where a sort puts what is no number."""
    return one.from_back == made.reversed and argument(call, -1, "descending") is None


def _expects_nans(call: cst.Call, source: Source) -> bool:
    """Whether the function around asks for numbers that are none, or makes some: `jnp.isnan(x)`, `jnp.nan`."""
    function = source.function(call)
    return function is not None and not _NANS.isdisjoint(mentioned(function.body, source))
