"""The compiled side: what the kernels that read a barrier's value do with it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_call, is_of_jax

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_SORTS = frozenset(("sort", "argsort"))
_BOUNDS = regex(r"\[(\d+):(\d+)")

# Where it is written, innermost first: path, function and line, whatever the column.
Place = tuple[tuple[str, str, int], ...]


def value_of(barrier: Barrier, module: hlo.Module) -> hlo.Instruction:
    """The instruction whose result crosses memory."""
    return module.computations[barrier.computation].instructions[barrier.value]


def writer_of(barrier: Barrier, module: hlo.Module) -> hlo.Instruction:
    return module.computations[barrier.computation].instructions[barrier.writer]


def place_of(step: hlo.Instruction) -> Place:
    return tuple((frame.path, frame.function, frame.line) for frame in step.stack)


def source_of(name: str, here: hlo.Computation) -> hlo.Instruction:
    """What made a value of a computation, whatever it is called now: a kernel, or a parameter that it was given by."""
    from fusionlint.hlo.flow import SAME_VALUE

    while (item := here.instructions[name]).opcode in SAME_VALUE or item.opcode == "get-tuple-element":
        name = item.operands[0]
    return item


def made_of(name: str, wanted: set[str], here: hlo.Computation) -> set[str]:
    """Of the instructions that are wanted those that a value is made of, itself included."""
    todo, seen = [name], {name}
    while todo:
        for one in here.instructions[todo.pop()].operands:
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return seen & wanted


def uses_of(name: str, here: Mapping[str, hlo.Instruction]) -> Iterator[tuple[hlo.Instruction, int]]:
    """Who reads a value of a computation, whatever it is called there, and as which operand."""
    from fusionlint.hlo.flow import SAME_VALUE

    for user in (here[one] for one in here[name].users):
        if user.opcode in SAME_VALUE or user.opcode == "get-tuple-element":
            yield from uses_of(user.name, here)
        else:
            yield from ((user, number) for number, operand in enumerate(user.operands) if operand == name)


def steps_of(kernel: hlo.Instruction, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """A kernel, and the work in it."""
    yield kernel
    yield from module.work_of(kernel)


def kernels_around(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The kernel that makes the value, and those that read it in its own computation: a loop's condition, or a branch,
    has its own."""
    here = module.computations[barrier.computation].instructions
    return (here[name] for name in (barrier.writer, *barrier.readers) if name in here)


def made_and_taken(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The step that made the value, and those that make the results of its readers: what else such a kernel does has
    nothing to do with the value."""
    here = module.computations[barrier.computation]
    made = made_at(At(barrier.value, None, here), module).step(module)
    while made.opcode == "get-tuple-element":
        made = here.instructions[made.operands[0]]  # of a library's call
    yield made
    for item in (here.instructions[name] for name in barrier.readers if name in here.instructions):
        body = module.body(item)
        for result in results_of(item, module):
            yield made_at(At(result, item if body else None, here), module).step(module)


def results_of(item: hlo.Instruction, module: hlo.Module) -> Sequence[str]:
    """The names of what a kernel makes: of a fusion those inside."""
    body = module.body(item)
    if body is None:
        return (item.name,)
    root = body.instructions[body.root]
    return root.operands if root.opcode == "tuple" else (root.name,)


def readers_of(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The kernels that read the value, in program order."""
    for name in barrier.readers:
        yield next(c.instructions[name] for c in module.computations.values() if name in c.instructions)


def first_uses(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The instructions that the value goes into: of a fusion those that use it, or, where it came from elsewhere, by a
    loop for one, what has its shape."""
    shape = value_of(barrier, module).shape
    here = module.computations[barrier.computation].instructions
    names = {*_names(barrier.value, here)}
    for reader in readers_of(barrier, module):
        body = module.body(reader)
        if body is None:
            yield reader
            continue
        given = [one in names for one in reader.operands] if reader.name in here else []
        alike = [one.shape.dims == shape.dims and one.shape.dtype == shape.dtype for one in body.parameters]
        for is_it, parameter in zip(given if any(given) else alike, body.parameters, strict=True):
            if is_it:
                yield from (body.instructions[user] for user in parameter.users)


def is_handed_out(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is, as it is, a result of the computation that makes it."""
    here = module.computations[barrier.computation]
    root = here.instructions[here.root]
    results = set(root.operands) if root.opcode == "tuple" else {root.name}
    return not results.isdisjoint(_names(barrier.value, here.instructions))


def _names(value: str, here: Mapping[str, hlo.Instruction]) -> Iterator[str]:
    """All that the value is called, whatever shape it has under that name."""
    from fusionlint.hlo.flow import SAME_VALUE

    yield value
    for user in here[value].users:
        if here[user].opcode in SAME_VALUE:
            yield from _names(user, here)


def sorted_to(barrier: Barrier, module: hlo.Module) -> int | None:
    """To how many elements the readers cut what the user had sorted; None where it is no sort, or `sliced_to` is."""
    if "sort" not in barrier.opcodes or any(is_of_jax(step, _SORTS) for step in sorts_of(barrier, module)):
        return None
    return sliced_to(barrier, module)


def sorts_of(barrier: Barrier, module: hlo.Module) -> list[hlo.Instruction]:
    """The sorts in the kernel that wrote the value."""
    return [step for step in module.work_of(writer_of(barrier, module)) if step.opcode == "sort"]


def sliced_to(barrier: Barrier, module: hlo.Module) -> int | None:
    """To how many elements at an end of the one axis that they cut the readers cut the value; None where one does
    else, or takes more than half of them."""
    before = value_of(barrier, module).shape.dims
    lengths = set()
    for use in first_uses(barrier, module):
        after = use.shape.dims
        cut = [axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
        if use.opcode != "slice" or len(cut) != 1 or not _is_an_end(use, cut[0], before[cut[0]]):
            return None
        lengths.add(after[cut[0]])
    return lengths.pop() if len(lengths) == 1 else None


def _is_an_end(cut: hlo.Instruction, axis: int, length: int) -> bool:
    """Whether a slice takes the first or the last of `length` elements, half of them at most."""
    begin, end = bounds(cut)[axis]
    return (begin == 0 or end == length) and 2 * (end - begin) <= length


def bounds(cut: hlo.Instruction) -> list[tuple[int, int]]:
    """Where a slice begins and ends on each axis."""
    return [(int(begin), int(end)) for begin, end in _BOUNDS.findall(cut.attributes["slice"])]


def is_order_alone(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is the order that the user's argsort has found, which drops what it has sorted."""
    value = value_of(barrier, module).shape
    found = any(is_of_call(step, ("argsort",)) for step in sorts_of(barrier, module))
    return found and value.dtype in ("s32", "s64")


def gathers_all(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether a reader takes, element by element, as many of an array of the value's shape as there are."""
    dims = value_of(barrier, module).shape.dims
    for reader in readers_of(barrier, module):
        body = module.body(reader)
        for step in body.instructions.values() if body else ():
            if step.opcode == "gather" and prod(step.shape.dims) == prod(dims):
                array = body.instructions[step.operands[0]].shape if body else None
                if array is not None and array.dims == dims:
                    return True
    return False
