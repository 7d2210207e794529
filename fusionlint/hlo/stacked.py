"""What a scan stacks in every turn although it is always the same: as many copies of it as there are turns.

In: a Flow and a Turn of each loop. A scan writes an output of its body into a slice of an array of all turns, which the
loop hands on. Whoever reads that array reads copies; mostly nobody in the program does, and it is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.causes import STACKS
from fusionlint.hlo.flow import SAME_VALUE, Flow, Node, Path, written_under
from fusionlint.hlo.kernels import Loop
from fusionlint.hlo.turns import Kept, Turn
from fusionlint.hlo.work import update_in_place, updated_in_place


@dataclass(frozen=True, slots=True)
class Stacked:
    """A value that a loop stacks and does not change."""

    loop: Node
    turns: int | None  # of the loop, each time that it runs
    shape: hlo.Shape  # of one slice, with an axis of one in front
    given: str  # the argument of the program that it is, as it is; "" where it is none
    number: str  # that all of it is, as printed; "" where it is no constant
    stack: tuple[hlo.Frame, ...]  # of the scan


def stacked_again(names: Flow, around: Sequence[Loop], each: Mapping[Node, Turn]) -> dict[tuple[Node, Path], Stacked]:
    """By kernel that writes the slices, and element of its result."""
    return {value: found for loop in around for value, found in _stacked_in(names, loop, each)}


def _stacked_in(names: Flow, of: Loop, each: Mapping[Node, Turn]) -> Iterator[tuple[tuple[Node, Path], Stacked]]:
    loop = of.computation, of.name
    turn, body = each[loop], each[loop].body
    root = body.instructions[body.root]
    for index, operand in enumerate(root.operands if root.opcode == "tuple" else ()):
        node, path = written_under(body, operand)
        if node[1] not in names.kernels or not _goes_on(names, node, path, index):
            continue
        update = update_in_place(names.module, node, path)
        if update and STACKS.search(update[0].op_name) and _is_always_the_same(update[0], node, turn):
            shape = update[1][update[0].operands[1]].shape
            given, number = _given(names, node, *update), _number(*update)
            yield (node, path), Stacked(loop, of.trip_count, shape, given, number, update[0].stack)


def _goes_on(names: Flow, node: Node, path: Path, index: int) -> bool:
    """Whether the kernel writes to what the loop carries in that place, and hands on there."""
    body = names.module.computations[node[0]]
    updated = updated_in_place(names.module, node, path)
    if updated is None:
        return False
    (_, name), place = written_under(body, body.instructions[node[1]].operands[updated[0]])
    return body.instructions[name].opcode == "parameter" and place == (index,)


def _is_always_the_same(update: hlo.Instruction, node: Node, turn: Turn) -> bool:
    """Whether a step writes the same to another slice in each turn."""
    kernel = turn.body.instructions[node[1]]
    if kernel.opcode == "fusion":
        inside = turn.within(turn.body, kernel)
        kept = [inside[name] for name in update.operands]
    else:
        kept = [turn.of(turn.body, name) for name in update.operands]
    _, value, *indices = kept
    return value != Kept.CHANGES and Kept.CHANGES in indices


def _given(names: Flow, node: Node, update: hlo.Instruction, steps: Mapping[str, hlo.Instruction]) -> str:
    """The name of the program's argument that is stacked."""
    name = update.operands[1]
    while steps[name].opcode in SAME_VALUE | {"copy"}:
        name = steps[name].operands[0]
    kernel = names.instruction(node)
    if steps[name].opcode == "parameter" and kernel.opcode == "fusion":
        name = kernel.operands[int(steps[name].literal)]
    elif kernel.opcode == "fusion":
        return ""
    entry = names.module.computations[names.module.entry]
    numbers = names.inputs((node[0], name))
    return entry.parameters[next(iter(numbers))].op_name if len(numbers) == 1 else ""


def _number(update: hlo.Instruction, steps: Mapping[str, hlo.Instruction]) -> str:
    step = steps[update.operands[1]]
    while step.opcode in SAME_VALUE | {"copy", "broadcast", "convert"} and step.operands:
        step = steps[step.operands[0]]
    return step.literal if step.opcode == "constant" and not step.shape.dims else ""
