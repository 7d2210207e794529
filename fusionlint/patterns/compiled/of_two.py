"""The compiled side: a logsumexp over an axis of two, along which two arrays were put into one.

jax names no function around it: it is known by what it does, exponentials of what is left of an array without its
maximum, where that is finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import kernels_around

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_JOINS = frozenset(("concatenate", "pad"))


def is_logsumexp_of_two(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the kernel that makes the value, or one that reads it, takes those exponentials at the barrier's line."""
    here = module.computations[barrier.computation]
    for item in kernels_around(barrier, module):
        for step in module.work_of(item):
            is_here = step.opcode == "exponential" and step.stack == barrier.stack and bool(step.stack)
            kernel = item if module.body(item) is not None else None
            if is_here and not is_of_jax(step) and _is_of_two(At(step.name, kernel, here), module):
                return True
    return False


def _is_of_two(exponential: At, module: hlo.Module) -> bool:
    without = made_at(exponential.operand(0, module), module)
    if without.step(module).opcode != "subtract":
        return False
    array, most = (made_at(without.operand(number, module), module) for number in range(2))
    if not _is_finite(most, module):
        return False
    dims, left = [*exponential.step(module).shape.dims], [size for size in most.step(module).shape.dims if size != 1]
    pairs = [axis for axis, size in enumerate(dims) if size == 2]
    of_two = any([size for size in dims[:axis] + dims[axis + 1 :] if size != 1] == left for axis in pairs)
    return of_two and _is_joined(array, module)


def _is_finite(most: At, module: hlo.Module) -> bool:
    """Whether a value is a maximum where that is finite, and something else elsewhere."""
    if most.step(module).opcode != "select":
        return False
    return made_at(most.operand(0, module), module).step(module).opcode == "is-finite"


def _is_joined(array: At, module: hlo.Module) -> bool:
    """A TPU widens the parts, and takes their maximum or their sum."""
    step = array.step(module)
    if step.opcode in ("maximum", "add"):
        return any(made_at(array.operand(n, module), module).step(module).opcode == "pad" for n in range(2))
    return step.opcode in _JOINS
