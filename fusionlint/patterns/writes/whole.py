"""A new array that a loop writes all of: `x = jnp.zeros((n, m))`, then a row in each of n turns. A stack of what is
written is the array; the zeros need not be made.

In: the write of a loop of a Source, and the rows that it takes. Out: the statement that makes the array, what its rows
are shaped like, and what it holds; and whether a value is seen to be a whole row, and of that dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Write, elements, inside, is_literal, is_whole
from fusionlint.patterns.code.calls import argument, keyword, said_dtype
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.functions import function_named, result_of
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.loops.carry import written_before
from fusionlint.patterns.values.floats import are_all_alike, is_float
from fusionlint.patterns.writes.loop_slices import is_the_same_each_turn
from fusionlint.patterns.writes.turns import Rows, is_equal
from fusionlint.source.tree import Source

_LIKE = tuple(f"jax.numpy.{name}_like" for name in ("zeros", "ones", "empty"))
_OF_FLOATS = tuple(f"jax.numpy.{name}" for name in ("zeros", "ones", "empty"))
# What gives an array of as many places as one that it is handed.
_KEEPS_THE_SHAPE = ("jax.numpy.roll", "jax.numpy.flip", "jax.numpy.sort", "jax.nn.softmax", "jax.nn.log_softmax")
_OF_A_LIST = ("jax.numpy.array", "jax.numpy.asarray", "jax.numpy.stack")
_FLOAT = regex(r"(^|\.)float(32)?$")
# Names seldom stand for more names than this.
_DEPTH = 6


class Made(NamedTuple):
    """What a new array is made as: the sizes along its first axes, as they are written, and what follows them,
    `x.shape` of `(n,) + x.shape`; and its dtype, "float" of zeros of which nothing is said, "" where it is not
    seen."""

    sizes: tuple[str, ...]
    rest: str
    dtype: str
    is_vector: bool = False  # whether one axis is all that it is seen to have

    def row(self, axis: int) -> str | None:
        """The shape of what one place along an axis holds, None where that is not seen; `()` of numbers."""
        if not self.sizes:
            return {0: f"{self.rest}[1:]", -1: f"{self.rest}[:-1]"}.get(axis)
        if self.rest and axis != 0:
            return None
        others = [size for place, size in enumerate(self.sizes) if place != axis % len(self.sizes)]
        if self.rest and not others:
            return self.rest
        shape = f"({', '.join(others)}{',' if len(others) == 1 else ''})"
        return f"{shape} + {self.rest}" if self.rest else shape


class Whole(NamedTuple):
    """The statement that makes an array of which a loop writes every place, and what the array is made as."""

    statement: cst.Assign
    made: Made


def whole(write: Write, taken: Mapping[int, Rows], loop: cst.For, source: Source) -> Whole | None:
    """What makes the array of a write that takes such rows along some axes, if these are all that it has, a line of the
    block of the loop makes it, and nothing asks for it before the loop is through."""
    target = source.assigned_name(write.call)
    before = written_before(target, loop, source) if target is not None else None
    statement = assignment(before, source)
    if write.method != "set" or target is None or before is None or statement is None or len(statement.targets) > 1:
        return None
    line = source.parent(statement)
    if whole_line(statement, source) is None or line is None or source.parent(line) is not source.parent(loop):
        return None
    for use in source.uses(target):
        is_between = source.order(before) < use.order and (
            use.order < source.order(loop.iter) or loop in source.ancestors(use.node)
        )
        if is_between and use.node not in (before, target, write.array):
            return None
    made = made_as(statement.value, source)
    is_same = is_same_at(statement.value, loop.iter, source) and is_the_same_each_turn(statement.value, loop)
    if made is None or not is_same or source.has_comment(statement):
        return None
    for axis, rows in taken.items():
        sizes = _along(axis, made, statement.value, source)
        if rows.begin != "0" or not any(is_equal(rows.end, size) for size in sizes):
            return None
    return Whole(statement, made) if sum(not is_whole(part) for part in write.index) == len(taken) else None


def _along(axis: int, made: Made, value: cst.BaseExpression, source: Source) -> list[str]:
    """How many places there are along an axis, as the code says it."""
    found = []
    if axis in range(len(made.sizes)) or (axis < 0 and not made.rest and -axis <= len(made.sizes)):
        found.append(made.sizes[axis])
    if source.calls(value, *_LIKE) and isinstance(value.args[0].value, cst.Name):
        like = value.args[0].value.value
        found += [f"{like}.shape[{axis}]", *([f"len({like})"] if axis == 0 else [])]
    return found


def made_as(value: cst.BaseExpression, source: Source) -> Made | None:
    """What a call that makes a new array is seen to say of it; None of any other value."""
    if not isinstance(value, cst.Call):
        return None
    if source.calls(value, *_LIKE) and len(value.args) == 1 and isinstance(value.args[0].value, cst.Name):
        like = value.args[0].value.value
        return Made((), f"{like}.shape", f"{like}.dtype")
    shape = argument(value, 0, "shape") if source.calls(value, *FRESH_BY_SHAPE) else None
    if shape is None:
        return None
    dtype = _dtype(value, source)
    match shape:
        case cst.Tuple() | cst.List():
            sizes = _sizes(shape, source)
            return Made(sizes, "", dtype, len(sizes) == 1) if sizes else None
        case cst.BinaryOperation(
            left=cst.Tuple() as first, operator=cst.Add(), right=cst.Attribute(attr=cst.Name("shape")) as rest
        ):
            sizes = _sizes(first, source)
            return Made(sizes, source.code(rest), dtype) if sizes else None
        case cst.BinaryOperation(left=cst.Name() | cst.Integer(), right=cst.Name() | cst.Integer()) | cst.Integer():
            return Made((source.code(shape),), "", dtype, is_vector=True)
    return Made((source.code(shape),), "", dtype, source.calls(shape, "len"))


def _sizes(shape: cst.Tuple | cst.List, source: Source) -> tuple[str, ...]:
    if any(isinstance(size, cst.StarredElement) for size in shape.elements):
        return ()
    return tuple(source.code(size.value) for size in shape.elements)


def _dtype(made: cst.Call, source: Source) -> str:
    said = said_dtype(made, source)
    if said is not None:
        return source.code(said)
    if source.calls(made, *_OF_FLOATS):
        return "float"
    fill = argument(made, 1, "fill_value")
    return "float" if isinstance(fill, cst.Float) or (isinstance(fill, cst.Attribute) and not is_literal(fill)) else ""


def is_of_dtype(value: cst.BaseExpression | None, dtype: str, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a value is seen to be of a dtype: brought to it in so many words, or made of floats, where a file has no
    others than jax's own."""
    if value is None or not depth:
        return False
    match value:
        case cst.Name() as name if (meant := source.value(name)) is not None:
            return is_of_dtype(meant, dtype, source, depth - 1)
        case cst.Call(func=cst.Attribute(attr=cst.Name("astype")), args=[*_, cst.Arg(value=said)]):
            return source.code(said) == dtype
        case cst.Call() as call if (keyed := keyword(call, "dtype")) is not None:
            return source.code(keyed) == dtype
    return _FLOAT.search(dtype) is not None and are_all_alike(source) and is_float(value, source)


def is_a_row(value: cst.BaseExpression | None, row: str, write: Write, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a value is seen to have the shape `row`: by elementwise work on what stood at the place, or on an array
    of that shape; or one branch of a conditional makes such. An array of one axis fills no row but one of its own
    length."""
    if value is None or not depth:
        return False
    if _is_what_gives_the_sizes(value, row, write, source) or _is_made_so(value, row, source):
        return True
    match value:
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other), *_]) if source.calls(value, "jax.lax.cond"):
            branches = (function_named(branch, source) for branch in (one, other))
            return any(
                is_a_row(result_of(branch, source), row, write, source, depth - 1) for branch in branches if branch
            )
        case cst.Name(value=name):
            if row == f"{name}.shape":
                return True
            return is_a_row(source.value(value), row, write, source, depth - 1)
        case cst.Subscript(value=cst.Name(value=name), slice=slices):
            parts = [*map(source.code, elements(slices))]
            is_its_place = parts == [*map(source.code, write.index)]
            is_of_another = len(parts) == 1 and isinstance(write.array, cst.Name) and row == f"{name}.shape[1:]"
            if is_its_place and (source.code(write.array) == name or is_of_another):
                return True
            has_a_slice = any(isinstance(s.slice, cst.Slice) for s in slices)
            return has_a_slice and _is_of_one_axis(row)
        case cst.Call(args=[cst.Arg(value=cst.List(elements=listed)), *_]) if source.calls(value, *_OF_A_LIST):
            is_full = len(value.args) == 1 and not any(isinstance(one, cst.StarredElement) for one in listed)
            return is_full and row == f"({len(listed)},)"
        case cst.Call(args=[cst.Arg(value=inner), *_]) if source.calls(value, *_KEEPS_THE_SHAPE):
            return is_a_row(inner, row, write, source, depth - 1)
        case cst.Call(func=cst.Attribute(attr=cst.Name("ravel" | "flatten")), args=[]):
            return _is_of_one_axis(row)
    several = operands(value, source) or ()
    return any(is_a_row(one, row, write, source, depth - 1) for one in several)  # what is more would not fit in


def _is_what_gives_the_sizes(value: cst.BaseExpression, row: str, write: Write, source: Source) -> bool:
    """Whether all sizes of a row are taken from the shape of this very array: `n, m = x.shape`."""
    function = source.function(write.call) if isinstance(value, cst.Name | cst.Attribute) else None
    for part in inside(function.body) if function is not None else ():
        match part:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Tuple(elements=sizes))],
                value=cst.Attribute(value=whole, attr=cst.Name("shape")),
            ) if source.code(whole) == source.code(value):
                names = [size.value for size in sizes if isinstance(size.value, cst.Name)]
                is_all = len(names) == len(sizes) > 1 and row == f"({', '.join(name.value for name in names)})"
                if is_all and all(len(source.writes(name)) == 1 for name in names):
                    return is_same_at(whole, write.call, source)
    return False


def _is_made_so(value: cst.BaseExpression, row: str, source: Source) -> bool:
    """`jnp.zeros(10)`, of a row `(10,)`."""
    made = made_as(value, source)
    if made is None or made.rest or not made.sizes or (len(made.sizes) == 1 and not made.is_vector):
        return False
    return row == f"({', '.join(made.sizes)}{',' if made.is_vector else ''})"


def _is_of_one_axis(row: str) -> bool:
    """`(n,)`."""
    return row.startswith("(") and row.endswith(",)") and row.count(",") == 1
