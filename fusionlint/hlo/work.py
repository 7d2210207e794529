"""What a kernel does to one value: the work that made it, the work that uses it, and the bytes really touched.

A fusion is looked into: only the part of its body that leads to the value, or from it, counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.cost import IN_PLACE, PARTIAL_READS, read_whole, result_shape
from fusionlint.hlo.flow import SAME_VALUE, Node, Path, element

NO_WORK = SAME_VALUE | {"parameter", "constant", "tuple", "get-tuple-element"}


# Their operands from here on only say where.
FIRST_INDEX = {"dynamic-slice": 1, "dynamic-update-slice": 2}


def made(module: hlo.Module, node: Node, path: Path) -> tuple[hlo.Instruction, ...]:
    """The work that led to element `path` of the result of the kernel `node`, the last step first; never empty."""
    instruction = module.computations[node[0]].instructions[node[1]]
    body = module.body(instruction)
    if body is None:
        return (instruction,)
    start = body.instructions[body.root]
    if path and start.opcode == "tuple":
        start = body.instructions[start.operands[path[0]]]
    return tuple(_work(module, body, start, lambda step: step.operands)) or (instruction,)


def used(module: hlo.Module, node: Node, number: int) -> tuple[hlo.Instruction, ...]:
    """The work that the kernel `node` does with its operand `number`, the first step first. Where a value only says
    which slice to take, nothing is done with it."""
    instruction = module.computations[node[0]].instructions[node[1]]
    body = module.body(instruction)
    if body is None:
        return () if _is_index(instruction, instruction.operands[number]) else (instruction,)
    steps = body.instructions

    def onward(step: hlo.Instruction) -> Iterator[str]:
        return (name for name in step.users if not _is_index(steps[name], step.name))

    return tuple(_work(module, body, body.parameters[number], onward))


def bytes_touched(module: hlo.Module, node: Node, number: int) -> int:
    """Bytes of operand `number` that one launch of the kernel `node` reads: less than all of it where it only takes a
    slice, and the bytes it writes where it updates the operand in place."""
    computation = module.computations[node[0]]
    instruction = computation.instructions[node[1]]
    body = module.body(instruction)
    if body is None:
        return _touched_by(computation, instruction, instruction.operands[number])
    parameter, whole = body.parameters[number], read_whole(body)
    touched = [
        parameter.shape.nbytes if user.name in whole else _touched_by(body, user, name)
        for user, name in _direct_users(body, parameter)
    ]
    return min(sum(touched), parameter.shape.nbytes) if touched else parameter.shape.nbytes


def update_in_place(
    module: hlo.Module, node: Node, path: Path
) -> tuple[hlo.Instruction, Mapping[str, hlo.Instruction]] | None:
    """The step, among those of its kernel or of its computation, that overwrites a part of something to make element
    `path` of the result of the kernel `node`; None where it makes the whole element anew."""
    instruction = module.computations[node[0]].instructions[node[1]]
    body = module.body(instruction)
    steps = body.instructions if body else module.computations[node[0]].instructions
    update = steps[body.root] if body else instruction
    if body and path and update.opcode == "tuple":
        update = steps[update.operands[path[0]]]
    while body and update.opcode in SAME_VALUE:
        update = steps[update.operands[0]]
    return (update, steps) if update.opcode in IN_PLACE else None


def updated_in_place(module: hlo.Module, node: Node, path: Path) -> tuple[int, int] | None:
    """Which of its operands the kernel `node` overwrites a part of, and how many bytes of it, to make element `path` of
    its result; None where it makes the whole element anew."""
    found = update_in_place(module, node, path)
    if found is None:
        return None
    update, steps = found
    body = module.body(module.computations[node[0]].instructions[node[1]])
    of_tuple = body is not None and steps[body.root].opcode == "tuple"
    rest = path[1:] if of_tuple else path
    number = rest[0] if rest else 0  # a scatter may have several buffers
    name, size = update.operands[number], _update_bytes(steps, update)
    if body is None:
        return number, size
    while steps[name].opcode in SAME_VALUE:
        name = steps[name].operands[0]
    return (int(steps[name].literal), size) if steps[name].opcode == "parameter" else None


def updates_in_place(module: hlo.Module, node: Node, number: int) -> bool:
    """Whether the kernel `node` only overwrites a part of its operand `number`, and reads none of it."""
    computation = module.computations[node[0]]
    instruction = computation.instructions[node[1]]
    body = module.body(instruction)
    if body is None:
        return _is_updated(instruction, instruction.operands[number])
    users, whole = _direct_users(body, body.parameters[number]), read_whole(body)
    return all(_is_updated(user, name) and user.name not in whole for user, name in users)


def _work(
    module: hlo.Module,
    body: hlo.Computation,
    start: hlo.Instruction,
    onward: Callable[[hlo.Instruction], Iterable[str]],
) -> Iterator[hlo.Instruction]:
    seen = {start.name}
    todo = deque([start])
    while todo:
        step = todo.popleft()
        if inner := module.body(step):  # Triton nests them
            yield from _work(module, inner, inner.instructions[inner.root], lambda i: i.operands)
        elif step.opcode not in NO_WORK:
            yield step
        new = [name for name in dict.fromkeys(onward(step)) if name not in seen]
        seen.update(new)
        todo.extend(body.instructions[name] for name in new)


def _direct_users(body: hlo.Computation, value: hlo.Instruction) -> Iterator[tuple[hlo.Instruction, str]]:
    """Who works on `value`, and by which name: bitcasts are other names of it."""
    for name in value.users:
        user = body.instructions[name]
        if user.opcode in SAME_VALUE:
            yield from _direct_users(body, user)
        else:
            yield user, value.name


def _touched_by(computation: hlo.Computation, user: hlo.Instruction, name: str) -> int:
    if user.opcode in PARTIAL_READS and name not in user.operands[1:]:
        return result_shape(user).nbytes
    if _is_updated(user, name):
        return _update_bytes(computation.instructions, user)
    return computation.instructions[name].shape.nbytes


def _update_bytes(steps: Mapping[str, hlo.Instruction], update: hlo.Instruction) -> int:
    return steps[update.operands[1 if update.opcode == "dynamic-update-slice" else -1]].shape.nbytes


def _is_updated(user: hlo.Instruction, name: str) -> bool:
    if user.opcode not in IN_PLACE:
        return False
    # A scatter may have several buffers, and as many updates at its end.
    buffers = len(user.operands) // 2 if user.opcode == "scatter" else 1
    return name in user.operands[:buffers] and name not in user.operands[buffers:]


def _is_index(user: hlo.Instruction, name: str) -> bool:
    first = FIRST_INDEX.get(user.opcode)
    return first is not None and name in user.operands[first:] and name not in user.operands[:first]


def value_shape(module: hlo.Module, node: Node, path: Path) -> hlo.Shape:
    """The shape of element `path` of the result of `node`."""
    return element(module.computations[node[0]].instructions[node[1]].shape, path)
