"""What one launch of an instruction moves: bytes read and bytes written.

Read: each distinct operand once, whole; only the slices, where a fusion (or the instruction itself) does nothing with
it but slice it; nothing, where it is a buffer that is updated in place. Written: the result; only the update, where
the result is a buffer updated in place. Constants count as other operands do. This is traffic asked for, not traffic
measured: caches are not modelled, and a gather's operand counts as the rows it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fusionlint.hlo import parse as hlo

# What reads a part of its first operand, and what writes to a part of it.
PARTIAL_READS = frozenset({"dynamic-slice", "slice", "slice-start", "gather"})
IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
# Which part of an asynchronous start's result is the value; the others are its operands and its context.
_RESULT_PART = {
    "copy-start": 0,
    "send": 0,
    "recv": 0,
    "slice-start": 1,
    "all-gather-start": 1,
    "collective-permute-start": 1,
}
_SAME_VALUE = frozenset(["bitcast", "opt-barrier"])


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one launch."""

    read: int
    written: int


def traffic(module: hlo.Module, computation: hlo.Computation, instruction: hlo.Instruction) -> Traffic:
    """What one launch of `instruction`, which stands in `computation`, reads and writes."""
    if instruction.opcode.endswith("-start") and "calls" in instruction.attributes:  # not what an all-reduce adds by
        wrapped = module.computations[instruction.called[0]]
        return traffic(module, wrapped, wrapped.instructions[wrapped.root])
    if body := module.body(instruction):
        reads: dict[str, int] = {}
        whole = read_whole(body)
        for name, item in zip(instruction.operands, body.parameters, strict=True):
            reads[name] = max(reads.get(name, 0), _read(body, item, whole))
        return Traffic(sum(reads.values()), _written(body, body.instructions[body.root], fused=True))
    names = dict.fromkeys(instruction.operands)
    read = sum(_touched(computation.instructions[name], name, instruction) for name in names)
    return Traffic(read, _written(computation, instruction, fused=False))


def _read(body: hlo.Computation, parameter: hlo.Instruction, whole: frozenset[str]) -> int:
    """Bytes that a fusion with this body reads of its operand `parameter`; the whole at most."""
    touched = sum(
        parameter.shape.nbytes if user.name in whole else _touched(parameter, name, user)
        for name, user in _users(body, parameter)
    )
    return min(parameter.shape.nbytes, touched)


def read_whole(body: hlo.Computation) -> frozenset[str]:
    """The updates in a fusion that are not of the buffer that it writes: where something else is made of one, a sum,
    all that stood in the buffer is read. Found for all of them at once, users first: they can be thousands in a row."""
    if not any(step.opcode in IN_PLACE for step in body.instructions.values()):
        return frozenset()
    found: set[str] = set()
    for step in reversed([*body.instructions.values()]):
        users = (body.instructions[name] for name in step.users)
        if any(user.name in found or not _hands_on(user, step.name) for user in users):
            found.add(step.name)
    return frozenset(name for name in found if body.instructions[name].opcode in IN_PLACE)


def _hands_on(user: hlo.Instruction, name: str) -> bool:
    is_update = user.opcode in IN_PLACE and name in _buffers(user)
    return is_update or user.opcode in _SAME_VALUE or user.opcode == "tuple"


def _users(body: hlo.Computation, value: hlo.Instruction) -> Iterator[tuple[str, hlo.Instruction]]:
    """Who works on `value`, and under which name: a bitcast is another name of it."""
    for name in value.users:
        user = body.instructions[name]
        if user.opcode in _SAME_VALUE and not user.is_root:
            yield from _users(body, user)
        else:
            yield value.name, user


def _touched(value: hlo.Instruction, name: str, user: hlo.Instruction) -> int:
    """Bytes of `value`, known to `user` as `name`, that `user` reads."""
    others = user.operands[1:]
    if user.opcode in PARTIAL_READS and name not in others:
        return result_shape(user).nbytes
    if user.opcode in IN_PLACE and name in _buffers(user) and name not in user.operands[len(_buffers(user)) :]:
        return 0
    return value.shape.nbytes


def _buffers(update: hlo.Instruction) -> tuple[str, ...]:
    """What an update overwrites in place: a scatter may have several buffers, and as many updates at its end."""
    return update.operands[: len(update.operands) // 2 if update.opcode == "scatter" else 1]


def _updates(update: hlo.Instruction) -> tuple[str, ...]:
    return update.operands[-len(_buffers(update)) :] if update.opcode == "scatter" else update.operands[1:2]


def _is_given(body: hlo.Computation, name: str) -> bool:
    """Whether the buffer was there before the kernel: a fusion may also fill one itself, to update it then."""
    while (item := body.instructions[name]).opcode in _SAME_VALUE:
        name = item.operands[0]
    return item.opcode == "parameter"


def _written(computation: hlo.Computation, result: hlo.Instruction, fused: bool) -> int:
    items = computation.instructions
    if fused and result.opcode == "tuple":
        return sum(_written(computation, items[name], fused) for name in result.operands)
    if fused and result.opcode in _SAME_VALUE:
        return _written(computation, items[result.operands[0]], fused)
    if result.opcode in IN_PLACE:
        buffers = _buffers(result)
        if not fused or all(_is_given(computation, name) for name in buffers):
            return sum(items[name].shape.nbytes for name in _updates(result))
    return result_shape(result).nbytes


def result_shape(item: hlo.Instruction) -> hlo.Shape:
    """The shape of the value that an instruction makes: of an asynchronous start not its operands and context."""
    part = _RESULT_PART.get(item.opcode)
    return item.shape if part is None else item.shape.parts[part]
