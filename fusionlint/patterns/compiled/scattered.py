"""The compiled side: at which places a scatter of the user's writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.behind import Made, is_number, steps_in
from fusionlint.patterns.compiled.links import made_by
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import first_uses, kernels_around, value_of
from fusionlint.patterns.compiled.round import is_elementwise

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_WHOLE_NUMBERS = ("s32", "s64", "u32")


def scatters_at(barrier: Barrier, module: hlo.Module) -> Iterator[Made]:
    """The scatters that made the value, or take it, as their array or for their places; not one that only stands in a
    kernel that reads the value for something else, or that makes places of it."""
    here = module.computations[barrier.computation]
    value = value_of(barrier, module).shape
    for item in kernels_around(barrier, module):
        for made in steps_in(item, here, module, "scatter"):
            is_array = value.dims == made.step.shape.dims
            is_there = made.step.stack == barrier.stack  # the scatter is why it crosses memory
            is_of_places = is_there and item.name != barrier.writer and value.dtype in _WHOLE_NUMBERS
            if len(made.step.operands) == 3 and (is_array or is_of_places) and not is_of_jax(made.step):
                yield made


def is_diagonal(scatter: Made, module: hlo.Module) -> bool:
    """Whether both places, on axes that are as long as there are places, count from zero on."""
    axes = places_axes(scatter.step)
    dims = scatter.step.shape.dims
    counts = _counted(scatter, module)
    return len(axes) == 2 and counts == [dims[axes[0]], dims[axes[1]]] and counts[0] == counts[1]


def is_one_of_each_row(scatter: Made, module: hlo.Module) -> bool:
    """Whether a number is set at one place of each row of a matrix of another number."""
    dims = scatter.step.shape.dims
    is_of_numbers = is_number(scatter.operand(0, module), module) and is_number(scatter.operand(2, module), module)
    return is_of_numbers and len(dims) == 2 and axes_of_one_place(scatter, module) == 1


def axes_of_one_place(scatter: Made, module: hlo.Module) -> int:
    """Of a scatter that sets one place of each row, or plane, how many axes a row has; 0 of any other."""
    if made_by(scatter.step, module) != "set":
        return 0
    dims, counts = scatter.step.shape.dims, _counted(scatter, module)
    if places_axes(scatter.step) != [*range(len(dims))] or len(counts) != len(dims):
        return 0
    free = sum(count is None for count in counts)
    before = len(dims) - free
    places = scatter.operand(1, module).step.shape.dims[:-1]
    return free if 0 < free < len(dims) and counts[:before] == [*dims[:before]] == [*places] else 0


def puts_most_behind(scatter: Made, module: hlo.Module) -> bool:
    """Whether a scatter sets, at places that are written out, all but a few along one axis of an array of one number,
    or of one that was widened: what jax.numpy.insert does with what stands behind what is inserted."""
    axes, places, array = places_axes(scatter.step), scatter.operand(1, module).step, scatter.operand(0, module)
    if made_by(scatter.step, module) != "set" or len(axes) != 1 or places.opcode != "constant":
        return False
    missing = scatter.step.shape.dims[axes[0]] - places.shape.dims[0]
    is_new = is_number(array, module) or array.step.opcode == "pad"
    return is_new and places.shape.dims[1:] == (1,) and 0 < missing <= places.shape.dims[0]


def is_of_elementwise_work(scatter: Made, module: hlo.Module) -> bool:
    """Whether the array that is written to is made element by element, or handed in: what a `where` would fuse with,
    unlike a matrix product."""
    made = scatter.operand(0, module)
    if made.kernel is scatter.kernel:
        return True
    if made.step.opcode == "parameter":
        return made.computation.name == module.entry  # what a loop carries is written to in place
    return is_elementwise(made.kernel, module) or made.step.opcode == "copy"


def places_axes(scatter: hlo.Instruction) -> list[int]:
    """The axes of the array that a place says where on."""
    return [int(axis) for axis in scatter.attributes["scatter_dims_to_operand_dims"].strip("{}").split(",") if axis]


def _counted(scatter: Made, module: hlo.Module) -> list[int | None]:
    """Of each axis how far the places count, 0, 1, 2, ...; None where they do not."""
    places = scatter.operand(1, module)
    if places.step.opcode != "concatenate":
        return []
    parts = (places.operand(number, module).step for number in range(len(places.step.operands)))
    return [_length(part) for part in parts]


def _length(part: hlo.Instruction) -> int | None:
    if part.opcode != "iota":
        return None
    return part.shape.dims[int(part.attributes["iota_dimension"])]


def is_grid_of_each(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is a grid for each of many elements, all zeros but for what is written at places of its own, or
    any where it is asked whether one is true, of which nothing is read but the sum over the elements."""
    here = module.computations[barrier.computation]
    made = made_at(At(barrier.value, None, here), module)
    step = made.step(module)
    if step.opcode != "scatter" or "vmap(" not in step.op_name or len(step.operands) != 3 or is_of_jax(step):
        return False
    scatter = Made(step, made.kernel or step, here)
    counts, axes = _counted(scatter, module), places_axes(step)
    uses = [*first_uses(barrier, module)]
    if barrier.returned or len(counts) != len(axes) or not uses or len(barrier.readers) != len(uses):
        return False
    wanted = {f"{{{axis}}}" for axis, count in zip(axes, counts, strict=True) if count == step.shape.dims[axis] > 1}
    kinds = ("reduce_or",) if not is_number(scatter.operand(0, module), module) else ("reduce_or", "reduce_sum")
    sums = (use for use in uses if use.opcode == "reduce" and use.op_name.endswith(kinds))
    return [use.attributes.get("dimensions") in wanted for use in sums] == [True] * len(uses)
