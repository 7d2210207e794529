"""A roll whose ends that come round are written over: `jnp.roll(x, 1).at[0].set(v)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.branches.moved import makes_room
from fusionlint.patterns.code.at import Write, at_write, constant, elements, is_literal
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.compiled.links import is_write
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import first_uses, readers_of, value_of, writer_of
from fusionlint.patterns.compiled.round import parts_joined
from fusionlint.patterns.writes.fused import is_worked_on_alone
from fusionlint.patterns.writes.places import edge
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
_IN_A_ROW = ", where the array has one axis: without `axis=` a roll moves all elements in a row"
_MAKERS = tuple(f"jax.numpy.{name}" for name in ("array", "asarray", "stack", "concatenate"))
_WITH_AXES = ("jax.numpy.expand_dims", "jax.numpy.concatenate")


@rule.source("Call", calls=(_ROLL,))
def rolled_and_written_over(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The roll is read by one write alone, to the end where it put what fell off the other."""
    if not source.calls(node, _ROLL) or not source.is_traced(node):
        return
    write = _written_over(node, source)
    if write is None or write.method != "set" or write.value is None or not _is_end_that_came_round(node, write):
        return
    yield source.finding(
        node,
        "the array is moved by one kernel, and the end that came round is written over by another",
        until=write.call,
        write=_joined(node, write, source),
        pair=_READ if len(write.index) == 1 and is_worked_on_alone(write.call, source) else 0,
    )


@rule.source("Call", calls=(_ROLL,))
def rolled_to_make_room(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A replay buffer, at each insertion: a conditional around the roll is cond-around-a-write's."""
    if not source.calls(node, _ROLL) or not source.is_traced(node) or not makes_room(node, source):
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
    return (rolled == at or is_last) and at_start is not isinstance(shift, cst.UnaryOperation)


def _has_the_axis(value: cst.BaseExpression | None, source: Source) -> bool:
    """Whether what is written is seen to have as many axes as its place: `v[None]`, `v[-k:]`, a list or an array."""
    meant = source.meant(value)
    match meant:
        case cst.List() | None:
            return True
        case cst.Subscript(slice=slices):
            parts = elements(slices)
            return any(isinstance(part, cst.Slice) or source.code(part) == "None" for part in parts[:1])
        case cst.Call(args=[cst.Arg(value=cst.List()), *_]):
            return source.calls(meant, *_MAKERS)
    return source.calls(meant, *_WITH_AXES)


def _joined(roll: cst.Call, write: Write, source: Source) -> str:
    jnp = source.alias("jax.numpy") or "jnp"
    array, shift = argument(roll, 0, "a"), argument(roll, 1, "shift")
    x = brief(source.code(array), _LONG, "x") if array is not None else "x"
    is_backwards = isinstance(shift, cst.UnaryOperation)
    if len(write.index) > 1:
        what = "zeros or other padding" if is_literal(write.value) else "the new part"
        kept = "all but the first" if is_backwards else "all but the last"
        return f"{jnp}.concatenate of {what} and {kept}, along that axis; {jnp}.pad where it is a number"
    value = brief(source.code(write.value), _LONG, "new") if write.value is not None else "new"
    k, new = "1", f"{jnp}.expand_dims({value}, 0)"  # a number of Python too, which has no `[None]`
    if isinstance(write.index[0], cst.Slice) and shift is not None:  # as many as have come round
        k, new = source.code(shift).lstrip("- "), value
    if is_literal(write.value):
        new = f"{jnp}.full_like({x}[:{k}], {value})"  # whatever axes stand behind the first
    elif isinstance(write.index[0], cst.Slice) and not _has_the_axis(write.value, source):
        new = f"{jnp}.broadcast_to({value}, {x}[:{k}].shape)"  # a write brings any row to the shape of its place
    parts = f"[{x}[{k}:], {new}]" if is_backwards else f"[{new}, {x}[:-{k}]]"
    unless = _IN_A_ROW if argument(roll, 2, "axis") is None else ""
    return f"{jnp}.concatenate({parts}): one kernel{unless}"
