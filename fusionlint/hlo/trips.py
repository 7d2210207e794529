"""How often a while loop runs its body, where the program says so.

XLA:CPU and XLA:GPU note what they found out (`known_trip_count`). XLA:TPU does not: there the condition must be a
comparison of a counter with a constant, the counter must start at a constant, and the body must add a constant to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusionlint.hlo import parse as hlo

# Up to 2023 the JSON was printed as a string, its quotes escaped.
_KNOWN = re.compile(r'known_trip_count\\?":\s*\{\\?"n\\?":\s*\\?"(\d+)')
_INTEGER = re.compile(r"-?\d+$")
# They hand on their first operand's value; a TPU moves scalars between memories this way.
_SAME_VALUE = frozenset(["bitcast", "copy", "copy-start", "copy-done", "convert", "opt-barrier"])


@dataclass(frozen=True, slots=True)
class _Carry:
    """Element `index` of the computation's own tuple parameter."""

    index: int


@dataclass(frozen=True, slots=True)
class _Sum:
    base: _Carry
    step: int


_Value = _Carry | _Sum | int | None


def trip_count(module: hlo.Module, computation: hlo.Computation, loop: hlo.Instruction) -> int | None:
    """How often the while instruction `loop` of `computation` runs its body; None where the program does not tell."""
    if known := _KNOWN.search(loop.attributes.get("backend_config", "")):
        return int(known[1])
    compared = _comparison(module, module.computations[hlo.names(loop.attributes["condition"])[0]])
    if compared is None:
        return None
    counter, bound, inclusive = compared
    inside = module.computations[hlo.names(loop.attributes["body"])[0]]
    step = _element(module, inside, inside.root, counter.index)
    start = _element(module, computation, loop.operands[0], counter.index)
    if not isinstance(step, _Sum) or step.base != counter or step.step <= 0 or not isinstance(start, int):
        return None
    return max(0, -(-(bound + inclusive - start) // step.step))


def counts(module: hlo.Module, body: hlo.Computation, index: int) -> bool:
    """Whether a turn of a loop adds a constant to element `index` of what it carries, and hands that on there."""
    step = _element(module, body, body.root, index)
    return isinstance(step, _Sum) and step.base == _Carry(index)


def is_written_down(loop: hlo.Instruction) -> bool:
    """Whether the compiler wrote beside the loop how often it runs: a CPU's and a GPU's do where they know."""
    return bool(_KNOWN.search(loop.attributes.get("backend_config", "")))


def _comparison(module: hlo.Module, condition: hlo.Computation) -> tuple[_Carry, int, bool] | None:
    """The counter, the constant that bounds it from above, and whether the counter may equal that."""
    root = condition.instructions[condition.root]
    operands = [_value(module, condition, name) for name in root.operands]
    if body := module.body(root):
        root = body.instructions[body.root]
        arguments = dict(zip((item.name for item in body.parameters), operands, strict=True))
        operands = [arguments.get(name, _value(module, body, name)) for name in root.operands]
    if root.opcode != "compare":
        return None
    match (*operands, root.attributes.get("direction")):
        case (_Carry() as counter, int(bound), "LT" | "LE" as way):
            return counter, bound, way == "LE"
        case (int(bound), _Carry() as counter, "GT" | "GE" as way):
            return counter, bound, way == "GE"
    return None


def _element(module: hlo.Module, computation: hlo.Computation, name: str, index: int) -> _Value:
    """Element `index` of the tuple that instruction `name` makes."""
    made = computation.instructions[name]
    if made.opcode == "parameter":
        return _Carry(index)
    return _value(module, computation, made.operands[index]) if made.opcode == "tuple" else None


def _value(module: hlo.Module, computation: hlo.Computation, name: str) -> _Value:
    made = computation.instructions[name]
    if made.opcode in _SAME_VALUE:
        return _value(module, computation, made.operands[0])
    if made.opcode == "constant" and _INTEGER.match(made.literal):
        return int(made.literal)
    if made.opcode == "get-tuple-element":
        return _element(module, computation, made.operands[0], int(made.attributes["index"]))
    if made.opcode == "add":
        return _sum(*(_value(module, computation, operand) for operand in made.operands))
    if made.opcode == "fusion":
        return _fused(module, computation, made)
    return None


def _sum(left: _Value, right: _Value) -> _Value:
    match left, right:
        case (_Carry() as base, int(step)) | (int(step), _Carry() as base):
            return _Sum(base, step)
    return None


def _fused(module: hlo.Module, computation: hlo.Computation, fusion: hlo.Instruction) -> _Value:
    """A fused add, alone in its fusion: what each backend makes of the counter's step."""
    body = module.computations[fusion.called[0]]
    root = body.instructions[body.root]
    if root.opcode != "add":
        return None
    outside = {item.name: name for item, name in zip(body.parameters, fusion.operands, strict=True)}
    values = [
        _value(module, computation, outside[name]) if name in outside else _value(module, body, name)
        for name in root.operands
    ]
    return _sum(*values)
