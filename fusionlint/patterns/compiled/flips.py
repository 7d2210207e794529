"""The compiled side: loops over rows that are flipped before, and whose outputs are flipped back after.

In: a Barrier. A flip reads and writes the whole array; a scan that counts down needs none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax, is_path_of_jax
from fusionlint.patterns.compiled.of_module import OfModule

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# What jax jits of a flip that the user calls; `x[::-1]` is in none.
_CALLED = ("_flip", "flip", "flipud")
_SAME = frozenset(("bitcast", "copy", "copy-start", "copy-done", "reshape"))


def is_flipped_around_a_loop(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is what such a loop is given, or what it has made, with a flip on the way."""
    if "reverse" not in module.opcodes or "while" not in module.opcodes:
        return False
    known = _known(OfModule(module))
    return barrier.writer in known or any(name in known for name in barrier.readers)


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> frozenset[str]:
    """The kernels that flip, by name."""
    found: set[str] = set()
    for part in of.module.computations.values():
        for loop in part.instructions.values():
            if loop.opcode == "while" and loop.stack and not is_path_of_jax(loop.op_name, loop.stack):
                before, after = {*_before(loop, part, of.module)}, {*_after(loop, part, of.module)}
                if before and after:
                    found |= before | after
    return frozenset(found)


def _before(loop: hlo.Instruction, part: hlo.Computation, module: hlo.Module) -> Iterator[str]:
    """The kernels that flip what a loop is given."""
    given = part.instructions[loop.operands[0]]
    for name in given.operands if given.opcode == "tuple" else ():
        made = made_at(At(name, None, part), module)
        if _flips(made.step(module)):
            yield (made.kernel or made.step(module)).name


def _after(loop: hlo.Instruction, part: hlo.Computation, module: hlo.Module) -> Iterator[str]:
    """The kernels that flip what a loop has made, before they do anything else with it."""
    todo = [user for user in loop.users if part.instructions[user].opcode == "get-tuple-element"]
    while todo:
        name = todo.pop()
        for user in (part.instructions[one] for one in part.instructions[name].users):
            if user.opcode in _SAME:
                todo.append(user.name)
                continue
            body = module.body(user)
            steps = body.instructions if body is not None else part.instructions
            taken = [body.parameters[i].name for i, one in enumerate(user.operands) if one == name] if body else [name]
            while taken:
                for step in (steps[one] for one in steps[taken.pop()].users):
                    if step.opcode in _SAME and body is not None:
                        taken.append(step.name)
                    elif _flips(step):
                        yield user.name


def _flips(step: hlo.Instruction) -> bool:
    return step.opcode == "reverse" and step.attributes.get("dimensions") == "{0}" and not is_of_jax(step, _CALLED)
