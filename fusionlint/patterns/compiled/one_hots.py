"""The compiled side: a one-hot, as `jax.nn.one_hot` makes it, and what is done with all of it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.behind import Made, steps_in
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import kernels_around, readers_of, value_of, writer_of
from fusionlint.patterns.compiled.round import goes_round

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_ONE_HOTS = ("_one_hot", "one_hot")
_WINDOW = regex(r"size=([\dx]+)")
_PRODUCTS = ("dot", "convolution", "custom-call")
# What XLA does to a factor before a product.
_LAID_OUT = frozenset(("pad", "bitcast", "convert", "copy", "transpose", "reshape", "parameter", "constant"))


def is_handed_on_for_a_product(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is a one-hot of what a turn of a loop has found to be the largest, which the turn hands to the
    next, and that one reads only to multiply."""
    value = value_of(barrier, module)
    made = [step for step in module.work_of(writer_of(barrier, module)) if step.shape.dims == value.shape.dims]
    if not any(is_of_call(step, _ONE_HOTS) for step in made) or not goes_round(barrier.value, barrier, module):
        return False
    here = module.computations[barrier.computation]
    return _is_drawn(At(barrier.value, None, here), module) and all(
        _is_multiplied(reader, module) for reader in readers_of(barrier, module)
    )


def _is_drawn(one_hot: At, module: hlo.Module) -> bool:
    """Whether its place comes of a search for the largest."""
    compare = made_at(one_hot, module)
    if compare.step(module).opcode != "compare":
        return False
    sides = [made_at(compare.operand(number, module), module).step(module) for number in range(2)]
    return any(side.opcode == "get-tuple-element" or len(side.shape.parts) > 1 for side in sides)


def _is_multiplied(reader: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel, or all that read what it only lays out, is a product."""
    steps = [*module.work_of(reader)]
    if any(step.opcode in _PRODUCTS for step in steps):
        return True
    here = next(part for part in module.computations.values() if part.instructions.get(reader.name) is reader)
    users = [here.instructions[name] for name in reader.users]
    is_laid_out = reader.opcode != "tuple" and all(step.opcode in _LAID_OUT for step in steps)
    return is_laid_out and bool(users) and all(_is_multiplied(user, module) for user in users)


def is_summed_along_classes(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether a kernel that the value is made or read by begins a running sum of a one-hot along its classes, of which
    XLA makes sums over windows of them, in several passes."""
    here = module.computations[barrier.computation]
    return any(
        _is_along_classes(window, module)
        for kernel in kernels_around(barrier, module)
        for window in steps_in(kernel, here, module, "reduce-window")
    )


def _is_along_classes(window: Made, module: hlo.Module) -> bool:
    """Whether the numbers that a window takes lie as far apart as a class from the next. For another axis XLA moves
    the whole one-hot before."""
    one_hot = _converted(window.operand(0, module), module)
    classes = _classes(one_hot, module)
    found = _WINDOW.search(window.step.attributes.get("window", ""))
    sizes = [int(size) for size in found[1].split("x")] if found else []
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    if classes is None or len(axes) != 1:
        return False
    given = (module.body(window.kernel) or window.computation).instructions[window.step.operands[0]]
    return prod(given.shape.dims[axes[0] + 1 :]) == prod(one_hot.step.shape.dims[classes + 1 :])


def _classes(one_hot: Made, module: hlo.Module) -> int | None:
    """The axis of a one-hot that its classes are counted on; None of any other value."""
    step = one_hot.step
    if step.opcode != "compare" or step.attributes.get("direction") != "EQ" or not is_of_call(step, _ONE_HOTS):
        return None
    for side in (_converted(one_hot.operand(number, module), module) for number in range(2)):
        axis = side.step.attributes.get("dimensions", "").strip("{}") if side.step.opcode == "broadcast" else ""
        counted = _converted(side.operand(0, module), module) if axis else side
        if counted.step.opcode == "iota":
            return int(axis or counted.step.attributes["iota_dimension"])
    return None


def _converted(made: Made, module: hlo.Module) -> Made:
    """What a value was before it was converted."""
    while made.step.opcode == "convert":
        made = made.operand(0, module)
    return made
