"""What is the same in every turn of a loop: values, by where they stand in its body and in what that runs.

In: a Flow and its loops. A turn changes what it hands on as something else than it got; what it hands on unchanged,
constants, and what is made of nothing else are the same in every turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.causes import HOST
from fusionlint.hlo.flow import SAME_VALUE, Flow, Node, Path, called, leaves
from fusionlint.hlo.kernels import Loop, target


class Kept(IntEnum):
    """How much of a value stays as it is from turn to turn; of several the least counts."""

    CHANGES = 0
    GIVEN = 1  # the same, by what the loop was given
    KNOWN = 2  # made of constants alone: the compiler could know it, and before the loop it would be no cheaper


Values = Mapping[Path, Kept]
# They read much for each element that they make: fused or not, it is not done anew for nothing.
_HEAVY = frozenset({"dot", "reduce"})
# What is not the same each time, whatever it is given.
_EFFECTS = HOST | {"rng", "rng-get-and-update-state"}


def turns(names: Flow, around: Sequence[Loop]) -> dict[Node, Turn]:
    """A turn of each loop, of the outer ones first."""
    return {node: _turn(names, node) for node in ((loop.computation, loop.name) for loop in around)}


def _turn(names: Flow, loop: Node) -> Turn:
    body = names.module.computations[called(names.instruction(loop), "body")]
    carry = {path: _given(names.is_invariant(loop, path)) for path, _ in leaves(body.parameters[0].shape)}
    turn = Turn(names, body, {body.name: (carry,)})
    turn.follow(body)
    return turn


def _given(is_given: bool) -> Kept:
    return Kept.GIVEN if is_given else Kept.CHANGES


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a loop, with what the parameters of the computations that it runs are."""

    names: Flow
    body: hlo.Computation
    parameters: dict[str, tuple[Values, ...]]
    seen: dict[Node, Values] = field(default_factory=dict)
    same: list[Node] = field(default_factory=list)  # the kernels that read only what the loop was given and keeps
    partly: list[Node] = field(default_factory=list)  # those that do heavy work with that, and more with other values

    def follow(self, part: hlo.Computation) -> None:
        """Through a computation, and those that it runs in any case."""
        for item in part.instructions.values():  # what is used stands before who uses it
            self._into(part, item)
            values = self.seen[part.name, item.name] = self._of(part, item)
            if item.name in self.names.kernels and Kept.GIVEN in values.values():
                self.same.append((part.name, item.name))
            elif item.opcode == "fusion" and self._is_partly_same(part, item):
                self.partly.append((part.name, item.name))

    def kept(self) -> frozenset[Node]:
        """Every value that is the same in every turn."""
        return frozenset(node for node, values in self.seen.items() if _least([values]))

    def of(self, part: hlo.Computation, name: str) -> Kept:
        """How much of a value is kept."""
        return _least([self._known(part, name)])

    def within(self, part: hlo.Computation, fusion: hlo.Instruction) -> dict[str, Kept]:
        """What of the work inside of a fusion is kept."""
        inside: dict[str, Kept] = {}
        for item in self.names.module.computations[fusion.called[0]].instructions.values():
            if item.opcode == "parameter":
                inside[item.name] = self.of(part, fusion.operands[int(item.literal)])
            else:
                inside[item.name] = min((inside[name] for name in item.operands), default=Kept.KNOWN)
        return inside

    def _is_partly_same(self, part: hlo.Computation, fusion: hlo.Instruction) -> bool:
        heavy = [item.name for item in self.names.module.work_of(fusion) if item.opcode in _HEAVY]
        inside = self.within(part, fusion) if heavy else {}
        return any(inside[name] == Kept.GIVEN for name in heavy)

    def _into(self, part: hlo.Computation, item: hlo.Instruction) -> None:
        """The loop, or the computation called, that an instruction is; where others run the same one, nothing."""
        if item.opcode not in ("while", "call"):
            return
        inner = called(item, "body") if item.opcode == "while" else item.called[0]
        if len(self.names.callers[inner]) == 1:
            starts = tuple(self._known(part, name) for name in item.operands)
            self.parameters[inner] = (self._carried(part, item),) if item.opcode == "while" else starts
            self.follow(self.names.module.computations[inner])

    def _of(self, part: hlo.Computation, item: hlo.Instruction) -> Values:
        if item.opcode == "get-tuple-element":  # first, for a loop may carry thousands of values
            whole, first = self._known(part, item.operands[0]), (int(item.attributes["index"]),)
            return {path: whole[first + path] for path, _ in leaves(item.shape)}
        operands = [self._known(part, name) for name in item.operands]
        match item.opcode:
            case "parameter":
                return self.parameters[part.name][int(item.literal)]
            case "tuple":
                return {(number, *path): kept for number, one in enumerate(operands) for path, kept in one.items()}
            case opcode if opcode in SAME_VALUE:
                return operands[0]
            case "while":
                return self._carried(part, item)
            case "call":
                inner = self.names.module.computations[item.called[0]]
                return self._known(inner, inner.root)
        kept = _least(operands)
        if kept and _has_effects(self.names.module, item):
            kept = Kept.CHANGES
        return dict.fromkeys((path for path, _ in leaves(item.shape)), kept)

    def _known(self, part: hlo.Computation, name: str) -> Values:
        """Of what is printed behind who uses it nothing is known."""
        seen = self.seen.get((part.name, name))
        return _changing(part.instructions[name].shape) if seen is None else seen

    def _carried(self, part: hlo.Computation, loop: hlo.Instruction) -> Values:
        """What a loop inside is given, and hands on: all that it makes of the same is the same."""
        starts = self._known(part, loop.operands[0])
        if _least([starts]) and not _has_effects(self.names.module, loop):
            return starts
        stay = {path for path, kept in starts.items() if kept and self.names.is_invariant((part.name, loop.name), path)}
        return {path: kept if path in stay else Kept.CHANGES for path, kept in starts.items()}


def _changing(shape: hlo.Shape) -> Values:
    return {path: Kept.CHANGES for path, _ in leaves(shape)}


def _least(operands: Sequence[Values]) -> Kept:
    return min((kept for values in operands for kept in values.values()), default=Kept.KNOWN)


def _has_effects(module: hlo.Module, item: hlo.Instruction) -> bool:
    """Whether an instruction, or what it runs, does something that is not the same each time."""
    if item.opcode in _EFFECTS or "custom_call_has_side_effect" in item.attributes or "callback" in target(item):
        return True
    inner = (step for name in item.called for step in module.computations[name].instructions.values())
    return any(_has_effects(module, step) for step in inner)
