"""The compiled side: a branch of a conditional in a loop that hands an array back as it got it, and copies it whole for
that, where the other branch makes little of it.

In: a Barrier. A conditional's result has memory of its own: the branch that changes nothing fills it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.conditionals import is_in_a_loop
from fusionlint.patterns.compiled.of_jax import is_path_of_jax
from fusionlint.patterns.compiled.readers import source_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# What takes longer than a copy, or runs nobody knows how long.
_LONG = frozenset(
    ("dot", "convolution", "custom-call", "sort", "fft", "cholesky", "triangular-solve", "reduce-window", "while")
) | {"conditional", "call", "rng-bit-generator", "topk"}
# A branch that moves more than so many times the array is work that is better left out: without it the array is read
# and written by the copy, and once more by that of the result for the next turn.
_TIMES = 4


def copied_by_a_branch(barrier: Barrier, module: hlo.Module) -> tuple[hlo.Instruction, int] | None:
    """The conditional, and the bytes of the array, where the writer is the copy in the branch that changes nothing."""
    writer = module.computations[barrier.computation].instructions[barrier.writer]
    around = [(part, one) for part, one in module.callers(barrier.computation) if one.opcode == "conditional"]
    if writer.opcode != "copy" or len(around) != 1:
        return None
    _, conditional = around[0]
    if not conditional.stack or is_path_of_jax(conditional.op_name, conditional.stack):
        return None
    if not is_in_a_loop(conditional, module):
        return None
    branch = module.computations[barrier.computation]
    given = source_of(writer.operands[0], branch).opcode == "parameter" and _is_result(writer, branch)
    others = [name for name in conditional.called if name != barrier.computation]
    cheap = all(_is_cheap(module.computations[name], _TIMES * writer.shape.nbytes, module) for name in others)
    return (conditional, writer.shape.nbytes) if given and others and cheap else None


def _is_result(copy: hlo.Instruction, branch: hlo.Computation) -> bool:
    return copy.is_root or (branch.root in copy.users and branch.instructions[branch.root].opcode == "tuple")


def _is_cheap(branch: hlo.Computation, most: int, module: hlo.Module) -> bool:
    """Whether a branch does no more than go over the array."""
    from fusionlint.hlo.cost import traffic
    from fusionlint.hlo.work import NO_WORK

    steps = [item for item in branch.instructions.values() if item.opcode not in NO_WORK]
    if any(step.opcode in _LONG for item in steps for step in (item, *module.work_of(item))):
        return False
    moved = [traffic(module, branch, item) for item in steps]
    return sum(one.read + one.written for one in moved) <= most
