"""A roll whose ends that come round are written over: `jnp.roll(x, 1).at[0].set(v)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.branches.moved import makes_room
from fusionlint.patterns.code.at import Write, at_write, constant, is_cut, is_literal, is_whole
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, brief, has_only
from fusionlint.patterns.code.layout import Called, in_a_list, in_place_of
from fusionlint.patterns.code.passed_over import passed_over
from fusionlint.patterns.compiled.links import is_write
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import first_uses, readers_of, value_of, writer_of
from fusionlint.patterns.compiled.round import parts_joined
from fusionlint.patterns.values.annotations import is_said_to_be_a_list
from fusionlint.patterns.values.floats import is_known_number
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.values.two_axes import has_rows
from fusionlint.patterns.writes.fused import is_worked_on_alone
from fusionlint.patterns.writes.places import edge
from fusionlint.patterns.writes.rows_made import moves_no_rows
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# How jax moves an array by a number that is known, and how XLA joins the parts; a TPU pads them.
_ROLLS = ("_roll_static",)
_JOINED = ("concatenate", "pad")
_ROLL = "jax.numpy.roll"
_LONG = 30
# The page's pair of what arithmetic alone reads, moved along its first axis.
_READ = 2
# And that of a buffer.
_ROOM = 3
_MOVES_ALL = ": without `axis=` a roll moves all elements in a row"
# What every dtype has, the smallest and the truth values too.
_EXACT = frozenset(("0", "1", "0.0", "1.0", "0.", "1.", "False", "True"))


@rule.source("Call", calls=(_ROLL,))
def rolled_and_written_over(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The roll is read by one write alone, to the end where it put what fell off the other."""
    write = _written_over(node, source)
    if write is None or write.method != "set" or write.value is None or moves_no_rows(node, source):
        return
    if not _is_end_that_came_round(node, write):
        return
    yield source.finding(
        node,
        "the array is moved by one kernel, and the end that came round is written over by another",
        until=write.call,
        write=_advice(node, write, source),
        edits=_fix(node, write, source),
        safe=_is_exact(node, write, source),
        pair=_READ if _is_along_the_first(write) and is_worked_on_alone(write.call, source) else 0,
    )


@rule.source("Call", calls=(_ROLL,))
def rolled_to_make_room(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A replay buffer, at each insertion: a conditional around the roll is cond-around-a-write's."""
    if not makes_room(node, source):
        return
    yield source.finding(
        node,
        "the whole buffer is moved at every insertion, mostly by 0, to make room at its end",
        pair=_ROOM,
        write="a ring: places = (start + jnp.arange(len(new))) % len(buffer), and buffer.at[places].set(new); "
        "what is read counts its places like that too",
    )


@rule.barrier
def moved_before_the_write(barrier: Barrier, module: hlo.Module) -> str | None:
    """An array that one kernel rolls, where another one then sets just the part that came round."""
    dims, here = value_of(barrier, module).shape.dims, module.computations[barrier.computation]
    made = writer_of(barrier, module)
    joined = [
        one
        for one in module.work_of(made)
        if one.opcode in _JOINED and one.shape.dims == dims and is_of_call(one, _ROLLS)
    ]
    parts = {part[1:]: part[0] for one in joined for part in parts_joined(one, module.body(made) or here)}
    if len(parts) != 2 or any(use.opcode != "dynamic-update-slice" for use in first_uses(barrier, module)):
        return None
    lengths = {(axis, place): _length(name, axis, made, here, module) for (axis, place), name in parts.items()}
    for reader in readers_of(barrier, module):
        body = (module.body(reader) or here).instructions
        writes = [step for step in module.work_of(reader) if is_write(step) and step.shape.dims == dims]
        if not writes or not all(_is_of_a_part(step, lengths, body) for step in writes):
            return None
    return "one jnp.concatenate of the new part and of what stays, in place of a roll and a write over its end"


def _length(name: str, axis: int, kernel: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> int:
    return (module.body(kernel) or here).instructions[name].shape.dims[axis]


def _is_of_a_part(
    write: hlo.Instruction, lengths: Mapping[tuple[int, int], int], body: Mapping[str, hlo.Instruction]
) -> bool:
    """Whether a piece is as long as one of the parts, and comes to stand where that one does."""
    if write.opcode != "dynamic-update-slice":
        return False
    piece = body[write.operands[1]].shape.dims
    cut = [axis for axis, (part, whole) in enumerate(zip(piece, write.shape.dims, strict=True)) if part != whole]
    if len(cut) != 1:
        return False
    begin = body[write.operands[2 + cut[0]]].literal
    return begin.isdigit() and lengths.get((cut[0], int(begin))) == piece[cut[0]]


def _written_over(roll: cst.Call, source: Source) -> Write | None:
    """The only thing that is done with a roll, or with it in another dtype: a write."""
    name = source.assigned_name(roll)
    if name is not None:
        reads = source.reads(name)
        if len(reads) != 1 or source.function(reads[0]) is not source.function(roll):
            return None
        if source.loop(reads[0]) is not source.loop(roll):
            return None
    moved: cst.BaseExpression = roll if name is None else reads[0]
    match source.parent(moved):
        case cst.Attribute(value=value, attr=cst.Name("astype")) as method if value is moved:
            if isinstance(cast := source.parent(method), cst.Call):
                moved = cast
    match source.parent(moved):
        case cst.Attribute(value=value, attr=cst.Name("at")) as at if value is moved:
            function = source.parent(place) if (place := source.parent(at)) else None
            return at_write(source.parent(function)) if function is not None else None
    return None


def _is_along_the_first(write: Write) -> bool:
    """`.at[0]`, and `.at[0, :]`, which is the same."""
    first, *others = write.index
    return not isinstance(first, cst.Ellipsis) and not is_whole(first) and all(map(is_whole, others))


def _is_end_that_came_round(roll: cst.Call, write: Write) -> bool:
    """Whether the write goes to the start of the rolled axis, and the roll forwards; or to the end, and backwards."""
    shift, axis = argument(roll, 1, "shift"), argument(roll, 2, "axis")
    place = edge(write)
    if shift is None or place is None or isinstance(shift, cst.Tuple | cst.List):
        return False
    # Without an axis all elements move in a row: rows of the first axis, where the shift is as long as one.
    rolled = 0 if axis is None or axis == "None" else constant(axis)
    at, at_start = place
    is_last = rolled == -1 and 0 < at == len(write.index) - 1  # of `x.at[0]` nobody sees that it is the last axis
    if axis is not None and _is_less_than_came_round(shift, write):
        return False
    return (rolled == at or is_last) and at_start is not isinstance(shift, cst.UnaryOperation)


def _is_less_than_came_round(shift: cst.BaseExpression, write: Write) -> bool:
    """`jnp.roll(x, 2, axis=0).at[0].set(v)`."""
    by = constant(shift)
    return by is not None and abs(by) > 1 and not any(map(is_cut, write.index))


def _advice(roll: cst.Call, write: Write, source: Source) -> str:
    called = _joined(roll, write, source, longest=_LONG)
    if called is None:
        what = "zeros or other padding" if is_literal(write.value) else "the new part"
        kept = "all but the first" if _is_backwards(roll) else "all but the last"
        jnp = source.jnp
        return f"{jnp}.concatenate of {what} and {kept}, along that axis; {jnp}.pad where it is a number"
    return f"{called}: one kernel{_unless(roll, write, source)}"


def _unless(roll: cst.Call, write: Write, source: Source) -> str:
    """Of which arrays a join of rows is the same: without an axis all elements move in a row."""
    if argument(roll, 2, "axis") is not None:
        return ""
    by = _by(roll, source)
    is_one = _moved(write, source) == by
    return f", where {'the array has one axis' if is_one else f'a row has {by} elements'}{_MOVES_ALL}"


def _joined(roll: cst.Call, write: Write, source: Source, *, longest: int = 0, of: str = "") -> Called | None:
    """`jnp.concatenate([jnp.full_like(x[:1], v), x[:-1]])`: as a write does, `full_like` brings what it is given to the
    dtype of the array and to the shape of the place. `of` is what the array is called there."""
    jnp, array, by = source.jnp, argument(roll, 0, "a"), _by(roll, source)
    place, value = edge(write), write.value
    if array is None or value is None or by is None or place is None or not _is_one_edge(write):
        return None
    axis, k = argument(roll, 2, "axis"), _moved(write, source) or "1"
    x = of or as_operand(array, brief(source.code(array), longest, "x"))
    along = place[0] % len(write.index)  # `...` takes a place of its own
    before = [source.code(part) for part in write.index[:along]]
    new = as_argument(value, source) if of else brief(as_argument(value, source), longest, "new")
    new = f"{jnp}.array({new})" if _is_a_list(value, source) else new

    def part(index: str) -> str:
        return f"{x}[{', '.join([*before, index])}]"

    if along == 0 or _is_of_all(write, source):
        filled = f"{jnp}.full_like({part(f':{k}')}, {new})"
    else:
        filled = f"{jnp}.full_like({part('0')}, {new})[{', '.join([*before, 'None'])}]"
    pieces = [part(f"{k}:"), filled] if _is_backwards(roll) else [filled, part(f":-{k}")]
    said = [f"axis={source.code(axis)}"] if along and axis is not None else []
    return Called(f"{jnp}.concatenate", [in_a_list(*pieces), *said])


def _is_a_list(value: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a list or a tuple of Python's, which a write takes, and `full_like` does not."""
    meant = source.meant(value)
    return isinstance(meant, cst.List | cst.Tuple | cst.ListComp) or (
        isinstance(value, cst.Name) and is_said_to_be_a_list(value, source)
    )


def _is_one_edge(write: Write) -> bool:
    """Whether all there is on every other axis is written."""
    return sum(not is_whole(part) for part in write.index) == 1


def _is_of_all(write: Write, source: Source) -> bool:
    """Whether a slice is written, or one number, for which the axis need not be there."""
    is_slice = any(map(is_cut, write.index))
    return is_slice or is_literal(write.value) or is_a_number(write.value, source) or _is_constant(write.value, source)


def _is_constant(value: cst.BaseExpression | None, source: Source) -> bool:
    value = value.expression if isinstance(value, cst.UnaryOperation) else value
    return is_known_number(value, source)


def _is_backwards(roll: cst.Call) -> bool:
    return isinstance(argument(roll, 1, "shift"), cst.UnaryOperation)


def _by(roll: cst.Call, source: Source) -> str | None:
    """By how much an array is moved, without the sign, as it can stand behind another."""
    shift = argument(roll, 1, "shift")
    shift = shift.expression if isinstance(shift, cst.UnaryOperation) else shift
    return as_operand(shift, source.code(shift)) if shift is not None else None


def _moved(write: Write, source: Source) -> str | None:
    """How much is written at the end: 1, of `.at[0]`, or k, of `.at[:k]` and `.at[-k:]`."""
    place = next(part for part in write.index if not is_whole(part))
    if not isinstance(place, cst.Slice):
        return "1"
    end = place.upper or place.lower
    end = end.expression if isinstance(end, cst.UnaryOperation) else end
    return as_operand(end, source.code(end)) if end is not None else None


def _fix(roll: cst.Call, write: Write, source: Source) -> tuple[Edit, ...]:
    """The join in place of the write, and nothing, or the array alone, in place of the roll."""
    array = argument(roll, 0, "a")
    if array is None or source.alias_at(roll, "jax.numpy") is None or len(write.call.args) != 1:
        return ()
    if not has_only(roll, 3, "a", "shift", "axis") or not _is_read_as_it_is(roll, write, source):
        return ()
    if _moved(write, source) != _by(roll, source) or (argument(roll, 2, "axis") is None and has_rows(array, source)):
        return ()
    if source.has_comment(roll) or source.has_comment(write.call):
        return ()
    found = passed_over(roll, array, write.call, source)
    joined = _joined(roll, write, source, of=found[0]) if found is not None else None
    if found is None or joined is None:
        return ()
    return (in_place_of(write.call, joined, source), *found[1])


def _is_read_as_it_is(roll: cst.Call, write: Write, source: Source) -> bool:
    """Whether nothing is done with a roll before the write, `.astype(float)`."""
    return source.meant(write.array) is roll


def _is_exact(roll: cst.Call, write: Write, source: Source) -> bool:
    """Whether the join is the same to the last bit for whatever array there is: of a number that all dtypes have, along
    an axis that both the roll and the write say. Of rows, what is weakly typed would not stay so."""
    axis, place = argument(roll, 2, "axis"), edge(write)
    is_said = axis is not None and place is not None and constant(axis) == place[0]
    return is_said and isinstance(write.value, cst.BaseExpression) and source.code(write.value) in _EXACT
