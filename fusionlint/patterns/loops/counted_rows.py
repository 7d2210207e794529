"""Python loops that count the rows of an array out, and read each by its number: `f(x[i]) for i in range(x.shape[0])`.

In: a `for` or comprehension of a Source. Out: the arrays that it reads so, where nothing else depends on the number.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import RANGES, constant, elements, indexed_by, inside, is_new_axis, names_in
from fusionlint.patterns.code.calls import argument, is_handed_to
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.patterns.loops.collected import (
    JOINS,
    Comprehension,
    collected,
    done_each_turn,
    iterated_by,
    statements_of,
)
from fusionlint.patterns.operations.one_hot import ONE_HOTS
from fusionlint.patterns.runs.alternatives import comments_above
from fusionlint.patterns.values.array_sizes import FILLED, FULL
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source

# What fuses, or is merged, on a GPU at least.
_LIGHT = tuple(f"jax.numpy.{name}" for name in ("dot", "matmul", "sum", "mean", "max", "min", "array", "asarray"))
_METHODS = frozenset(
    ("reshape", "ravel", "flatten", "astype", "sum", "mean", "max", "min", "squeeze", "transpose", "append", "dot")
)
# What says above a loop, as close as this, why it is one.
_CLOSE = 8
_WHY = regex(r"vmap|sequential|one (by one|at a time)|memory", re.I)


class Size(NamedTuple):
    """How long an array is along an axis, `x.shape[0]`; the array as it is written."""

    array: str
    axis: int


class CountedRows(NamedTuple):
    """The size that is counted to, and the rows that a turn reads of that array."""

    size: Size
    reads: Sequence[cst.Subscript]


def counted_rows(loop: cst.For | Comprehension, source: Source) -> CountedRows | None:
    """The rows of a loop over all of an array's, if each turn makes something of its own row, and no turn needs
    another."""
    counter = loop.target if isinstance(loop, cst.For) else loop.for_in.target
    size = _size(iterated_by(loop), source)
    if (
        size is None
        or is_said(loop, source)
        or not _is_joined(loop, source)
        or not isinstance(counter, cst.Name)
        or not _are_apart(loop)
    ):
        return None
    rows = [indexed_by(name, source) for name in _mentions(done_each_turn(loop), counter.value)]
    reads = [row for row in rows if row is not None and source.code(row.value) == size.array]
    others = [row for row in rows if row is not None and row not in reads]
    if None in rows or not reads or any(kind(row.value, source) != "array" for row in others):
        return None
    if any(_is_a_size(row, source) or not _is_along(row, counter.value, size.axis) for row in reads):
        return None
    is_work = isinstance(loop, cst.For) or not isinstance(loop.elt, cst.Subscript)
    calls = [*inside(done_each_turn(loop), cst.Call)]
    return CountedRows(size, reads) if is_work and all(is_of_arrays(c, source) for c in calls) else None


def _asks(call: cst.Call, source: Source) -> bool:
    """Whether Python asks how large something of a row is, in the function that `call` hands it to, `if low <= x[0]`:
    no trace knows."""
    function = function_named(call.func, source)
    rows = (n for n, arg in enumerate(call.args) if isinstance(arg.value, cst.Subscript) and arg.keyword is None)
    at = next(rows, None)
    if at is None or not isinstance(function, cst.FunctionDef) or at >= len(function.params.params):
        return False
    of_row = {function.params.params[at].name.value}
    for step in inside(function.body, cst.Assign):
        if any(name.value in of_row for name in names_in(step.value)):
            of_row |= {name.value for target in step.targets for name in names_in(target.target)}
    tests = (branch.test for branch in inside(function.body, cst.If))
    compared = (part for test in tests for part in inside(test, cst.Comparison))
    return any(
        any(
            isinstance(one.operator, (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual))
            for one in part.comparisons
        )
        and any(name.value in of_row and not _is_a_size_of(name, source) for name in names_in(part))
        for part in compared
    )


def _is_a_size_of(name: cst.Name, source: Source) -> bool:
    """Whether a test asks for no element, `row.ndim`, `len(row)`."""
    return isinstance(source.parent(name), cst.Attribute | cst.Arg)


def _is_joined(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether what the turns make goes into one list, of which nothing comes but one array, `found = stack(found)`
    too."""
    if not isinstance(loop, cst.For):
        return len(collected(loop, source)) == 1
    match (statements_of(loop) or (None,))[-1]:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("append")))):
            return is_listed(name, source)
    return False


def is_listed(name: cst.Name, source: Source) -> bool:
    """Whether the list that `name` appends to starts empty, and nothing comes of it but one array, under its own name
    perhaps."""
    empty, made = source.written(name), source.value(name)
    is_empty = isinstance(made, cst.List) and not made.elements  # `first, second = [], []`, too
    others = source.reads(empty) if empty is not None and is_empty else []
    others = [read for read in others if not isinstance(source.parent(read), cst.Attribute)]
    return len(others) == 1 and is_handed_to(others[0], source, *JOINS)


def is_light(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether a GPU fuses what the turns do, or merges it, by itself."""
    calls = [*inside(done_each_turn(loop), cst.Call)]
    return all(is_elementwise(call, source) or source.calls(call, *_LIGHT) or _is_method(call) for call in calls)


def _size(iterated: cst.BaseExpression, source: Source) -> Size | None:
    """The size that `range(...)` counts to."""
    match iterated:
        case cst.Call(args=[cst.Arg(value=bound, keyword=None)]) if source.calls(iterated, "range"):
            pass
        case _:
            return None
    if isinstance(bound, cst.Name):
        place = unpacked_at(source.written(bound), source)
        match place:
            case (cst.Attribute(value=array, attr=cst.Name("shape")), axis, _):
                return Size(source.code(array), axis)
    match source.meant(bound):
        case cst.Subscript(value=cst.Attribute(value=array, attr=cst.Name("shape")), slice=slices):
            number = constant(elements(slices)[0])
            return Size(source.code(array), number) if number is not None else None
        case cst.Call(args=[cst.Arg(value=array)]) as call if source.calls(call, "len") and _is_array(array, source):
            return Size(source.code(array), 0)
    return None


def _is_array(node: cst.BaseExpression, source: Source) -> bool:
    return kind(node, source) == "array"


def _mentions(node: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    return (part for part in names_in(node) if part.value == name)


def _is_along(row: cst.Subscript, counter: str, axis: int) -> bool:
    """Whether the counter stands at the axis that is counted."""
    index = elements(row.slice)
    place = next(i for i, part in enumerate(index) if isinstance(part, cst.Name) and part.value == counter)
    after = sum(not is_new_axis(part) for part in index[place + 1 :])
    is_from_behind = any(isinstance(part, cst.Ellipsis) for part in index[:place])
    return axis == -1 - after if is_from_behind else axis in (place, -1 - after)


def _is_a_size(row: cst.Subscript, source: Source) -> bool:
    """Whether a trace has to know the row, `jax.nn.one_hot(x[:, i], sizes[i])`: it is a number of Python's, and what is
    made is of another shape in each turn."""
    call = source.handed_to(row)
    is_count = call is not None and argument(call, 1, "num_classes") is row and source.calls(call, *ONE_HOTS)
    return is_count or is_handed_to(row, source, *FILLED, *FULL, *RANGES)


def _are_apart(loop: cst.For | Comprehension) -> bool:
    """Whether no turn needs what another has left: it names things once, before it reads them, and lists the last."""
    if not isinstance(loop, cst.For):
        return not loop.for_in.ifs
    named: list[str] = []
    *steps, last = statements_of(loop) or (None,)
    for step in steps:
        match step:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]) if name not in named:
                named.append(name)
            case _:
                return False
    for number, step in enumerate(steps):
        if any(True for name in named[number:] if step is not None and any(_mentions_value(step, name))):
            return False
    return isinstance(last, cst.Expr)


def _mentions_value(step: cst.BaseSmallStatement, name: str) -> Iterator[cst.Name]:
    return _mentions(step.value, name) if isinstance(step, cst.Assign) else iter(())


def is_of_arrays(call: cst.Call, source: Source) -> bool:
    """Whether a call is one of jax, of an array's method, of a function of the project, or of what a name stands for
    that nobody handed in: that may hold too much at once, or be no function of jax's. A function that goes by how large
    its row is, is none."""
    name = source.qualified_name(call.func) or ""
    if _asks(call, source):
        return False
    if name.startswith("jax.") or _is_method(call):
        return True
    function = call.func
    if isinstance(function, cst.Name) and not hasattr(builtins, function.value):
        return not _is_from_elsewhere(function, source) or source.project.find(name) is not None
    return source.project.find(name) is not None


def _is_from_elsewhere(name: cst.Name, source: Source) -> bool:
    """Whether a function is handed in, or imported."""
    bound = source.facts.lookup(source.scope(name), name.value)
    return bound is None or bound[1].kind in ("parameter", "import")


def is_said(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether a comment close above, or what is said of the function, says why this is a loop."""
    above = comments_above(source.location(loop).line, _CLOSE, source)
    function = source.function(loop)
    said = function.get_docstring() if isinstance(function, cst.FunctionDef) else None
    return any(map(_WHY.search, (*above, said or "")))


def _is_method(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS
