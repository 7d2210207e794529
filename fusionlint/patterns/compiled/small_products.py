"""The compiled side: products with a matrix of two or three rows that the program puts together for each of many.

In: a Barrier. A library multiplies them one by one; written out it is arithmetic that fuses.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import kernels_around

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_MOST_ROWS = 3
# Points of each, that a matrix turns.
_MOST_POINTS = 32
_FEWEST = 64
_JOINS = ("stack", "hstack", "vstack", "column_stack", "concatenate")


def is_small_product(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is such a matrix, or such a product."""
    here = module.computations[barrier.computation]
    for item in kernels_around(barrier, module):
        step = _product(item, module)
        if step is None:
            continue
        operands = [At(one, item if item.opcode == "fusion" else None, here) for one in step.operands]
        if not _is_of_many_small(step, operands[0].step(module).shape.dims):
            continue
        joined = [
            made
            for one in operands
            if _is_joined((made := made_at(one, module)).step(module), len(_axes(step, "lhs_batch_dims")))
        ]
        if joined and (item.name == barrier.writer or any(_maker(one) == barrier.writer for one in joined)):
            return True
    return False


def _product(item: hlo.Instruction, module: hlo.Module) -> hlo.Instruction | None:
    steps = module.work_of(item)
    return next(
        (s for s in steps if s.opcode == "dot" and s.op_name.endswith("dot_general") and not is_of_jax(s)), None
    )


def _is_of_many_small(dot: hlo.Instruction, given: tuple[int, ...]) -> bool:
    """Whether it multiplies, for each of many, a few points by a matrix of two or three rows."""
    batch = _axes(dot, "lhs_batch_dims")
    summed = _axes(dot, "lhs_contracting_dims")
    if not batch or len(summed) != 1:
        return False
    many = prod(given[axis] for axis in batch)
    each = prod(dot.shape.dims) // max(many, 1)
    return many >= _FEWEST and given[summed[0]] <= _MOST_ROWS and each <= _MOST_ROWS * _MOST_POINTS


def _axes(dot: hlo.Instruction, name: str) -> list[int]:
    return [int(axis) for axis in dot.attributes.get(name, "").strip("{}").split(",") if axis]


def _is_joined(step: hlo.Instruction, batch: int) -> bool:
    """Whether it joins a matrix of two or three rows for each of many, on so many axes, wherever those stand."""
    is_small = sum(size > _MOST_ROWS for size in step.shape.dims) <= batch
    return step.opcode == "concatenate" and not is_of_jax(step, _JOINS) and is_small


def _maker(made: At) -> str:
    return made.kernel.name if made.kernel is not None else made.name
