"""The compiled side: the loop that XLA writes for a TPU where each element of a vmap has its window elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_STEPS = ("gather", "scatter")


def moved_in_a_loop(barrier: Barrier, module: hlo.Module) -> hlo.Instruction | None:
    """That loop, around the value: it is called like the step that it was, where any other is a `while`."""
    todo, seen = [barrier.computation], {barrier.computation}
    for name in todo:
        for outer, caller in module.callers(name):
            if caller.opcode == "while" and caller.op_name.rpartition("/")[2] in _STEPS and "vmap(" in caller.op_name:
                return caller
            todo += [outer] if outer not in seen else []
            seen.add(outer)
    return None
