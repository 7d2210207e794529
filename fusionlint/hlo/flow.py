"""Where a value comes from: from a reader back to the kernels that wrote it, through everything that moves no data.

Tuples, get-tuple-element, bitcasts, calls and the boundaries of loops and branches are names for memory, not work.
A `Flow` sees through them: `origins` goes from an operand to the kernels whose results it may be. The program's own
inputs and its constants have no origin here: nothing in the program wrote them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from fusionlint.hlo import parse as hlo

Node = tuple[str, str]  # computation, instruction: names are unique inside one computation only
Path = tuple[int, ...]  # which element of a (nested) tuple

# They rename memory, or wait for it; the value is that of the first operand.
SAME_VALUE = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "domain", "add-dependency"})


@dataclass(frozen=True, slots=True)
class Origin:
    """A kernel's result, and the way it took to its reader."""

    node: Node
    path: Path
    carried: bool = False  # written in an earlier iteration of a loop around the reader
    entered: bool = False  # written before a loop, read inside
    left: bool = False  # written inside a loop, read after it
    branched: bool = False  # into or out of a branch of a conditional
    once: frozenset[str] = frozenset()  # loops whose first iteration alone reads it: their start values


@dataclass(frozen=True, slots=True)
class Flow:
    """A module with its kernels (`Kernel.name`s) and the places from which each computation is entered."""

    module: hlo.Module
    kernels: frozenset[str]
    callers: dict[str, tuple[Node, ...]]

    def instruction(self, node: Node) -> hlo.Instruction:
        return self.module.computations[node[0]].instructions[node[1]]

    def origins(self, node: Node, path: Path = ()) -> tuple[Origin, ...]:
        """The kernels that may have written element `path` of the value of `node`, in the order found."""
        return tuple(here for here in self._ends(node, path) if here.node[1] in self.kernels)

    def inputs(self, node: Node, path: Path = ()) -> frozenset[int]:
        """The numbers of the program's arguments that element `path` of the value of `node` may be."""
        ends = [(here.node[0], self.instruction(here.node)) for here in self._ends(node, path)]
        entry = self.module.entry
        return frozenset(int(end.literal) for name, end in ends if name == entry and end.opcode == "parameter")

    def _ends(self, node: Node, path: Path) -> Iterator[Origin]:
        """The kernels, inputs and constants that a value leads back to."""
        seen: set[tuple[Node, Path]] = set()
        todo = deque([Origin(node, path)])
        while todo:
            here = todo.popleft()
            if (here.node, here.path) in seen:
                continue
            seen.add((here.node, here.path))
            before = [] if here.node[1] in self.kernels else [*self._back(here)]
            todo.extend(before)
            if not before:
                yield here

    def _back(self, here: Origin) -> Iterator[Origin]:
        """One step back from an instruction that is no kernel; nothing where the value is an input or a constant."""
        instruction = self.instruction(here.node)
        other_name = same_value(instruction, here.path)
        if other_name is not None:
            yield _at(here, *other_name)
            return
        match instruction.opcode:
            case "tuple":
                yield from (_at(here, name, ()) for name in instruction.operands)
            case "while" if self.is_invariant(here.node, here.path):
                yield _at(here, instruction.operands[0], here.path)
            case "while":
                yield replace(self._root(here, called(instruction, "body")), left=True)
            case "conditional":
                yield from (replace(self._root(here, branch), branched=True) for branch in branches(instruction))
            case "custom-call" if "ConcatBitcast" in instruction.attributes["custom_call_target"]:
                yield from (_at(here, name, here.path) for name in instruction.operands)  # parts, made side by side
            case "call" | "async-start":
                yield self._root(here, instruction.called[0])
            case "parameter":
                for caller in self.callers[here.node[0]]:
                    yield from self._enter(here, caller)
            case opcode if opcode.endswith("-done") and instruction.operands:
                yield self._finished(here, instruction.operands[0])

    def _enter(self, here: Origin, caller: Node) -> Iterator[Origin]:
        """From a parameter out to what the caller passes, and, in a loop, to what the last iteration left."""
        instruction = self.instruction(caller)
        outside = replace(here, node=caller)
        match instruction.opcode:
            case "while":
                start = replace(_at(outside, instruction.operands[0], here.path), entered=True)
                if self.is_invariant(caller, here.path):
                    yield start
                else:
                    yield replace(self._root(here, called(instruction, "body")), carried=True)
                    yield replace(start, once=here.once | {caller[1]})
            case "conditional":
                number = 1 + branches(instruction).index(here.node[0])
                yield replace(_at(outside, instruction.operands[number], here.path), branched=True)
            case _:  # call, or the start of an asynchronous one
                number = int(self.instruction(here.node).literal)
                yield _at(outside, instruction.operands[number], here.path)

    def _finished(self, here: Origin, start: str) -> Origin:
        """From the end of an asynchronous pair to its start, whose result is (operands, result, context), and for a
        copy (result, operand, context)."""
        instruction = self.instruction((here.node[0], start))
        if instruction.shape.dtype != "tuple" or instruction.opcode in ("recv", "async-start"):
            return _at(here, start, here.path)
        return _at(here, start, (0 if instruction.opcode == "copy-start" else 1, *here.path))

    def is_invariant(self, loop: Node, path: Path) -> bool:
        """Whether every iteration of the while `loop` hands element `path` of its carry on as it got it."""
        return is_handed_on(self.module, self.instruction(loop), path)

    def _root(self, here: Origin, computation: str) -> Origin:
        return replace(here, node=(computation, self.module.computations[computation].root))


def is_handed_on(module: hlo.Module, loop: hlo.Instruction, path: Path) -> bool:
    """Whether every iteration of the while `loop` hands element `path` of its carry on as it got it."""
    computation = module.computations[called(loop, "body")]
    here, at = computation.root, path
    while True:
        instruction = computation.instructions[here]
        other_name = same_value(instruction, at)
        if other_name is not None:
            here, at = other_name
        elif instruction.opcode == "while" and is_handed_on(module, instruction, at):
            here = instruction.operands[0]
        else:
            return instruction.opcode == "parameter" and at == path


def flow(module: hlo.Module, kernels: Collection[str]) -> Flow:
    """The flow of `module`, in which `kernels` are the names of the instructions that do work."""
    callers = {name: tuple(_entered_from(module, name)) for name in module.computations}
    return Flow(module, frozenset(kernels), callers)


def _entered_from(module: hlo.Module, computation: str) -> Iterator[Node]:
    """The control flow that runs a computation; none of a fusion's body, nor of a reducer."""
    for caller, instruction in module.callers(computation):
        if instruction.opcode in ("while", "conditional", "call") or instruction.opcode.endswith("-start"):
            yield caller, instruction.name


def called(instruction: hlo.Instruction, role: str) -> str:
    """The computation that `instruction` names in the attribute `role`: body, condition, calls, to_apply."""
    return hlo.names(instruction.attributes[role])[0]


def branches(instruction: hlo.Instruction) -> tuple[str, ...]:
    """The branch computations of a conditional, in the order of its operands after the first."""
    if "true_computation" in instruction.attributes:
        return called(instruction, "true_computation"), called(instruction, "false_computation")
    return instruction.called


def same_value(instruction: hlo.Instruction, path: Path) -> tuple[str, Path] | None:
    """The operand, and the place in it, of which element `path` of `instruction` is only another name."""
    match instruction.opcode:
        case "get-tuple-element":
            return instruction.operands[0], (int(instruction.attributes["index"]), *path)
        case "tuple" if path:
            return instruction.operands[path[0]], path[1:]
        case opcode if opcode in SAME_VALUE:
            return instruction.operands[0], path
    return None


def written_under(part: hlo.Computation, name: str, path: Path = ()) -> tuple[Node, Path]:
    """The instruction of a computation that made a value, whatever it is called afterwards, and the place in it."""
    while other := same_value(part.instructions[name], path):
        name, path = other
    return (part.name, name), path


def leaves(shape: hlo.Shape, path: Path = ()) -> Iterator[tuple[Path, hlo.Shape]]:
    """Every array in `shape`, with its place."""
    if shape.dtype != "tuple":
        yield path, shape
        return
    for number, part in enumerate(shape.parts):
        yield from leaves(part, (*path, number))


def element(shape: hlo.Shape, path: Path) -> hlo.Shape:
    """The part of `shape` at `path`."""
    for number in path:
        shape = shape.parts[number]
    return shape


def _at(here: Origin, name: str, path: Path) -> Origin:
    return replace(here, node=(here.node[0], name), path=path)
