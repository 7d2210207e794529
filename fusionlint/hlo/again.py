"""What a loop makes anew in every turn, although it is the same in each: kernels that read nothing a turn changes.

In: a Flow and its kernels. A turn changes what it hands on as something else than it got; what it hands on unchanged,
constants, and what is made of nothing else are the same in every turn. XLA moves much of that out of a loop, on a GPU
little. Of what stands in a branch nothing is said: it may be taken seldom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.causes import HOST
from fusionlint.hlo.flow import SAME_VALUE, Flow, Node, Path, called, leaves
from fusionlint.hlo.kernels import Kernel, Loop, target


@dataclass(frozen=True, slots=True)
class Again:
    """The kernels of a loop that do the same in each of its turns, in program order. Of loops in one another it is the
    outermost that changes nothing of what they read. A kernel that does heavy work of which that is true, and more of
    which it is not, has an `Again` too and is not among them."""

    loop: Node
    kernels: tuple[Kernel, ...]
    kept: frozenset[Node] = field(repr=False, compare=False)  # every value in it that is the same in every turn


class _Kept(IntEnum):
    """How much of a value stays as it is from turn to turn; of several the least counts."""

    CHANGES = 0
    GIVEN = 1  # the same, by what the loop was given
    KNOWN = 2  # made of constants alone: the compiler could know it, and before the loop it would be no cheaper


def made_again(names: Flow, launched: Sequence[Kernel], around: Sequence[Loop]) -> dict[Node, Again]:
    """By kernel, for those that do the same in every turn of a loop."""
    loops: dict[Node, Node] = {}
    kept: dict[Node, frozenset[Node]] = {}
    for loop in around:  # the outer ones first
        node = loop.computation, loop.name
        turn = _turn(names, node)
        found = [kernel for kernel in (*turn.same, *turn.partly) if kernel not in loops]
        loops.update(dict.fromkeys(found, node))
        if found:
            kept[node] = frozenset(one for one, values in turn.seen.items() if _least([values]))
    of_loop: defaultdict[Node, list[Kernel]] = defaultdict(list)
    for kernel in launched:
        node = kernel.computation, kernel.name
        if node in loops and node in kept[loops[node]]:
            of_loop[loops[node]].append(kernel)
    every = {loop: Again(loop, tuple(of_loop[loop]), of_it) for loop, of_it in kept.items()}
    return {kernel: every[loop] for kernel, loop in loops.items()}


def _turn(names: Flow, loop: Node) -> _Turn:
    body = names.module.computations[called(names.instruction(loop), "body")]
    carry = {path: _given(names.is_invariant(loop, path)) for path, _ in leaves(body.parameters[0].shape)}
    turn = _Turn(names, {body.name: (carry,)})
    turn.follow(body)
    return turn


def _given(is_given: bool) -> _Kept:
    return _Kept.GIVEN if is_given else _Kept.CHANGES


_Values = Mapping[Path, _Kept]
# They read much for each element that they make: fused or not, it is not done anew for nothing.
_HEAVY = frozenset({"dot", "reduce"})
# What is not the same each time, whatever it is given.
_EFFECTS = HOST | {"rng", "rng-get-and-update-state"}


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn of a loop, with what the parameters of the computations that it runs are."""

    names: Flow
    parameters: dict[str, tuple[_Values, ...]]
    seen: dict[Node, _Values] = field(default_factory=dict)
    same: list[Node] = field(default_factory=list)  # the kernels that read only what the loop was given and keeps
    partly: list[Node] = field(default_factory=list)  # those that do heavy work with that, and more with other values

    def follow(self, part: hlo.Computation) -> None:
        """Through a computation, and those that it runs in any case."""
        for item in part.instructions.values():  # what is used stands before who uses it
            self._into(part, item)
            values = self.seen[part.name, item.name] = self._of(part, item)
            if item.name in self.names.kernels and _Kept.GIVEN in values.values():
                self.same.append((part.name, item.name))
            elif item.opcode == "fusion" and self._is_partly_same(part, item):
                self.partly.append((part.name, item.name))

    def _is_partly_same(self, part: hlo.Computation, fusion: hlo.Instruction) -> bool:
        body = self.names.module.computations[fusion.called[0]]
        if _HEAVY.isdisjoint(item.opcode for item in body.instructions.values()):
            return False
        inside: dict[str, _Kept] = {}
        for item in body.instructions.values():
            if item.opcode == "parameter":
                inside[item.name] = _least([self._known(part, fusion.operands[int(item.literal)])])
            else:
                inside[item.name] = min((inside[name] for name in item.operands), default=_Kept.KNOWN)
            if item.opcode in _HEAVY and inside[item.name] == _Kept.GIVEN:
                return True
        return False

    def _into(self, part: hlo.Computation, item: hlo.Instruction) -> None:
        """The loop, or the computation called, that an instruction is; where others run the same one, nothing."""
        if item.opcode not in ("while", "call"):
            return
        inner = called(item, "body") if item.opcode == "while" else item.called[0]
        if len(self.names.callers[inner]) == 1:
            starts = tuple(self._known(part, name) for name in item.operands)
            self.parameters[inner] = (self._carried(part, item),) if item.opcode == "while" else starts
            self.follow(self.names.module.computations[inner])

    def _of(self, part: hlo.Computation, item: hlo.Instruction) -> _Values:
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
            kept = _Kept.CHANGES
        return dict.fromkeys((path for path, _ in leaves(item.shape)), kept)

    def _known(self, part: hlo.Computation, name: str) -> _Values:
        """Of what is printed behind who uses it nothing is known."""
        seen = self.seen.get((part.name, name))
        return _changing(part.instructions[name].shape) if seen is None else seen

    def _carried(self, part: hlo.Computation, loop: hlo.Instruction) -> _Values:
        """What a loop inside is given, and hands on: all that it makes of the same is the same."""
        starts = self._known(part, loop.operands[0])
        if _least([starts]) and not _has_effects(self.names.module, loop):
            return starts
        stay = {path for path, kept in starts.items() if kept and self.names.is_invariant((part.name, loop.name), path)}
        return {path: kept if path in stay else _Kept.CHANGES for path, kept in starts.items()}


def _changing(shape: hlo.Shape) -> _Values:
    return {path: _Kept.CHANGES for path, _ in leaves(shape)}


def _least(operands: Sequence[_Values]) -> _Kept:
    return min((kept for values in operands for kept in values.values()), default=_Kept.KNOWN)


def _has_effects(module: hlo.Module, item: hlo.Instruction) -> bool:
    """Whether an instruction, or what it runs, does something that is not the same each time."""
    if item.opcode in _EFFECTS or "custom_call_has_side_effect" in item.attributes or "callback" in target(item):
        return True
    inner = (step for name in item.called for step in module.computations[name].instructions.values())
    return any(_has_effects(module, step) for step in inner)
