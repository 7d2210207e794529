"""One join in place of the writes along one axis of an array: `x.at[0].set(a).at[1:].set(b)`.

In: the writes, first to last, nested or in statements of one block. Out: the join, with the edits that write it. Each
part is `jnp.full_like` of what it is written over, which brings it to the shape and the dtype of its place as a write
does, unless it is seen to have those; what is not written stays a part of the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import (
    Part,
    Write,
    constant,
    elements,
    inside,
    is_about,
    is_fresh,
    is_literal,
    is_whole,
    names_read,
    number_in,
    told_axes,
)
from fusionlint.patterns.code.broken import in_one_line
from fusionlint.patterns.code.calls import argument, as_argument, as_operand
from fusionlint.patterns.code.layout import Called, in_a_list, in_place_of
from fusionlint.patterns.code.layout import Part as Code
from fusionlint.patterns.code.left_unused import whole_line, without_gaps
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.values.annotations import is_said_to_be_a_list
from fusionlint.patterns.values.floats import is_known_number
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.chain import outermost, root
from fusionlint.patterns.writes.fused import axis_of
from fusionlint.patterns.writes.merged import made_for
from fusionlint.patterns.writes.pieces import join, pieces
from fusionlint.patterns.writes.plain_parts import (
    cut_alike,
    dtype_of,
    has_its_shape,
    in_a_row,
    in_columns,
    is_of_its_dtype,
    keeps_its_dtype,
    lies_alike,
)
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_STRONG = ("jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty")
# What counts how often it was asked: layers without names, and streams of random numbers.
_COUNTS = ("flax.", "haiku.", "numpy.random.", "random.", "numpyro.")


class Rebuilt(NamedTuple):
    """The join, the edits that write it, and whether it is the same to the last bit."""

    called: Called
    edits: tuple[Edit, ...]
    is_exact: bool


class _Steps(NamedTuple):
    """The statements of the writes: the line of each, what the array is called at the last, and the edits that take
    the ones before away."""

    lines: Sequence[cst.SimpleStatementLine]
    array: str
    edits: tuple[Edit, ...]


def rebuilt(writes: Sequence[Write], source: Source) -> Rebuilt | None:
    """None where something in the way of it is seen, or not enough is seen."""
    axis, jnp = axis_of(writes), source.alias_at(writes[-1].call, "jax.numpy")
    if axis is None or jnp is None or not all(_is_plain(write, source) for write in writes):
        return None
    if not is_fresh(root(writes[0]), source) and all(is_literal(write.value) for write in writes):
        return None  # a choice says that without taking the array apart
    steps = _steps(writes, source)
    if steps is None or not _are_the_same_there(writes, steps, source):
        return None
    parts = [next(part for part in write.index if not is_whole(part)) for write in writes]
    in_order = pieces(parts, source)
    joined = join(parts, in_order, _size(writes, axis, source), source) if in_order is not None else None
    if in_order is None or joined is None or not _keep_their_order(writes, [p.number for p in in_order], steps, source):
        return None
    order = [piece.number for piece in in_order]
    if not any(joined.between) and not any(piece.cut for piece in in_order):
        if (row := in_a_row(writes, order, source)) is not None:
            return _without_the_array(writes, f"{jnp}.hstack", row, "", steps, source)
        are_one = all(not isinstance(part, cst.Slice) for part in parts)
        if are_one and axis != 0 and (columns := in_columns(writes, order, axis, source)) is not None:
            return _without_the_array(writes, f"{jnp}.stack", columns, f"axis={axis}", steps, source)
    first = root(writes[0])
    places = [_Place(steps.array, first, write, part, jnp, source) for write, part in zip(writes, parts, strict=True)]
    filled = [places[piece.number].filled(piece.cut) for piece in in_order]
    kept = [places[0].slice(between) if between else "" for between in joined.between]
    listed: list[Code] = []
    for before, part in zip(kept, [*filled, None], strict=True):
        listed += [each for each in (before, part) if each]
    if not any(kept) and all(place.is_one for place in places) and axis != 0:
        called = Called(f"{jnp}.stack", [in_a_list(*(places[p.number].column() for p in in_order)), f"axis={axis}"])
    else:
        called = Called(f"{jnp}.concatenate", [in_a_list(*listed), *([f"axis={axis}"] if axis else [])])
    made = source.meant(root(writes[0]))
    is_plain = any(isinstance(each, str) for each in filled)
    is_exact = (
        joined.is_sure
        and not is_plain
        and source.calls(made, *_STRONG)
        and all(write.method == "set" for write in writes)
    )
    return Rebuilt(called, (in_place_of(writes[-1].call, called, source), *without_gaps(steps.edits, source)), is_exact)


def _without_the_array(
    writes: Sequence[Write], function: str, listed: Sequence[str], axis: str, steps: _Steps, source: Source
) -> Rebuilt | None:
    """The parts as they are, one behind or beside the other, without the array that they were written to."""
    dtype = dtype_of(writes, source)
    if dtype is None:
        return None
    settings = [axis, f"dtype={dtype}" if dtype else ""]
    called = Called(function, [in_a_list(*listed), *filter(None, settings)])
    array, unread = root(writes[0]), _unread(writes, steps, source)
    before = steps.edits if unread is None else (Edit(unread, ""), *steps.edits[1:])
    edits = [in_place_of(writes[-1].call, called, source), *before]
    if isinstance(array, cst.Name) and (made := made_for(array, writes[0], source)) is not None:
        line = whole_line(made, source)
        edits += [Edit(line, "")] if line is not None else []
    return Rebuilt(called, without_gaps(edits, source), is_exact=False)


def _unread(writes: Sequence[Write], steps: _Steps, source: Source) -> Location | None:
    """The first line, `x = jnp.zeros(n).at[0].set(a)`, where it would be left with an array that nobody reads."""
    name = source.assigned_name(outermost(writes[0], source).call)
    if len(steps.lines) < 2 or is_short(root(writes[0])) or name is None or len(source.reads(name)) > 1:
        return None
    return whole_line(steps.lines[0].body[0], source)


class _Place(NamedTuple):
    """A place of the array, and what goes there."""

    array: str
    first: cst.BaseExpression  # what it is called before all writes
    write: Write
    part: Part
    jnp: str
    source: Source

    @property
    def is_one(self) -> bool:
        return not isinstance(self.part, cst.Slice)

    def at(self, part: str) -> str:
        """That part of the axis."""
        return f"[{self._around(part)}]"

    def slice(self, part: str) -> str:
        return f"{self.array}{self.at(part)}"

    def _plain(self, cut: str) -> str | None:
        """What goes there as it is, where its shape and its dtype are seen."""
        if (own := cut_alike(self.write, self.part, self.array, self.source)) is not None:
            return own
        is_plain = lies_alike(self.write, self.part) and is_of_its_dtype(self.write, self.source)
        return in_one_line(self.source.code(self.write.value)) if is_plain and not cut and self.write.value else None

    def filled(self, cut: str) -> Code:
        """What goes there, with the axis that a single place lacks."""
        part = self.source.code(self.part)
        if (plain := self._plain(cut)) is not None:
            return plain
        if not self.is_one:
            return self._full(part, self.at(cut) if cut else "")
        if self._is_first_axis() or _is_number(self.write.value, self.source):
            at = constant(self.part)
            end = f"{part} + 1" if at is None else "" if at == -1 else f"{at + 1}"
            is_alike = self.write.method == "set" and self._fits()
            return self._full(part, "[None]") if is_alike else self._full(f"{'' if at == 0 else part}:{end}")
        return self._full(part, self.at("None"))

    def column(self) -> Code:
        return self._full(self.source.code(self.part))

    def _fits(self) -> bool:
        """Whether what goes there is seen to have the shape and the dtype of its place: it is worked out of that."""
        if self.write.value is None or _is_a_list(self.write.value, self.source):
            return False
        is_alike = self.write.method == "add" or has_its_shape(self.write, self.part, self.first, self.source)
        return is_alike and keeps_its_dtype(self.write, self.first, self.source)

    def _full(self, part: str, behind: str = "") -> Code:
        value = self.write.value
        assert value is not None
        text, there = as_argument(value, self.source), self.slice(part)
        if _is_a_list(value, self.source):
            text = f"{self.jnp}.array({text})"
        if self.write.method == "add":
            text = f"{there} + {as_operand(value, text)}"
        if self._fits():
            is_sum = self.write.method == "add"
            return f"{f'({text})' if is_sum else as_operand(value, text)}{behind}" if behind else text
        return Called(f"{self.jnp}.full_like", [there, text], behind=behind)

    def _around(self, part: str) -> str:
        here = number_in(self.write.index, self.part)
        before, after = self.write.index[:here], self.write.index[here + 1 :]
        is_open = any(isinstance(each, cst.Ellipsis) for each in before)
        return ", ".join([*map(self.source.code, before), part, *(map(self.source.code, after) if is_open else ())])

    def _is_first_axis(self) -> bool:
        return self.write.index[0] is self.part


def _is_plain(write: Write, source: Source) -> bool:
    is_one = sum(not is_whole(part) for part in write.index) == 1
    is_set = write.method in ("set", "add") and write.value is not None and len(write.call.args) == 1
    return is_one and is_set and not source.has_comment(write.call)


def _is_number(value: cst.BaseExpression | None, source: Source) -> bool:
    inner = value.expression if isinstance(value, cst.UnaryOperation) else value
    is_constant = is_known_number(inner, source)
    is_written = is_literal(value) and not isinstance(value, cst.List | cst.Tuple)
    return is_constant or is_written or is_a_number(value, source)


def _is_a_list(value: cst.BaseExpression, source: Source) -> bool:
    if isinstance(source.meant(value), cst.List | cst.Tuple | cst.ListComp):
        return True
    return isinstance(value, cst.Name) and is_said_to_be_a_list(value, source)


def _steps(writes: Sequence[Write], source: Source) -> _Steps | None:
    """The statements, where they stand in one block with nothing between them but names that are given values."""
    tops = list(dict.fromkeys(outermost(write, source).call for write in writes))
    lines = [source.nearest(top, cst.SimpleStatementLine) for top in tops]
    *before, last = lines
    if last is None or any(line is None or len(line.body) != 1 for line in before):
        return None
    found = [line for line in lines if line is not None]
    block, array = source.parent(last), root(writes[0])
    if not before:
        return _Steps(found, source.code(array), ()) if is_short(array) else None
    if not isinstance(block, cst.IndentedBlock) or any(source.parent(line) is not block for line in found):
        return None
    places = [i for i, each in enumerate(block.body) if any(each is line for line in found)]
    if not all(_only_names_values(each) for each in block.body[places[0] : places[-1]]):
        return None
    names = [source.assigned_name(top) for top in tops[:-1]]
    if any(
        name is None or not isinstance(source.parent(top), cst.Assign) for name, top in zip(names, tops, strict=False)
    ):
        return None
    called = {name.value for name in names if name is not None}
    taken = [whole_line(line.body[0], source) for line in found[:-1]]
    if len(called) != 1 or None in taken[1:]:
        return None
    edits = [Edit(where, "") for where in taken[1:] if where is not None]
    if not is_short(array):
        return _Steps(found, called.pop(), (source.replace(tops[0], source.code(array)), *edits))
    if taken[0] is None or _is_written_else(array, names, tops[-1], source):
        return None
    return _Steps(found, source.code(array), (Edit(taken[0], ""), *edits))


def _only_names_values(statement: cst.BaseStatement) -> bool:
    """`a = f(b)`, `a, b = c`, and no field or element."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        match small:
            case cst.Assign(targets=targets):
                wholes = [each.target for each in targets]
            case cst.AnnAssign(target=whole) | cst.AugAssign(target=whole):
                wholes = [whole]
            case cst.Expr(value=cst.SimpleString()):
                continue
            case _:
                return False
        if any(isinstance(part, cst.Attribute | cst.Subscript) for whole in wholes for part in inside(whole)):
            return False
    return True


def _is_written_else(
    array: cst.BaseExpression, names: Sequence[cst.Name | None], last: cst.CSTNode, source: Source
) -> bool:
    """Whether the array gets another value on the way than by the writes."""
    begin, end = source.order(array), source.order(last)
    if not isinstance(array, cst.Name):
        return False
    between = [use.node for use in source.writes(array) if begin < use.order < end]
    return any(not any(node is name for name in names) for node in between)


def _are_the_same_there(writes: Sequence[Write], steps: _Steps, source: Source) -> bool:
    """Whether what is written means the same at the last of the statements, where the array is as it was at first."""
    array, last = root(writes[0]), writes[-1].call
    own = {name.value for top in steps.lines[:-1] for part in inside(top) if (name := _stored(part)) is not None}
    own = own if len(steps.lines) > 1 else set()
    if is_short(array) and not all(is_same_at(n, last, source) for n in names_read(array) if n.value not in own):
        return False
    for number, write in enumerate(writes):
        line = source.nearest(write.call, cst.SimpleStatementLine)
        earlier = [w for w in writes[:number] if source.nearest(w.call, cst.SimpleStatementLine) is not line]
        for part in (write.value, *write.index):
            for name in names_read(part) if part is not None else ():
                if name.value in own:
                    if not (earlier or is_short(array)) or not _is_as_at_first(name, earlier, steps, source):
                        return False  # of what is given the name there first, it says what was called so before
                elif not is_same_at(name, last, source):
                    return False
    return True


def _stored(node: cst.CSTNode) -> cst.Name | None:
    match node:
        case cst.AssignTarget(target=cst.Name() as name):
            return name
    return None


def _is_as_at_first(read: cst.Name, earlier: Sequence[Write], steps: _Steps, source: Source) -> bool:
    """Whether what is read of the array was not written before: `x[1]`, where `x.at[0]` was."""
    if read.value != steps.array:
        return False
    if is_about(read, source) or not earlier:
        return True
    above = source.parent(read)
    if not isinstance(above, cst.Subscript) or above.value is not read:
        return False
    place = elements(above.slice)
    return all(_are_apart(place, write.index, source) for write in earlier)


def _are_apart(place: Sequence[Part], other: Sequence[Part], source: Source) -> bool:
    """Whether two places differ by the number on the one axis that is not all taken, `[:, 0]` and `[:, 1]`."""
    along = told_axes(other)[0]
    if along >= len(place) or [*map(source.code, place[:along])] != [*map(source.code, other[:along])]:
        return False
    one, there = constant(place[along]), constant(other[along])
    return one is not None and there is not None and one != there


def _keep_their_order(writes: Sequence[Write], order: Sequence[int], steps: _Steps, source: Source) -> bool:
    """Whether what is computed with something that counts is computed in the order that it was."""
    counts = [i for i, write in enumerate(writes) if write.value is not None and any(_counting(write.value, source))]
    if not counts:
        return True
    is_in_order = [i for i in order if i in counts] == counts
    first, last = (source.order(line) for line in (steps.lines[0], steps.lines[-1]))
    block = source.parent(steps.lines[-1])
    others = (
        [each for each in block.body if first < source.order(each) < last]
        if isinstance(block, cst.IndentedBlock)
        else []
    )
    return is_in_order and all(any(each is line for line in steps.lines) for each in others)


def _counting(value: cst.BaseExpression, source: Source) -> Iterator[bool]:
    """The calls that may give something else each time: layers, and draws without a key."""
    for call in inside(value, cst.Call):
        name = source.qualified_name(call.func) or ""
        if name.startswith(_COUNTS) or isinstance(call.func, cst.Call) or dotted(call.func).startswith("self."):
            yield True


def _size(writes: Sequence[Write], axis: int, source: Source) -> str:
    """How long a new array is said to be along an axis; "" where that is not seen."""
    made = source.meant(root(writes[0]))
    if not source.calls(made, *_STRONG, "jax.numpy.full"):
        return ""
    said = argument(made, 0, "shape")
    shape = source.meant(said)
    if isinstance(shape, cst.Tuple | cst.List):
        sizes = [each.value for each in shape.elements]
        if any(isinstance(each, cst.StarredElement) for each in shape.elements) or not -len(sizes) <= axis < len(sizes):
            return ""
        return source.code(sizes[axis])
    match shape:
        case cst.BinaryOperation(operator=cst.Add(), right=cst.Tuple(elements=[*_, cst.Element(value=last)])):
            return source.code(last) if axis == -1 else ""  # `x.shape + (2,)`
    return source.code(said) if said is not None and axis == 0 else ""
