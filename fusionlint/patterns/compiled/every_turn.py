"""The compiled side: work that a loop does anew in every turn although it is always the same, as far as the user wrote
it so and can move it before the loop.

In: a Barrier, whose `again` has all the kernels of a loop that do so. What is left out is what XLA made or nobody
wrote: moves of data, which a layout or what writes in place asks for, tangents and recomputed work of a gradient, loops
of jax's own, and parts of a function of jax's own of which another part changes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from math import prod
from typing import TYPE_CHECKING

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.of_jax import is_loop_of_jax, is_path_of_jax, path_into_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import uses_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier
    from fusionlint.hlo.flow import Node
    from fusionlint.hlo.kernels import Kernel

    # Of a function of jax's own: how far its name goes in the op_names of its steps, and their stack.
    Call = tuple[str, tuple[hlo.Frame, ...]]

# They move elements. What is left of a kernel without them is work.
_MOVES = frozenset(("copy", "transpose", "reshape", "broadcast", "iota", "slice", "dynamic-slice", "reverse"))
# Bytes: measured on an H100, of 12 numbers a sum fuses with what reads it, of 64 it is a kernel in each turn.
_SMALL = 256
# Bytes of what a part of a kernel reads: an H100 reads that much in a third of the time that a launch takes.
_LARGE = 1_000_000
# What reads fewer elements for each that it makes may be as cheap to make anew as to read: of a product of 512 x 16 and
# 16 x 512 that was fused a TPU v5e moved 1.3 MB, of the same before the loop 54 MB.
_MANY = {"dot": 256, "reduce": 4}
# Work that a copy in its place does not make up for: see `_is_overwritten`.
_HEAVY = frozenset(("dot", "convolution", "reduce", "reduce-window", "sort", "scatter", "gather", "custom-call", "fft"))
# Before which operand of a custom call the result is written over it.
_OVER = regex(r"\{[\d, ]*\}: \((\d+), ")
# Work that is not that of its line: of a gradient what jax transposed or does again, the columns of a Jacobian.
_OF_JAX = regex(r"transpose\(jvp\(|vmap\(jvp\(|vmap\(transpose\(|rematted_computation")
_FACTORS = regex(r"/(cholesky|lu|geqrf|qr|eigh|svd|schur)$")


@functools.lru_cache(maxsize=1)
def _known(_: OfModule) -> dict[Node, tuple[Kernel, ...]]:
    """By loop, the kernels of the user's that are the same in every turn of it; filled as they are asked for."""
    return {}


@functools.lru_cache(maxsize=1)
def _calls_that_change(_: OfModule) -> dict[Node, set[Call | None]]:
    """By loop, the calls of functions of jax's own of which something changes from turn to turn; filled likewise."""
    return {}


def same_in_every_turn(barrier: Barrier, module: hlo.Module) -> tuple[hlo.Instruction, tuple[Kernel, ...]] | None:
    """The loop in whose every turn the writer of the value does the same, and all of its kernels that do; None where
    the user has not written it so."""
    loop = _loop(barrier, module)
    if loop is None or barrier.again is None:
        return None
    known = _known(OfModule(module))
    if barrier.again.loop not in known:
        theirs = (kernel for kernel in barrier.again.kernels if _is_theirs(kernel, barrier, loop, module))
        known[barrier.again.loop] = tuple(theirs)
    kernels = known[barrier.again.loop]
    return (loop, kernels) if _writer(barrier) in kernels else None


def same_within(barrier: Barrier, module: hlo.Module) -> tuple[hlo.Instruction, hlo.Instruction] | None:
    """The loop in whose every turn a product or a sum of much is the same that the writer makes on its way to a value
    that is not, and that step."""
    loop = _loop(barrier, module)
    here = module.computations[barrier.computation]
    body = module.body(here.instructions[barrier.writer])
    if loop is None or body is None:
        return None
    changing = {step.name for step in _changing(here, here.instructions[barrier.writer], barrier, module)}
    for step in body.instructions.values():
        if step.name not in changing and _is_much(step, body) and _is_in(loop, step):
            return (loop, step) if _is_own(loop, step, module) else None
    return None


def _is_much(step: hlo.Instruction, body: hlo.Computation) -> bool:
    """Whether a product or a sum takes so much more to make than to read that it is better read."""
    read = [body.instructions[name].shape for name in step.operands]
    if step.opcode not in _MANY or sum(shape.nbytes for shape in read) < _LARGE:
        return False
    if step.opcode == "dot":
        summed = [int(axis) for axis in step.attributes.get("lhs_contracting_dims", "").strip("{}").split(",") if axis]
        each = prod(read[0].dims[axis] for axis in summed)
    else:
        made = step.shape.parts[0] if step.shape.parts else step.shape
        each = prod(read[0].dims) // max(1, prod(made.dims))
    return each >= _MANY[step.opcode]


def is_own_scan(node: Node, module: hlo.Module) -> bool:
    """Whether a loop is one that the user wrote, and not what jax made of one for a gradient."""
    loop = _at(node, module)
    made = "jvp(" in loop.op_name or _OF_JAX.search(loop.op_name)
    return bool(loop.stack) and not made and not is_path_of_jax(loop.op_name, loop.stack)


def _loop(barrier: Barrier, module: hlo.Module) -> hlo.Instruction | None:
    """The loop in which the writer does what is the same in every turn, if it is one of the user's."""
    if barrier.again is None or barrier.of_gradient:
        return None
    loop = _at(barrier.again.loop, module)
    return loop if loop.stack and not is_path_of_jax(loop.op_name, loop.stack) else None


def place_apart(barrier: Barrier, loop: hlo.Instruction, module: hlo.Module) -> hlo.Frame | None:
    """Where the writer's work is written, where the barrier is shown elsewhere: for one, at the call that reads it."""
    kernel = _writer(barrier)
    frames = [step.stack[0] for step in _written_in(loop, kernel, module)] if kernel else []
    return None if not frames or barrier.stack[0] in frames else frames[0]


def is_factorization(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the writer factors a matrix."""
    return bool(_FACTORS.search(module.computations[barrier.computation].instructions[barrier.writer].op_name))


def is_part(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the writer stands in a function of jax's own of which another part changes from turn to turn."""
    kernel = _writer(barrier)
    if barrier.again is None or kernel is None:
        return False
    return _is_part(kernel, barrier, _at(barrier.again.loop, module), module)


def _writer(barrier: Barrier) -> Kernel | None:
    """The writer, if all that it does is the same in every turn."""
    kernels = barrier.again.kernels if barrier.again else ()
    place = barrier.computation, barrier.writer
    return next((kernel for kernel in kernels if (kernel.computation, kernel.name) == place), None)


def _at(node: Node, module: hlo.Module) -> hlo.Instruction:
    return module.computations[node[0]].instructions[node[1]]


def _is_theirs(kernel: Kernel, barrier: Barrier, loop: hlo.Instruction, module: hlo.Module) -> bool:
    if _MOVES.issuperset(kernel.opcodes) or kernel.bytes_read + kernel.bytes_written < _SMALL:
        return False
    if _HEAVY.isdisjoint(kernel.opcodes) and _is_overwritten(kernel, module):
        return False
    steps = [*_written_in(loop, kernel, module)]
    if not steps or not all(_is_own(loop, step, module) for step in steps):
        return False
    # A factorization that a solve begins with can be had alone.
    factors = _FACTORS.search(_at((kernel.computation, kernel.name), module).op_name)
    return bool(factors) or not _is_part(kernel, barrier, loop, module)


def _written_in(loop: hlo.Instruction, kernel: Kernel, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The steps of a kernel that stand in the body of the loop, in the source too."""
    item = _at((kernel.computation, kernel.name), module)
    return (step for step in (item, *module.work_of(item)) if _is_in(loop, step))


def _is_in(loop: hlo.Instruction, step: hlo.Instruction) -> bool:
    from fusionlint.hlo.work import NO_WORK

    return step.opcode not in NO_WORK and bool(step.stack) and step.op_name.startswith(f"{loop.op_name}/body/")


def _is_own(loop: hlo.Instruction, step: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether the user wrote a step of a loop, and the loop."""
    return not _OF_JAX.search(step.op_name) and not is_loop_of_jax(loop.op_name, step, module)


def _is_part(kernel: Kernel, barrier: Barrier, loop: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel does a part of what a function of jax's own is called for, and the rest changes from turn to
    turn."""
    calls = {_call(step, loop) for step in _written_in(loop, kernel, module)}
    if barrier.again is None or calls <= {None}:
        return False
    known = _calls_that_change(OfModule(module))
    if barrier.again.loop not in known:
        parts = (module.computations[name] for name in {part for part, _ in barrier.again.kept})
        items = ((part, item) for part in parts for item in part.instructions.values())
        steps = (step for part, item in items for step in _changing(part, item, barrier, module))
        known[barrier.again.loop] = {_call(step, loop) for step in steps} - {None}
    return not calls.isdisjoint(known[barrier.again.loop])


def _call(step: hlo.Instruction, loop: hlo.Instruction) -> Call | None:
    """The call of a function of jax's own in the loop that a step is a part of."""
    path = path_into_jax(step, loop.op_name) if step.op_name.startswith(f"{loop.op_name}/") else ""
    return (path, step.stack) if path else None


def _changing(
    here: hlo.Computation, item: hlo.Instruction, barrier: Barrier, module: hlo.Module
) -> Iterator[hlo.Instruction]:
    """What of an instruction's work is not the same in every turn."""
    kept: Collection[Node] = barrier.again.kept if barrier.again else ()
    if (here.name, item.name) in kept:
        return
    body = module.body(item)
    if body is None:
        yield item
        return
    given = zip(item.operands, body.parameters, strict=True)
    changes = {one.name for operand, one in given if (here.name, operand) not in kept}
    for step in body.instructions.values():
        if not changes.isdisjoint(step.operands):
            changes.add(step.name)
            yield step


def _is_overwritten(kernel: Kernel, module: hlo.Module) -> bool:
    """Whether all that reads the result writes over it in place, or takes it for the start of a loop that does: made
    before the loop it would be copied in every turn, which is a kernel too."""
    here = module.computations[kernel.computation]
    return all(_writes_over(here, reader, number, module) for reader, number in uses_of(kernel.name, here.instructions))


def _writes_over(here: hlo.Computation, reader: hlo.Instruction, number: int, module: hlo.Module) -> bool:
    from fusionlint.hlo.flow import is_handed_on, leaves
    from fusionlint.hlo.work import updated_in_place

    if reader.opcode == "tuple":  # what the loop hands on, or what one inside begins with
        loops = [user for name in reader.users if (user := here.instructions[name]).opcode == "while"]
        return not any(is_handed_on(module, loop, (number,)) for loop in loops)
    if reader.opcode == "custom-call":
        return str(number) in _OVER.findall(reader.attributes.get("output_to_operand_aliasing", ""))
    updates = (updated_in_place(module, (here.name, reader.name), path) for path, _ in leaves(reader.shape))
    return any(update and update[0] == number for update in updates)
