"""Module -> the source lines that its instructions come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel

# Path -> first and last line of every stretch, in order.
Lines = Mapping[str, tuple[tuple[int, int], ...]]


def lines(module: hlo.Module) -> Lines:
    """The lines on which any frame of any instruction begins: what was called there is in the program."""
    return _lines(step for part in module.computations.values() for step in part.instructions.values())


def lines_of_kernels(module: hlo.Module, kernels: Iterable[Kernel]) -> dict[str, Lines]:
    """For each kernel, by name, the lines of the work inside."""
    found = {}
    for kernel in kernels:
        step = module.computations[kernel.computation].instructions[kernel.name]
        found[kernel.name] = _lines(_inside(module, step))
    return found


def written_in(module: hlo.Module, kernels: Iterable[Kernel]) -> dict[str, Lines]:
    """For each kernel, by name, the lines that the work inside is written on, without those that only call it."""
    found = {}
    for kernel in kernels:
        step = module.computations[kernel.computation].instructions[kernel.name]
        found[kernel.name] = _of_frames({one.stack[0] for one in _inside(module, step) if one.stack})
    return found


def _inside(module: hlo.Module, step: hlo.Instruction) -> Iterator[hlo.Instruction]:
    yield step
    for name in step.called:
        for inner in module.computations[name].instructions.values():
            yield from _inside(module, inner)


def _lines(steps: Iterable[hlo.Instruction]) -> Lines:
    return _of_frames({frame for stack in {step.stack for step in steps} for frame in stack})


def _of_frames(frames: Iterable[hlo.Frame]) -> Lines:
    found: defaultdict[str, set[int]] = defaultdict(set)
    for frame in frames:
        found[frame.path].add(frame.line)
    return {path: _stretches(found[path]) for path in sorted(found)}


def _stretches(numbers: set[int]) -> tuple[tuple[int, int], ...]:
    stretches: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if stretches and stretches[-1][1] == number - 1:
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    return tuple(stretches)
