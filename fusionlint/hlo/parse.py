"""HLO text -> Module. Text is the one interface that spans jax versions and covers dumps from other machines.

One line is one instruction. The grammar is regular but for balanced brackets (tuple shapes, JSON in backend_config),
which one compiled pattern of bounded depth follows in C: a module of 100 000 instructions is read in under 2.5 s.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from fusionlint.hlo.frames import Frame as Frame
from fusionlint.hlo.frames import Stacks, read_metadata, read_tables


class HloSyntaxError(ValueError):
    """Text that is not HLO. The message is one line and names the line number."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array shape (`dtype`, `dims`) or, where dtype is "tuple", a tuple of `parts`.

    A dynamic extent counts as its bound, an unbounded one as 0. `memory_space` is the S(n) of the layout: 0 is the
    device's main memory, 5 the host's; on TPU 1 is VMEM, so such a value never reaches HBM.
    """

    dtype: str
    dims: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    memory_space: int = 0

    @property
    def is_on_host(self) -> bool:
        return self.memory_space == 5

    @property
    def is_on_chip(self) -> bool:
        return self.memory_space not in (0, 5)

    @property
    def nbytes(self) -> int:
        """Bytes of the value, without padding: sub-byte types are packed and rounded up over the array."""
        if self.dtype == "tuple":
            return sum(part.nbytes for part in self.parts)
        return (prod(self.dims) * _bits(self.dtype) + 7) // 8


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction. `operands`, `users` and `called` are names; `stack` is innermost first, user frames only."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...]
    users: tuple[str, ...]
    called: tuple[str, ...]  # computations: fusion bodies, while condition and body, branches, reducers
    attributes: Mapping[str, str]  # as printed: kind, custom_call_target, backend_config, condition, body, ...
    op_name: str
    stack: tuple[Frame, ...]
    is_root: bool
    literal: str = ""  # a parameter's number, a constant's value as printed (XLA elides big ones: "{...}")


@dataclass(frozen=True, slots=True)
class Computation:
    name: str
    instructions: Mapping[str, Instruction]  # in printed order
    root: str

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters, by number."""
        found = (item for item in self.instructions.values() if item.opcode == "parameter")
        return tuple(sorted(found, key=lambda item: int(item.literal)))


@dataclass(frozen=True)
class Module:
    name: str
    entry: str
    computations: Mapping[str, Computation]  # in printed order
    donated: frozenset[int] = frozenset()  # the numbers of the arguments whose memory takes a result
    devices: int = 1  # that run it at once, each its part
    mesh: Mapping[str, int] = field(default_factory=dict)  # their axes, where it is known how the program calls them

    def body(self, item: Instruction) -> Computation | None:
        """The computation that a fusion runs; None for anything else."""
        return self.computations[item.called[0]] if item.opcode == "fusion" else None

    def work_of(self, item: Instruction) -> Collection[Instruction]:
        """What a kernel does: the instructions of a fusion, any other itself."""
        body = self.body(item)
        return body.instructions.values() if body else (item,)

    def every(self, opcode: str) -> Sequence[Instruction]:
        """The instructions of that kind, in all computations."""
        return self._by_opcode.get(opcode, ())

    @property
    def opcodes(self) -> Set[str]:
        """The kinds of its instructions."""
        return self._by_opcode.keys()

    def callers(self, name: str) -> Sequence[tuple[str, Instruction]]:
        """Who runs the computation `name`: each instruction, behind the computation that it stands in."""
        return self._callers.get(name, ())

    @cached_property
    def _callers(self) -> Mapping[str, Sequence[tuple[str, Instruction]]]:
        found: defaultdict[str, list[tuple[str, Instruction]]] = defaultdict(list)
        for part in self.computations.values():
            for item in part.instructions.values():
                for called in item.called:
                    found[called].append((part.name, item))
        return dict(found)

    @cached_property  # a rule asks for each barrier
    def _by_opcode(self) -> Mapping[str, Sequence[Instruction]]:
        found: defaultdict[str, list[Instruction]] = defaultdict(list)
        for part in self.computations.values():
            for item in part.instructions.values():
                found[item.opcode].append(item)
        return dict(found)


def parse(text: str) -> Module:
    """Read one HLO module, in the text format of any jaxlib from 0.4.38 on.

    Raises HloSyntaxError, which names the line, for text that is not HLO or that ends too early.
    """
    # Not splitlines(): a string may hold a form feed or U+2028 as it is.
    lines = text.split("\n")
    name, start = _module_name(lines)
    head = lines[start - 1]
    donated = frozenset(int(number) for number in _DONATED.findall(head))
    devices = math.prod(int(number) for number in _DEVICES.findall(head))
    stacks, start = read_tables(lines, start)
    reader = _Reader(stacks)
    computations: dict[str, Computation] = {}
    entry = ""
    for header, first, end in _blocks(lines, start):
        computation = _computation(header[2], lines, range(first, end), reader)
        computations[computation.name] = computation
        if header[1]:
            entry = computation.name
    if not entry:
        raise HloSyntaxError(f"line {len(lines)}: the text ends and there was no ENTRY computation")
    _check_calls(computations, lines)
    return Module(name, entry, computations, donated, devices)


# Patterns -------------------------------------------------------------------------------------------------------------

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'


def _balanced(opening: str, closing: str, extra: str, depth: int) -> str:
    """A pattern for the inside of brackets, nested up to `depth`. `extra` is skipped whole (strings).

    Written as an unrolled loop, so that no text makes it backtrack.
    """
    plain = f"[^{opening}{closing}{chr(34) if extra else ''}]*"
    inside = plain
    for _ in range(depth):
        nested = f"{opening}{inside}{closing}"
        inside = f"{plain}(?:(?:{extra}{nested}){plain})*"
    return inside


_PARENS = _balanced(r"\(", r"\)", "", 10)
_BRACES = r"\{" + _balanced(r"\{", r"\}", _STRING + "|", 16) + r"\}"
_NAME = r"[\w.\-]+"

_MODULE = re.compile(rf"HloModule\s+({_NAME})")
_DEVICES = re.compile(r", (?:num_partitions|replica_count)=(\d+)")
# Of input_output_alias={ {1}: (0, {}, may-alias) }.
_DONATED = re.compile(r"\}: \((\d+), \{[\d, ]*\}, (?:may|must)-alias\)")
_HEADER = re.compile(rf"(ENTRY\s+)?%?({_NAME})\s*(?:\(.*\)\s*->\s*.*)?\{{\s*$")
_INSTRUCTION = re.compile(rf"\s*(ROOT\s+)?%?({_NAME}) = (\({_PARENS}\)|[^\s(]\S*) ([a-z][\w\-]*)\(({_PARENS})\)(.*)$")
_PLAIN = r'[^,{"\[(]*'
_ATTRIBUTE = re.compile(rf",\s*({_NAME})=({_PLAIN}(?:(?:{_STRING}|{_BRACES}|\[[^\]]*\]|\({_PARENS}\)){_PLAIN})*)")
_OPERAND = re.compile(rf"%({_NAME})")
_COMMENT = re.compile(r"/\*.*?\*/")
_WIDTH = re.compile(r"[a-z]+(\d+)")
_BRACKETS = re.compile(rf"\({_PARENS}\)|{_BRACES}|\[[^\]]*\]")
_PART = re.compile(rf"(?:[^,({{\[]|{_BRACKETS.pattern})+")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{(.*)\})?$")
_MEMORY_SPACE = re.compile(r"S\((\d+)\)")
_LITERALS = frozenset(["parameter", "constant"])
_CALLS = {
    *("calls", "to_apply", "condition", "body", "branch_computations", "true_computation", "false_computation"),
    *("called_computations", "select", "scatter"),
}

# Reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reader:
    """What repeats all over a text, read once: source stacks by id, shapes and metadata by their text."""

    stacks: Stacks
    shapes: dict[str, Shape] = field(default_factory=dict)
    metadata: dict[str, tuple[str, tuple[Frame, ...]]] = field(default_factory=dict)

    def shape(self, text: str, line: int) -> Shape:
        if text not in self.shapes:
            self.shapes[text] = _shape(text, line)
        return self.shapes[text]

    def origin(self, text: str) -> tuple[str, tuple[Frame, ...]]:
        if text not in self.metadata:
            self.metadata[text] = read_metadata(text, self.stacks)
        return self.metadata[text]


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    match: re.Match[str]
    operands: tuple[str, ...]


def _module_name(lines: Sequence[str]) -> tuple[str, int]:
    for number, line in enumerate(lines):
        if found := _MODULE.match(line):
            return found[1], number + 1
        if line.strip() and not line.startswith("//"):
            raise HloSyntaxError(f"line {number + 1}: not HLO: expected 'HloModule', found {line.strip()[:40]!r}")
    raise HloSyntaxError(f"line {len(lines)}: not HLO: the text is empty")


def _blocks(lines: Sequence[str], start: int) -> Iterator[tuple[re.Match[str], int, int]]:
    """The header of each computation and the numbers of its first line and of the line that closes it."""
    number = start
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.strip():
            continue
        header = _HEADER.match(line)
        if not header:
            raise HloSyntaxError(f"line {number}: expected a computation, found {line.strip()[:40]!r}")
        first = number
        while number < len(lines) and not lines[number].startswith("}"):
            number += 1
        if number == len(lines):
            raise HloSyntaxError(f"line {number}: the text ends inside computation {header[2]!r}")
        yield header, first, number
        number += 1


def _computation(name: str, lines: Sequence[str], numbers: range, reader: _Reader) -> Computation:
    found: dict[str, _Line] = {}
    users: dict[str, dict[str, None]] = {}
    for number in numbers:
        line = lines[number]
        match = _INSTRUCTION.match(line)
        if match:
            operands = _operands(match[4], match[5])
            found[match[2]] = _Line(number + 1, match, operands)
            for operand in operands:
                users.setdefault(operand, {})[match[2]] = None
        elif line.strip():
            raise HloSyntaxError(f"line {number + 1}: expected an instruction, found {line.strip()[:40]!r}")
    if not found:
        raise HloSyntaxError(f"line {numbers.stop + 1}: computation {name!r} is empty")
    for operand in users.keys() - found.keys():
        line_number = found[next(iter(users[operand]))].number
        raise HloSyntaxError(f"line {line_number}: computation {name!r} does not define {operand!r}")
    instructions = {key: _instruction(line, tuple(users.get(key, ())), reader) for key, line in found.items()}
    # Without a ROOT the last one is the root: so says XLA's own parser.
    root = next((key for key, item in instructions.items() if item.is_root), list(found)[-1])
    return Computation(name, instructions, root)


def _instruction(line: _Line, users: tuple[str, ...], reader: _Reader) -> Instruction:
    root, name, shape, opcode, inside, rest = line.match.groups()
    attributes = dict(_ATTRIBUTE.findall(rest))
    # findall passes over what it cannot read: then the parts (", key=value") do not add up to the whole.
    if sum(len(key) + len(value) + 3 for key, value in attributes.items()) != len(rest.rstrip()):
        raise HloSyntaxError(f"line {line.number}: expected attributes of {name!r}, found {rest.strip()[:40]!r}")
    op_name, stack = reader.origin(attributes.get("metadata", ""))
    return Instruction(
        name=name,
        opcode=opcode,
        shape=reader.shape(shape, line.number),
        operands=line.operands,
        users=users,
        called=tuple(callee for key in attributes if key in _CALLS for callee in names(attributes[key])),
        attributes=attributes,
        op_name=op_name,
        stack=stack,
        is_root=root is not None,
        literal=inside if opcode in _LITERALS else "",
    )


def names(text: str) -> tuple[str, ...]:
    """The names in an attribute that names one computation or instruction, or several in braces."""
    words = _COMMENT.sub("", text).strip("{}").split(",")
    return tuple(word.strip().lstrip("%") for word in words if word.strip())


def _operands(opcode: str, inside: str) -> tuple[str, ...]:
    if not inside or opcode in _LITERALS:
        return ()
    if "%" in inside:
        return tuple(_OPERAND.findall(inside))
    # Dumps print names without a percent sign; 0.4.x puts each operand's shape before it.
    words = _COMMENT.sub("", _BRACKETS.sub("", inside)).split(",")
    return tuple(word.split()[-1] for word in words if word.strip())


def _shape(text: str, line: int) -> Shape:
    text = _COMMENT.sub("", text).strip()
    if text.startswith("("):
        return Shape("tuple", parts=tuple(_shape(part, line) for part in _PART.findall(text[1:-1])))
    if text.startswith("b("):  # a buffer: memory that is written in place
        return _shape(text[2:-1], line)
    array = _ARRAY.match(text)
    if not array:
        raise HloSyntaxError(f"line {line}: expected a shape, found {text[:40]!r}")
    space = _MEMORY_SPACE.search(array[3] or "")
    return Shape(array[1], _dims(array[2]), memory_space=int(space[1]) if space else 0)


def _dims(text: str) -> tuple[int, ...]:
    extents = (word.strip().removeprefix("<=") for word in text.split(",") if word.strip())
    return tuple(int(extent) if extent.isdigit() else 0 for extent in extents)


def _bits(dtype: str) -> int:
    """Bits of one element: pred is a byte, f8e4m3fn and the like say it in front, c64 and bf16 at the end."""
    if dtype == "pred":
        return 8
    width = _WIDTH.match(dtype)
    return int(width[1]) if width else 0  # token and opaque have no bytes


def _check_calls(computations: Mapping[str, Computation], lines: Sequence[str]) -> None:
    for computation in computations.values():
        for item in computation.instructions.values():
            for callee in item.called:
                if callee not in computations:
                    number = next(n for n, line in enumerate(lines, 1) if f"{item.name} = " in line and callee in line)
                    raise HloSyntaxError(f"line {number}: the text does not define the computation {callee!r}")
