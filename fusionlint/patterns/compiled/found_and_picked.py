"""The compiled side: an element that is gathered from where a search for the largest or smallest has found it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.behind import Made, steps_in
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.round import axes_joined

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_CALLED = ("take_along_axis", "take", "argmax", "argmin")
_SIZES = {"gather": "slice_sizes", "dynamic-slice": "dynamic_slice_sizes"}


class _Pick(NamedTuple):
    """The kernels that made the array, that searched it, and that pick from it."""

    array: str
    search: str
    pick: str


def is_picked(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is the place that was found, for a reader that takes the element there from the very array that
    was searched; or that array, which nobody else reads."""
    here = module.computations[barrier.computation]
    kernels = [here.instructions[name] for name in barrier.readers if name in here.instructions]
    picks = [one for kernel in kernels for one in _picks(kernel, here, module)]
    if any(one.search == barrier.writer for one in picks):
        return True
    taken = {name for one in picks if one.array == barrier.writer for name in (one.search, one.pick)}
    return bool(taken) and {*barrier.readers} <= taken


def _picks(kernel: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> Iterator[_Pick]:
    for opcode, sizes in _SIZES.items():
        for pick in steps_in(kernel, here, module, opcode):
            if set(pick.step.attributes[sizes].strip("{}").split(",")) == {"1"} and not is_of_jax(pick.step, _CALLED):
                array, search = pick.operand(0, module), _search(pick, module)
                if search is not None and search.operand(0, module).step is array.step:
                    yield _Pick(array.kernel.name, search.kernel.name, kernel.name)


def _search(pick: Made, module: hlo.Module) -> Made | None:
    """The argmax or argmin whose result is the place on the axis that it searched; on all others each has its own."""
    array = pick.operand(0, module).step.shape.dims
    place, axis = pick.operand(1, module), 0
    if place.step.opcode == "concatenate":
        (joined,) = axes_joined(place.step)
        parts = [place.operand(number, module) for number in range(len(place.step.operands))]
        others = [number for number, part in enumerate(parts) if part.step.opcode != "iota"]
        if joined != len(place.step.shape.dims) - 1 or len(others) != 1 or len(parts) != len(array):
            return None
        axis = others[0]
        place = parts[axis]
    elif len(array) != 1:
        return None
    found = _counted(place, array[axis], module)
    return found if found is not None and found.step.attributes.get("dimensions") == f"{{{axis}}}" else None


def _counted(place: Made, length: int, module: hlo.Module) -> Made | None:
    """What found a place, where that is read as it is: but for what counts from the end."""
    while place.step.opcode in ("select", "convert", "broadcast", "clamp"):
        if place.step.opcode == "select":
            other = place.operand(1, module)
            if other.step.opcode != "add" or other.operand(0, module).step is not place.operand(2, module).step:
                return None
            by = other.operand(1, module)
            while by.step.opcode in ("broadcast", "convert"):
                by = by.operand(0, module)
            if by.step.literal != str(length):
                return None
        place = place.operand({"select": 2, "clamp": 1}.get(place.step.opcode, 0), module)
    if place.step.opcode != "reduce" or len(place.step.operands) != 4:
        return None
    return place if place.operand(1, module).step.opcode == "iota" else None
