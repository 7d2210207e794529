"""The compiled side: what made a value inside of a kernel, in the kernel itself or in the one that it was given by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.links import SAME

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

_LONG = 64
_COPIED = SAME - {"get-tuple-element"}


class Made(NamedTuple):
    """A step, the kernel that does it, and the computation where that kernel stands."""

    step: hlo.Instruction
    kernel: hlo.Instruction
    computation: hlo.Computation

    def operand(self, number: int, module: hlo.Module) -> Made:
        """What the step is given as that operand."""
        return behind(self.step.operands[number], self.kernel, self.computation, module)


def steps_in(kernel: hlo.Instruction, computation: hlo.Computation, module: hlo.Module, opcode: str) -> list[Made]:
    """The steps of that kind in a kernel."""
    return [Made(step, kernel, computation) for step in module.work_of(kernel) if step.opcode == opcode]


def behind(name: str, kernel: hlo.Instruction, computation: hlo.Computation, module: hlo.Module) -> Made:
    """What made the value `name` of a kernel, by whatever names it came there."""
    body = module.body(kernel)
    for _ in range(_LONG):
        if body is None:
            kernel, index = computation.instructions[name], ""
            if kernel.opcode == "get-tuple-element":
                index, kernel = kernel.attributes["index"], computation.instructions[kernel.operands[0]]
            body = module.body(kernel)
            if body is not None:
                root = body.instructions[body.root]
                name = root.operands[int(index)] if index and root.opcode == "tuple" else root.name
        step = (body or computation).instructions[name]
        if body is not None and step.opcode == "parameter":
            name, body = kernel.operands[int(step.literal)], None
        elif step.opcode in _COPIED and step.operands:
            name = step.operands[0]
        else:
            break
    return Made(step, kernel, computation)


def is_number(made: Made, module: hlo.Module) -> bool:
    """Whether a value is one number that is written out, as often as it has to be."""
    while made.step.opcode in ("broadcast", "convert"):
        made = made.operand(0, module)
    return made.step.opcode == "constant" and not made.step.shape.dims
