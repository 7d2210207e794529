"""The compiled side: the two halves of an array, joined the other way round and one of them negated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.behind import Made, behind, steps_in
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import bounds, kernels_around

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier


def joins_rotated_halves(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is `-x2` and `x1` joined along the last axis, or one of them."""
    here = module.computations[barrier.computation]
    return any(barrier.writer in _joined(kernel, here, module) for kernel in kernels_around(barrier, module))


def _joined(kernel: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> set[str]:
    """The kernels that join two halves so, and that make them."""
    for joined in steps_in(kernel, here, module, "concatenate"):
        if len(joined.step.operands) == 2 and _last_axis(joined.step) and not is_of_jax(joined.step):
            negated, first = joined.operand(0, module), joined.operand(1, module)
            if _are_halves(negated, first, module):
                return {kernel.name, negated.kernel.name, first.kernel.name}
    # A TPU pads either half, and takes the larger.
    pads = [one for one in steps_in(kernel, here, module, "pad") if one.step.op_name.endswith("/concatenate")]
    if len(pads) != 2 or any(is_of_jax(one.step) for one in pads):
        return set()
    one, other = (pad.operand(0, module) for pad in pads)
    if _are_halves(one, other, module) or _are_halves(other, one, module):
        return {kernel.name, one.kernel.name, other.kernel.name}
    return set()


def _last_axis(joined: hlo.Instruction) -> bool:
    return joined.attributes["dimensions"] == f"{{{len(joined.shape.dims) - 1}}}"


def _are_halves(negated: Made, first: Made, module: hlo.Module) -> bool:
    """Whether they are the second half, negated, and the first half of one array."""
    if negated.step.opcode != "negate" or first.step.opcode != "slice":
        return False
    second = negated.operand(0, module)
    if second.step.opcode != "slice":
        return False
    sources = [behind(one.step.operands[0], one.kernel, one.computation, module) for one in (second, first)]
    if sources[0].step is not sources[1].step:
        return False
    length = sources[0].step.shape.dims[-1:] or (0,)
    return bounds(first.step)[-1] == (0, length[0] // 2) and bounds(second.step)[-1] == (length[0] // 2, length[0])
