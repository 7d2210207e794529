"""A new array with something at one place of it, or of each row, by a comparison: `(jnp.arange(n) == i).astype(float)`.

In: the one write into an array that is new and of one value, and that nothing else reads. Out: code in place of the
write, and the edits. A comparison finds no place below zero, where a write counts from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import Write, constant, is_literal, is_none, is_whole
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, hides_some, is_handed_to
from fusionlint.patterns.code.layout import Called, Part, in_place_of
from fusionlint.patterns.code.left_unused import left_unused, whole_line
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment, meant_in_the_end
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.into_new import axes_of, fill_of
from fusionlint.patterns.writes.whole import is_of_dtype
from fusionlint.source.tree import Source

_LIKE = tuple(f"jax.numpy.{name}_like" for name in ("zeros", "ones", "full"))
_FULL = ("jax.numpy.full", "jax.numpy.full_like")
_TRUTHS = ("bool", "bool_")
_LOGICAL = tuple(f"jax.numpy.logical_{name}" for name in ("not", "and", "or", "xor"))


def at_one_place(write: Write, source: Source) -> tuple[str, tuple[Edit, ...]] | None:
    """Of a write to one place, whose index says all axes."""
    jnp, lengths, fill = source.alias_at(write.call, "jax.numpy"), sizes(write, source), fill_of(write, source)
    if jnp is None or lengths is None or fill is None or write.value is None or not _can_go(write, source):
        return None
    count = len(write.index)
    places = [
        _equal(f"{jnp}.arange({length}){_spread(count - 1 - axis)}", part, source)
        for axis, (length, part) in enumerate(zip(lengths, write.index, strict=True))
    ]
    if None in places:
        return None
    where = f"({places[0]})" if count == 1 else f"({' & '.join(f'({place})' for place in places)})"
    said = dtype(write, source)
    is_one = source.code(write.value) in ("1", "1.0", "1.", "True") and fill == "0"
    if is_one:
        is_truth = said in _bools(source) or _is_asked_as_truth(write, source)
        stands_alone = isinstance(source.parent(write.call), cst.Assign | cst.Arg | cst.Return)
        text = f"{where}.astype({said})" if not is_truth else where[1:-1] if stands_alone else where
    else:
        parts = [where[1:-1], as_argument(write.value, source), fill]
        return _instead(write, Called(f"{jnp}.where", parts, behind=_as(said, write.value, fill, source)), source)
    return _instead(write, text, source)


def _is_asked_as_truth(write: Write, source: Source) -> bool:
    """Whether nobody asks of the array but whether an element is 0: `jnp.logical_not(x)` of all that read it."""
    reads = source.readers(write.call)
    return bool(reads) and all(is_handed_to(read, source, *_LOGICAL) for read in reads)


def one_hot(write: Write, axis: int, source: Source) -> tuple[str, tuple[Edit, ...]] | None:
    """Of a one at one place of each row, or, along axis 0, of each column."""
    jax, jnp, lengths = (
        source.alias_at(write.call, "jax"),
        source.alias_at(write.call, "jax.numpy"),
        sizes(write, source),
    )
    other = meant_in_the_end(write.index[1 - axis], source)
    if jnp is None or lengths is None or len(lengths) != 2 or not _can_go(write, source):
        return None
    if not isinstance(other, cst.Call) or not _counts(other, lengths[1 - axis], write, source):
        return None  # rows are left without a one, or nobody sees it
    place, said = write.index[axis], dtype(write, source)
    if not isinstance(place, cst.BaseExpression):
        return None
    along, of = "" if axis else ", axis=0", "" if said == "float" else f", dtype={said}"
    shown = as_argument(place, source)
    text = f"{jax}.nn.one_hot({shown}, {lengths[axis]}{along}{of})"
    if jax is None:
        each = f"{jnp}.expand_dims({shown}, -1)" if axis else as_operand(place, shown)
        text = f"({jnp}.arange({lengths[axis]}){'' if axis else '[:, None]'} == {each}).astype({said})"
    return _instead(write, text, source)


def of_each_row(write: Write, source: Source) -> tuple[str, tuple[Edit, ...]] | None:
    """Of whatever is set at one place of each row."""
    jnp, lengths, fill = source.alias_at(write.call, "jax.numpy"), sizes(write, source), fill_of(write, source)
    rows = meant_in_the_end(write.index[0], source)
    if jnp is None or lengths is None or len(lengths) != 2 or fill is None or not _can_go(write, source):
        return None
    place, value = write.index[1], write.value
    if not isinstance(rows, cst.Call) or not _counts(rows, lengths[0], write, source) or value is None:
        return None
    if not isinstance(place, cst.BaseExpression):
        return None
    shown = as_argument(value, source)
    values = shown if is_literal(value) else f"{jnp}.expand_dims({shown}, -1)"
    where = f"{jnp}.arange({lengths[1]}) == {jnp}.expand_dims({as_argument(place, source)}, -1)"
    chosen = Called(f"{jnp}.where", [where, values, fill], behind=_as(dtype(write, source), value, fill, source))
    return _instead(write, chosen, source)


def _as(said: str, value: cst.BaseExpression, fill: str, source: Source) -> str:
    """What gives a choice the type that the new array has, where the value does not bring it: beside a whole number
    `x.astype(jnp.int32)` stays what it is, and so do floats that are computed."""
    is_brought = fill.isdigit() and not is_literal(value) and is_of_dtype(value, said, source)
    return "" if is_brought else f".astype({said})"


def _instead(write: Write, code: Part, source: Source) -> tuple[str, tuple[Edit, ...]]:
    """The edits that write it, and take the array away that it was written into."""
    array, text = root(write), str(code)
    gone = {edit.location: edit for edit in left_unused(write.call, text, source)}
    made = assignment(source.written(array), source) if isinstance(array, cst.Name) else None
    if made is not None and len(made.targets) == 1 and (line := whole_line(made, source)) is not None:
        gone[line] = Edit(line, "")
    return text, (in_place_of(write.call, code, source), *gone.values())


def sizes(write: Write, source: Source) -> list[str] | None:
    """How long the axes of a new array are that an index says all of, as code for the place of the write."""
    made, count = meant_in_the_end(root(write), source), len(write.index)
    if not isinstance(made, cst.Call) or hides_some(made) or not made.args:
        return None
    if source.calls(made, *_LIKE):
        return _of_another(made.args[0].value, count, write, source)
    said = argument(made, 0, "shape")
    if said is None or not is_same_at(said, write.call, source):
        return None
    shape = source.meant(said)
    if isinstance(shape, cst.Attribute) and shape.attr.value == "shape":
        return _of_another(shape.value, count, write, source)
    if isinstance(shape, cst.Tuple | cst.List):
        found = [each.value for each in shape.elements]
        is_seen = len(found) == count and not any(isinstance(each, cst.StarredElement) for each in shape.elements)
        return [source.code(each) for each in found] if is_seen and is_same_at(shape, write.call, source) else None
    return [source.code(said)] if count == 1 and axes_of(write, source) == 1 else None


def dtype(write: Write, source: Source) -> str:
    """What the elements of a new array are, as code."""
    made = meant_in_the_end(root(write), source)
    assert isinstance(made, cst.Call)
    said = argument(made, 2 if source.calls(made, *_FULL) else 1, "dtype")
    if said is not None and not is_none(said):
        return source.code(said)
    if source.calls(made, *_LIKE):
        return f"{source.code(made.args[0].value)}.dtype"
    fill = argument(made, 1, "fill_value") if source.calls(made, *_FULL) else None
    inner = fill.expression if isinstance(fill, cst.UnaryOperation) else fill
    return "int" if isinstance(inner, cst.Integer) else "bool" if isinstance(inner, cst.Name) else "float"


def _bools(source: Source) -> Sequence[str]:
    jnp = source.jnp
    return ("bool", *(f"{jnp}.{name}" for name in _TRUTHS))


def _of_another(array: cst.BaseExpression, count: int, write: Write, source: Source) -> list[str] | None:
    """`x.shape[0], x.shape[1]`: of one place alone nobody sees how many axes there are."""
    if count < 2 or not is_short(array) or not is_same_at(array, write.call, source):
        return None
    return [f"{source.code(array)}.shape[{axis}]" for axis in range(count)]


def _can_go(write: Write, source: Source) -> bool:
    """Whether the write is all there is between the new array and who reads it."""
    if len(write.call.args) != 1 or source.has_comment(write.call):
        return False
    made = meant_in_the_end(root(write), source)
    said = argument(made, 1, "dtype") if isinstance(made, cst.Call) else None
    return (said is None or is_same_at(said, write.call, source)) and not any(map(is_whole, write.index))


def _counts(every: cst.Call, length: str, write: Write, source: Source) -> bool:
    """Whether a range counts all of an axis, and its length means the same at the write."""
    if len(every.args) != 1 or source.code(every.args[0].value) != length:
        return False
    return is_same_at(every.args[0].value, write.call, source)


def _is_below_zero(part: cst.BaseExpression) -> bool:
    return (constant(part) or 0) < 0


def _spread(axes: int) -> str:
    return f"[:{', None' * axes}]" if axes else ""


def _equal(counted: str, part: cst.CSTNode, source: Source) -> str | None:
    """`jnp.arange(n) == i`."""
    if not isinstance(part, cst.BaseExpression) or _is_below_zero(part):
        return None
    text = source.code(part)
    is_loose = isinstance(part, cst.Comparison | cst.BooleanOperation | cst.IfExp | cst.Lambda | cst.NamedExpr)
    is_loose = is_loose or (isinstance(part, cst.UnaryOperation) and isinstance(part.operator, cst.Not))
    return f"{counted} == {f'({text})' if is_loose else text}"
