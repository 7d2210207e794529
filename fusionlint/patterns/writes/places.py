"""Where the writes of a chain go: to the edges of an array, to blocks that make it up, to its diagonal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import (
    RANGES,
    Part,
    Write,
    constant,
    elements,
    is_cut,
    is_fresh,
    is_whole,
    names_in,
    told_axes,
)
from fusionlint.patterns.code.unpacked import meant_in_the_end, unpacked
from fusionlint.patterns.loops.carry import written_before
from fusionlint.patterns.writes.chain import is_columns, root
from fusionlint.patterns.writes.loop import Piecewise
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What is handed an array, and not its length.
DIAGONAL_OF = "jax.numpy.diag_indices_from"
_DIAGONALS = ("jax.numpy.diag_indices", DIAGONAL_OF, "numpy.diag_indices")


def is_boundary(writes: list[Write], source: Source) -> bool:
    """Whether these are writes to edges of an array that is there, a last one or two axes among them:
    `u.at[0].set(a).at[-1].set(b)`."""
    edges = [edge(write) for write in writes]
    if len(writes) < 2 or None in edges or is_columns(writes) or is_fresh(root(writes[0]), source):
        return False
    found = {one for one in edges if one is not None}
    return len(found) > 1 and (any(not at_start for _, at_start in found) or len({axis for axis, _ in found}) > 1)


def edge(write: Write) -> tuple[int, bool] | None:
    """The axis that is written at its start or its end, and whether that is the start; None for other places.

    Axes behind `...` count from the end.
    """
    index = [*write.index]
    edges = [(i, at_start) for i, part in enumerate(index) if (at_start := _end(part)) is not None]
    if len(edges) != 1 or write.method not in ("set", "add", "multiply", "mul"):
        return None
    (axis, at_start), *_ = edges
    if not all(is_whole(part) or _is_inner(part) for i, part in enumerate(index) if i != axis):
        return None
    behind_ellipsis = any(isinstance(part, cst.Ellipsis) for part in index[:axis])
    return (axis - len(index) if behind_ellipsis else axis), at_start


def _end(part: Part) -> bool | None:
    """True for a place at the start (`0`, `:k`), False for one at the end (`-1`, `-k:`)."""
    match part:
        case cst.Slice(lower=None | cst.Integer("0"), upper=cst.BaseExpression() as upper, step=None):
            return None if isinstance(upper, cst.UnaryOperation) else True
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus()), upper=None, step=None):
            return False
    where = constant(part)
    return None if where not in (0, -1) else where == 0


def _is_inner(part: Part) -> bool:
    """`1:-1`."""
    match part:
        case cst.Slice(lower=cst.BaseExpression() as lower, upper=cst.UnaryOperation(), step=None):
            return not isinstance(lower, cst.UnaryOperation)
    return False


def is_blocks(writes: Sequence[Write], source: Source) -> bool:
    """Whether a new array is made up of blocks: slices, and rows or columns beside them, at places that are known
    when the program is compiled."""
    if len(writes) < 2 or not is_fresh(root(writes[0]), source) or is_columns([*writes]):
        return False
    if any(w.method not in ("set", "add") for w in writes) or not any(is_block(w.index) for w in writes):
        return False
    known = {name for write in writes for part in write.index if is_slice(part) for name in _names(part)}
    return all(_is_place(part, known) for write in writes for part in write.index)


def is_block(index: Sequence[Part]) -> bool:
    """Whether a slice of an array is written."""
    return any(is_slice(part) for part in index)


def is_slice(part: Part) -> bool:
    """`a:b`, one of the bounds missing or none, in steps of one."""
    return is_cut(part) and part.step is None


def _is_place(part: Part, known: set[str]) -> bool:
    if is_whole(part) or is_slice(part) or constant(part) is not None:
        return True
    # What bounds a slice is known when the program is compiled.
    return isinstance(part, cst.BaseExpression) and not isinstance(part, cst.Call) and {*_names(part)} <= known != set()


def is_blocks_of_a_loop(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether the loop writes one block of a new array after the other: `x.at[:, start:end].set(block)`."""
    if any(is_nested(part, loop) for write in found.writes for part in write.index):
        return False
    return all(is_block(write.index) and is_fresh_before(write, loop, source) for write in found.writes)


def is_nested(part: Part, loop: cst.For) -> bool:
    """Whether a slice is longer or shorter each time, and goes over what the last one wrote: `i : n - i`, `i:`."""
    if not isinstance(part, cst.Slice) or is_whole(part):
        return False
    counted = set(_names(loop.target))
    match part:
        case cst.Slice(lower=None, upper=cst.BaseExpression() as bound) | cst.Slice(lower=bound, upper=None):
            return bound is not None and not counted.isdisjoint(_names(bound))
        case cst.Slice(lower=low, upper=cst.BinaryOperation(operator=cst.Subtract(), right=less)):
            return low is not None and not counted.isdisjoint(_names(low)) and not counted.isdisjoint(_names(less))
    return False


def is_fresh_before(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether what the loop begins with is new and all of one value."""
    first = _begun_with(write, loop, source)
    return first is not None and is_fresh(first, source)


def are_rows_of_a_new_one(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether what a turn writes is seen to be a row, of whatever length: `[i, :]`, `[..., i, :]`, `[i]` of
    `jnp.zeros((n, m))`. A column is none."""
    places = told_axes(write.index)
    if len(places) != 1:
        return False
    if places[0] < len(write.index) - 1:
        return True
    match _begun_with(write, loop, source):
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=[_, _, *_])), *_]):
            return places == [0]
    return False


def _begun_with(write: Write, loop: cst.For, source: Source) -> cst.BaseExpression | None:
    """What the loop begins with; None where that is not seen."""
    array = root(write)
    last = written_before(array, loop, source) if isinstance(array, cst.Name) else None
    assign = _assignment(last, source) if last is not None else None
    return assign.value if assign is not None else None


def _assignment(name: cst.Name, source: Source) -> cst.Assign | None:
    statement = next(iter(source.ancestors(source.parent(name) or name)), None)
    return statement if isinstance(statement, cst.Assign) else None


def _names(part: cst.CSTNode) -> Iterator[str]:
    return (node.value for node in names_in(part))


def diagonal(write: Write, source: Source) -> cst.BaseExpression | None:
    """n, where two axes are written at `jnp.diag_indices(n)`, in one name or two, or at `arange(n), arange(n)`: the
    last two, or those before all of others; or the array whose diagonal is asked for; None for other places."""
    index = [part for part in write.index[axes_before(write) :] if not is_whole(part)]
    parts = [_unpacked_from(index, source) or meant_in_the_end(part, source) for part in index]
    match parts:
        case [cst.BinaryOperation(left=made, operator=cst.Add(), right=cst.Tuple(elements=behind))] if all(
            is_whole(each.value) or dotted(each.value) == "Ellipsis" for each in behind
        ):
            parts = [made]
    match parts:
        case [cst.Call(args=[cst.Arg(value=length, star="")]), *_] if source.calls(parts[0], *_DIAGONALS):
            return length if len({*map(id, parts)}) == 1 else None
        case [cst.Call() as rows, cst.Call() as places]:
            if source.calls(rows, *RANGES) and source.code(rows) == source.code(places) and len(rows.args) == 1:
                return rows.args[0].value
        case [cst.Call() as rows, cst.Call() as places, cst.Call() as others]:
            if source.code(places) == source.code(others) and source.calls(rows, "jax.numpy.repeat"):
                return _tiled(places, source)
    return None


def has_axes_behind(write: Write, source: Source) -> bool:
    """Whether a diagonal is written in the first axes: `.at[i, i, :]`, `.at[jnp.diag_indices(n) + (...,)]`."""
    return is_whole(write.index[-1]) or isinstance(meant_in_the_end(write.index[-1], source), cst.BinaryOperation)


def _unpacked_from(index: Sequence[Part], source: Source) -> cst.Call | None:
    """The call that two names, all of an index, are unpacked from, `i, j = jnp.diag_indices(n)`, or whose two results
    they are, `places[0], places[1]`."""
    picked = [_picked(part) for part in index]
    made = [unpacked(source.written(part), source) for part in index if isinstance(part, cst.Name)]
    if [place for _, place in picked] == [0, 1]:
        made = [source.meant(whole) for whole, _ in picked]
    one = made[0] if len(made) == 2 and len(index) == 2 and made[0] is made[1] else None
    return one if source.calls(one, *_DIAGONALS) else None


def _picked(part: Part) -> tuple[cst.Name | None, int | None]:
    """What is picked from under a name, and which place of it: `places[0]`."""
    match part:
        case cst.Subscript(value=cst.Name() as whole, slice=slices):
            match elements(slices):
                case (cst.Integer() as place,):
                    return whole, place.evaluated_value
    return None, None


def axes_before(write: Write) -> int:
    """How many parts of the index are whole axes before the last two: of `[..., i, i]` and `[:, i, i]` one."""
    before = write.index[:-2]
    return len(before) if all(is_whole(part) for part in before) else 0


def _tiled(places: cst.Call, source: Source) -> cst.BaseExpression | None:
    """n of `jnp.tile(jnp.arange(n), times)`."""
    of = meant_in_the_end(places.args[0].value, source) if places.args else None
    if not source.calls(places, "jax.numpy.tile") or not source.calls(of, *RANGES):
        return None
    return of.args[0].value if len(of.args) == 1 else None
