"""The compiled side: which kernels join arrays, and what a loop hands from one iteration to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.of_jax import is_of_jax

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# What hands a value on as it is.
MOVES = frozenset(("copy", "bitcast", "get-tuple-element", "copy-start", "copy-done", "tuple", "reshape"))
# What the user calls to join arrays; jnp.pad and jnp.roll do, too.
_JOINS = frozenset(("concatenate", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "append"))
# What takes more of an array than one element for one of its own, or writes into one.
_WHOLE = frozenset(
    ("reduce", "reduce-window", "dot", "convolution", "scatter", "sort", "dynamic-update-slice", "custom-call")
)

# Of matrices, as a GPU runs them; a TPU (convolution) stacks the parts in the same kernel.
_PRODUCTS = frozenset(("dot", "custom-call"))
_CUTS = frozenset(("slice", "dynamic-slice", "gather", "slice-start"))


def joiners(barrier: Barrier, module: hlo.Module) -> list[str]:
    """The kernels that join the value with others, or joined it: readers, or else its writer."""
    here = module.computations[barrier.computation].instructions
    readers = [name for name in barrier.readers if name in here and joins(here[name], module)]
    return readers or [barrier.writer]


def joins(item: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel concatenates for the user; a TPU pads the pieces and takes their maximum."""
    from fusionlint.hlo.causes import BY_PLACES

    if item.opcode == "fusion":
        return any(joins(inner, module) for inner in module.work_of(item))
    primitive = item.op_name.rpartition("/")[2]
    is_pad = item.opcode == "pad" and primitive in ("concatenate", "stack")
    is_join = is_pad or (item.opcode == "concatenate" and not primitive.startswith(BY_PLACES))
    return is_join and not is_of_jax(item, _JOINS)


def joins_blocks(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel concatenates different computed parts, not all of them a single row: that would be a stack."""
    item = computation.instructions[name]
    body = (module.body(item) or computation).instructions
    return any(_are_blocks(step, body) for step in module.work_of(item) if joins(step, module))


def _are_blocks(joined: hlo.Instruction, body: Mapping[str, hlo.Instruction]) -> bool:
    parts = [body[name] for name in joined.operands]
    if joined.opcode == "pad":
        wide = zip(parts[0].shape.dims, joined.shape.dims, strict=True)
        return joined.op_name.rpartition("/")[2] != "stack" and any(1 < part < whole for part, whole in wide)
    (axis,) = axes_joined(joined)
    computed = {part.name for part in parts if not _is_constant(part, body)}
    return len(computed) > 1 and any(part.shape.dims[axis] > 1 for part in parts)


def _is_constant(part: hlo.Instruction, body: Mapping[str, hlo.Instruction]) -> bool:
    """Whether it is one, made as large as it has to be."""
    while part.opcode in ("broadcast", "bitcast", "convert", "reshape"):
        part = body[part.operands[0]]
    return part.opcode in ("constant", "iota")


def is_elementwise(item: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel is a fusion that computes elements of arrays one by one."""
    return item.opcode == "fusion" and not any(step.opcode in _WHOLE for step in module.work_of(item))


def joins_at_every_level(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether one call joins arrays of several sizes: `lax.associative_scan` does, and jax leaves no name of it."""
    here = (step for step in module.every("concatenate") if step.stack == barrier.stack)
    return bool(barrier.stack) and len({step.shape.dims for step in here}) > 2


def shifts(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel moves along what it keeps, `concatenate([window[1:], new])`: there is nothing to keep apart."""
    item = computation.instructions[name]
    body = module.body(item)
    for step in module.work_of(item):
        for operand, axis, place in parts_joined(step, body or computation) if joins(step, module) else ():
            part = _made(operand, item, body, computation)
            if part.opcode == "slice" and place != int(re.findall(r"\[(\d+):", part.attributes["slice"])[axis]):
                return True
    return False


def parts_joined(joined: hlo.Instruction, body: hlo.Computation) -> Iterator[tuple[str, int, int]]:
    """What is joined, along which axis, and where it comes to stand."""
    if joined.opcode == "pad":
        (name, _), around = joined.operands, re.findall(r"(?:^|x)(-?\d+)_", joined.attributes["padding"])
        dims = zip(body.instructions[name].shape.dims, joined.shape.dims, around, strict=True)
        yield from ((name, axis, int(low)) for axis, (part, whole, low) in enumerate(dims) if part < whole)
        return
    (axis,) = axes_joined(joined)
    place = 0
    for name in joined.operands:
        yield name, axis, place
        place += body.instructions[name].shape.dims[axis]


def _made(
    name: str, kernel: hlo.Instruction, body: hlo.Computation | None, computation: hlo.Computation
) -> hlo.Instruction:
    """The instruction of a value inside of a kernel, or of what the kernel is given."""
    item = _original((body or computation).instructions[name], body or computation)
    if body is None or item.opcode != "parameter":
        return item
    return _original(computation.instructions[kernel.operands[int(item.literal)]], computation)


def is_random(item: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether what a kernel joins are random bits, or keys: jax.random does that, and not the user."""
    from fusionlint.hlo.causes import RANDOM

    return any(RANDOM.search(step.op_name) for step in module.work_of(item) if joins(step, module))


def fills(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel writes what it makes into a part of an array: a loop's outputs, and not its state."""
    return any(step.opcode == "dynamic-update-slice" for step in module.work_of(computation.instructions[name]))


def axes_joined(joined: hlo.Instruction) -> tuple[int, ...]:
    """The axes along which a concatenate joins."""
    return tuple(int(number) for number in re.findall(r"\d+", joined.attributes["dimensions"]))


def goes_round(name: str, barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the result of an instruction beside the value is what a loop's body hands to its next iteration."""
    from fusionlint.hlo.parse import names  # to check a file nobody needs it

    bodies = {body for loop in module.every("while") for body in names(loop.attributes["body"])}
    computation = module.computations[barrier.computation]
    return barrier.computation in bodies and computation.root in _handed_on(computation, name)


def is_multiplied(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a step multiplies matrices with what the one before handed on of that result, or gives it to a library:
    either takes the array as it is."""
    taken = _taken(name, computation)
    users = {user for same in taken for user in computation.instructions[same].users} - taken
    steps = (step for user in users for step in module.work_of(computation.instructions[user]))
    return any(step.opcode in _PRODUCTS for step in steps)


def is_taken_apart(name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a step cuts what the one before handed on of that result. A solver, which adds whole states, does not:
    with the parts apart it has as many sums as there are parts."""
    taken = _taken(name, computation)
    for user in {user for same in taken for user in computation.instructions[same].users} - taken:
        item = computation.instructions[user]
        body = module.body(item)
        given = [number for number, operand in enumerate(item.operands) if operand in taken]
        if body is None and item.opcode in _CUTS:
            return True
        if body and any(_is_cut(body.parameters[number].name, body) for number in given):
            return True
    return False


def _is_cut(name: str, body: hlo.Computation) -> bool:
    users = (user for same in _handed_on(body, name) for user in body.instructions[same].users)
    return any(body.instructions[user].opcode in _CUTS for user in users)


def _taken(name: str, computation: hlo.Computation) -> set[str]:
    """What a step finds of a result that the one before handed on."""
    root, again = computation.instructions[computation.root], _handed_on(computation, name)
    places = {str(index) for index, operand in enumerate(root.operands) if operand in again}
    carried = (item for item in computation.instructions.values() if item.attributes.get("index") in places)
    return {same for item in carried for same in _handed_on(computation, item.name)}


def _handed_on(computation: hlo.Computation, name: str) -> set[str]:
    """A value and all that is only another name for it."""
    found, todo = {name}, [name]
    while todo:
        for user in computation.instructions[todo.pop()].users:
            if computation.instructions[user].opcode in MOVES and user not in found:
                found.add(user)
                todo.append(user)
    return found


def copied(barrier: Barrier, module: hlo.Module) -> hlo.Instruction:
    """What a copy in a loop's body copies: made in this iteration, or handed on by the one before."""
    computation = module.computations[barrier.computation]
    item = computation.instructions[barrier.writer]
    while item.opcode in MOVES and item.operands:
        source = computation.instructions[item.operands[0]]
        if item.opcode == "get-tuple-element" and source.opcode == "parameter":
            handed_on = computation.instructions[computation.root].operands
            index = int(item.attributes["index"])
            source = computation.instructions[handed_on[index]] if index < len(handed_on) else source
            return _original(source, computation)
        item = source
    return item


def _original(item: hlo.Instruction, computation: hlo.Computation) -> hlo.Instruction:
    while item.opcode in MOVES and len(item.operands) == 1:
        item = computation.instructions[item.operands[0]]
    return item
