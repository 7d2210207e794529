"""The compiled side: an array that a vectorized `while_loop` carries, of which a turn writes a part, and which `vmap`
then chooses whole between the old and the new.

In: a Barrier. XLA cannot write in place there, for the old is read once more: it copies the array, writes to the copy
and makes a third one of both, in every turn. What `vmap` puts at the end of such a body has the name of its loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.of_jax import is_loop_of_jax, is_path_of_jax
from fusionlint.patterns.compiled.readers import source_of, uses_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is written to and chosen whole: the loop, the bytes of the array, and of what a turn writes to it."""

    loop: hlo.Instruction
    whole: int
    written: int


def chosen_whole(barrier: Barrier, module: hlo.Module) -> Chosen | None:
    """Of the copy that is written to, of what is written, and of what is chosen: each crosses memory whole."""
    loop = next((one for _, one in module.callers(barrier.computation) if one.opcode == "while"), None)
    if loop is None or not loop.stack or is_path_of_jax(loop.op_name, loop.stack):
        return None
    here = module.computations[barrier.computation]
    writer = here.instructions[barrier.writer]
    before = [made for operand in writer.operands if (made := source_of(operand, here)).opcode != "parameter"]
    for update in (writer, *_kernels_reading(writer, here), *before):
        found = _written_and_chosen(update, here, loop, module)
        if found and not is_loop_of_jax(loop.op_name, update, module) and _takes_part(writer, update, loop, module):
            return found
    return None


def _written_and_chosen(
    update: hlo.Instruction, here: hlo.Computation, loop: hlo.Instruction, module: hlo.Module
) -> Chosen | None:
    from fusionlint.hlo.flow import element, leaves
    from fusionlint.hlo.work import updated_in_place

    for path, _ in leaves(update.shape):
        written = updated_in_place(module, (here.name, update.name), path)
        shape = element(update.shape, path)
        if written and any(_chooses(step, loop, shape) for step in _read_by(update, here, module)):
            return Chosen(loop, shape.nbytes, written[1])
    return None


def _takes_part(writer: hlo.Instruction, update: hlo.Instruction, loop: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel is the update, the copy that it writes to, or what chooses."""
    chooses = any(step.opcode == "select" and step.op_name == loop.op_name for step in module.work_of(writer))
    return writer is update or writer.opcode == "copy" or chooses


def _chooses(step: hlo.Instruction, loop: hlo.Instruction, shape: hlo.Shape) -> bool:
    return step.opcode == "select" and step.op_name == loop.op_name and step.shape.dims == shape.dims


def _read_by(value: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The work of the kernels that read a value."""
    return (step for reader in _kernels_reading(value, here) for step in module.work_of(reader))


def _kernels_reading(value: hlo.Instruction, here: hlo.Computation) -> Iterator[hlo.Instruction]:
    return (user for user, _ in uses_of(value.name, here.instructions) if user.opcode != "tuple")
