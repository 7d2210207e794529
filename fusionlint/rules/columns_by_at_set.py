"""The columns of an array written one by one: `zeros((n, 4)).at[:, 0].set(x).at[:, 1].set(v)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import WRITES, Write, at_write, column, constant, is_fresh, is_whole
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.paths import go_through_ifs
from fusionlint.patterns.compiled.written import are_columns
from fusionlint.patterns.operations.choice import number
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_one_caller import is_for_numpy
from fusionlint.patterns.writes.beside import is_of_numpy
from fusionlint.patterns.writes.between import reads_back
from fusionlint.patterns.writes.chain import chain, is_columns, is_last, path, root
from fusionlint.patterns.writes.entries import are_entries
from fusionlint.patterns.writes.firsts import are_few_firsts
from fusionlint.patterns.writes.folded import is_folded
from fusionlint.patterns.writes.heavy import is_beside_a_solver
from fusionlint.patterns.writes.rebuilt import rebuilt
from fusionlint.patterns.writes.words import BEHIND_IFS, FIRST
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Values of which nobody can say that they are columns are not stacked: a scalar would not fit.
_ELEMENTWISE = frozenset(
    f"jax.numpy.{name}"
    for name in ("abs", "sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "square", "sign", "clip", "where", "maximum",
                 "minimum", "add", "multiply", "subtract", "arctan2", "floor", "ceil", "round")
)  # fmt: skip


@rule.source("Call", calls=WRITES)
def columns_written_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two or more columns in a row, each by its own write."""
    last = at_write(node)
    if last is None or column(last) is None:
        return
    writes = path(last, source)
    if not is_columns(writes) or is_folded(writes, source) or are_few_firsts(writes, source):
        return
    array = root(writes[0])
    if is_concrete(node, source) or is_of_numpy(array, source) or is_for_numpy(node, source):
        return
    if is_beside_a_solver(node, source) or _are_ends_of_a_field(writes, source):
        return
    name = source.assigned_name(node) or (array if isinstance(array, cst.Name) else None)
    subject = f"the columns of `{name.value}`" if name else f"{len(writes)} columns"
    is_path = go_through_ifs([write.call for write in writes], source)
    edits = () if is_path else _fix(writes, source)
    joined = None if edits or is_path else rebuilt(writes, source)
    yield source.finding(
        writes[0].call,
        f"{subject} are written one by one{' on one path' if is_path else ''}, each by a kernel of its own",
        until=node,
        write=f"{BEHIND_IFS if is_path else ''}{_advice(writes, source)}",
        edits=joined.edits if joined is not None else edits,
        safe=joined is not None and joined.is_exact,
    )


@rule.source("Call", calls=WRITES)
def entries_written_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The entries of a small matrix for each element: `zeros((n, 2, 2)).at[:, 0, 0].set(a).at[:, 0, 1].set(b)`, where
    what is set may read entries that were set before."""
    last = at_write(node)
    if last is None or len(last.index) < 3 or not is_last(last, source):
        return
    writes = chain(last, source)
    if not are_entries(writes, source) or is_concrete(node, source):
        return
    name, jnp = source.assigned_name(node), source.jnp
    first = FIRST if reads_back(writes, source) else ""
    stack = f"one {jnp}.stack of the entries of each row, axis=-1, zeros too, and one of the rows, axis=-2"
    yield source.finding(
        writes[0].call,
        f"{len(writes)} entries of {f'`{name.value}`' if name else 'matrices'} are written one by one, each by a "
        "kernel of its own",
        until=node,
        write=first + stack,
        pair=1,
    )


@rule.barrier
def column_after_column(barrier: Barrier, module: hlo.Module) -> str | None:
    """What one write of a column leaves for the next."""
    if not are_columns(barrier, module):
        return None
    return "one jnp.stack of the columns, axis=-1, with those that are kept as they are"


def _are_ends_of_a_field(writes: Sequence[Write], source: Source) -> bool:
    """Whether the two ends of the last of three axes are set in an array that is there: a GPU and a TPU make them, as
    measured, in as many kernels with what is around them as one `where` of all of it."""
    _, *others = writes[0].index
    is_open = any(isinstance(part, cst.Ellipsis) for part in writes[0].index)
    is_of_three = len(others) > 1 and not is_open
    return is_of_three and {column(write) for write in writes} == {0, -1} and not is_fresh(root(writes[0]), source)


def _advice(writes: Sequence[Write], source: Source) -> str:
    jnp, axis, array = source.jnp, _axis(writes[0]), root(writes[0])
    is_new = is_fresh(array, source)
    places = [(where, write) for write in writes if (where := column(write)) is not None]
    if len({where < 0 for where, _ in places}) > 1 and not is_new:  # both ends of something that may be wide
        whole = source.code(array) if isinstance(array, cst.Name | cst.Attribute) else "x"
        chosen = f"{jnp}.where(«k» == «i», {jnp}.expand_dims(column, {axis}), {whole}), one inside the other"
        return f"{chosen}, with `«k» = {jnp}.arange(«n»)` along that axis"
    in_order = [write for _, write in sorted(places, key=lambda place: (place[0] < 0, place[0]))]
    is_anew = reads_back(writes, source)  # before the writes the same words say something else
    shown = [] if is_anew else [_shown(write, source, jnp) for write in in_order[:3]]
    values = [*shown, *["..."][: len(in_order) - len(shown)]]
    rest = _rest(sorted(where for where, _ in places), array, source)
    if rest is None or {*values} == {"..."}:
        others = ", and of the others" if rest != "" else ""
        in_their_order = ", in their order" if rest is None else ""
        return f"{FIRST if is_anew else ''}one {jnp}.stack of the columns{others}{in_their_order}, axis={axis}"
    fit = "" if all(_fits(write, source) for write in in_order) else ", each as long as a column"
    return f"{jnp}.stack([{', '.join([*values, *filter(None, [rest])])}], axis={axis}){fit}"


def _rest(places: Sequence[int], array: cst.BaseExpression, source: Source) -> str | None:
    """What a stack of the first columns has behind them: "" where they are seen to be all, None where they are not the
    first."""
    if places != [*range(len(places))]:
        made = source.meant(array)
        width = _width(made, source)
        return "" if width is not None and sorted(k % width for k in places) == [*range(width)] else None
    if not is_fresh(array, source):
        return "the other columns"
    return "" if _width(source.meant(array), source) == len(places) else "what is left as it was"


def _width(made: cst.BaseExpression, source: Source) -> int | None:
    """How many columns a new array is seen to have: 4, of `jnp.zeros((n, 4))` and `jnp.zeros(x.shape + (4,))`."""
    match made:
        case cst.Call(
            args=[cst.Arg(value=cst.BinaryOperation(operator=cst.Add(), right=cst.Tuple(elements=[*_, last]))), *_]
        ) if is_fresh(made, source):
            return constant(last.value)
    shape = _shape(made, source)
    return constant(shape[-1]) if shape else None


def _fits(write: Write, source: Source) -> bool:
    """Whether what is written is shown as a column, or not at all."""
    if write.value is None or write.method != "set" or number(write.value) is not None:
        return True
    return _is_column(write.value, source)


def _shown(write: Write, source: Source, jnp: str) -> str:
    """The value as it is written; a stack takes columns, and a number is none."""
    if write.value is None or write.method != "set":
        return "..."
    text = brief(source.code(write.value), 30)
    return f"{jnp}.full(n, {text})" if number(write.value) is not None else text


def _axis(write: Write) -> int:
    """The axis of the columns: 1 for `.at[:, k]`, whatever the array's rank, and -1 for `.at[..., k]`."""
    before = write.index[:-1]
    return -1 if any(isinstance(part, cst.Ellipsis) for part in before) else len(before)


def _fix(writes: Sequence[Write], source: Source) -> tuple[Edit, ...]:
    """One stack, where the writes are one expression that sets every column of a fresh array to a column.

    Not safe: a stack takes its dtype from the values, the writes take it from the array.
    """
    fresh, last, axis = writes[0].array, writes[-1], _axis(writes[0])
    shape = _shape(fresh, source)
    nested = all(outer.array is inner.call for inner, outer in pairwise(writes))
    if not shape or not nested or not all(w.method == "set" and len(w.call.args) == 1 for w in writes):
        return ()
    width = constant(shape[-1]) if len(shape) == 2 and axis in (1, -1) else None
    where = [column(write) for write in writes]
    if width is None or [k % width for k in where if k is not None] != list(range(width)):
        return ()
    values = [write.value for write in writes if write.value is not None and _is_column(write.value, source)]
    if len(values) != width or source.has_comment(last.call):
        return ()
    assert isinstance(fresh, cst.Call)
    stack = f"{source.code(fresh.func).rpartition('.')[0]}.stack"
    dtype = f", dtype={source.code(fresh.args[1].value)}" if len(fresh.args) == 2 else ""
    return (source.replace(last.call, f"{stack}([{', '.join(map(source.code, values))}], axis={axis}{dtype})"),)


def _shape(fresh: cst.BaseExpression, source: Source) -> tuple[cst.BaseExpression, ...]:
    """The parts of the shape in `jnp.zeros((n, 4))` or `jnp.zeros((n, 4), dtype=...)`, none of anything else."""
    if not source.calls(fresh, "jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty"):
        return ()
    match fresh:
        case cst.Call(
            func=cst.Attribute(),
            args=[cst.Arg(value=cst.Tuple(elements=elements), keyword=None | cst.Name("shape"), star=""), *more],
        ) if not more or (len(more) == 1 and (more[0].keyword is None or more[0].keyword.value == "dtype")):
            return tuple(element.value for element in elements)
    return ()


def _is_column(value: cst.BaseExpression, source: Source, depth: int = 4) -> bool:
    """Whether `value` is plainly a column: `a[:, k]`, or arithmetic with one."""
    match value:
        case _ if depth == 0:
            return False
        case cst.Subscript(slice=[*before, cst.SubscriptElement(slice=cst.Index(value=last))]) if before:
            whole = (s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in before)
            return all(is_whole(part) for part in whole) and constant(last) is not None
        case cst.BinaryOperation(operator=operator, left=left, right=right):
            if isinstance(operator, cst.MatrixMultiply):
                return False
            return _is_column(left, source, depth) or _is_column(right, source, depth)
        case cst.UnaryOperation(expression=inner):
            return _is_column(inner, source, depth)
        case cst.Call(func=func, args=args) if source.qualified_name(func) in _ELEMENTWISE:
            return any(_is_column(arg.value, source, depth) for arg in args)
        case cst.Name():
            stands_for = source.value(value)
            return stands_for is not None and _is_column(stands_for, source, depth - 1)
    return False
