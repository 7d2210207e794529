"""Module -> [Barrier]: where a value crosses memory between two kernels, and why.

The program's inputs are not barriers (nothing in the program wrote them), nor are results that are only returned, nor
buffers that a loop fills in place without reading them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from fusionlint.branches import Branches
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.again import Again, made_again
from fusionlint.hlo.barrier_lines import Value, is_of_gradient, stack_of
from fusionlint.hlo.causes import COPIES, DOTS, Cause, Crossing, blame
from fusionlint.hlo.collectives import exchange
from fusionlint.hlo.flow import Flow, Node, Origin, Path, flow, leaves
from fusionlint.hlo.in_place import conditional_of_copy, copied_for_the_caller, made_anew
from fusionlint.hlo.kernels import Kernel, Loop, kernels, loops, loops_around
from fusionlint.hlo.lost import Lost
from fusionlint.hlo.one_by_one import operation_of
from fusionlint.hlo.stacked import Stacked, stacked_again
from fusionlint.hlo.turns import turns
from fusionlint.hlo.verdicts import Verdict
from fusionlint.hlo.work import bytes_touched, made, updates_in_place, used, value_shape


@dataclass(frozen=True, slots=True)
class Barrier:
    """A value that one kernel writes to memory and others read back."""

    value: str  # the instruction whose result crosses memory
    computation: str
    writer: str  # kernel name
    readers: tuple[str, ...]  # kernel names, in program order
    bytes: int  # of the value, as far as it is new and a reader touches it, per crossing; of a copy all, once
    crossings: int  # how often: trip counts multiplied, a loop of unknown length around the reader alone counted once
    per_iteration: bool  # the writer is in a loop of unknown length: `crossings` and `launches` are per iteration of it
    launches: int  # of the writer: what would be saved if it were fused into its readers
    cause: Cause
    detail: str  # the custom call's target, the library, ...; "" where the cause says it all
    opcodes: tuple[str, ...]  # the work that made the value
    verdict: Verdict | None
    stack: tuple[hlo.Frame, ...]  # call path to the line, innermost first
    on_chip: bool = False  # a TPU keeps the value in its own memory, off HBM
    branches: Branches = ()  # of the writer
    of_gradient: bool = False  # the work at the line is that of its gradient, which jax made
    again: Again | None = None  # the loop in whose every turn the writer does the same, with all of it that does
    stacked: Stacked | None = None  # what the writer stacks, where it is the same in every turn; nobody may read it
    returned: int = 0  # how many of the program's results the value is, as it is or copied whole


@dataclass(frozen=True, slots=True)
class _Reading:
    """One kernel that reads a value, with the way the value took to it."""

    reader: Kernel
    number: int  # of the operand
    origin: Origin
    bytes: int
    crossings: int


def barriers(
    module: hlo.Module, verdicts: Mapping[str, Verdict] | None = None, before: Lost | None = None
) -> tuple[Barrier, ...]:
    """Every barrier of `module`, in the order of the writers; `verdicts` are XLA's, by the name of the producer, and
    `before` knows the lines of work that lost its own."""
    launched = kernels(module)
    by_name = {kernel.name: kernel for kernel in launched}
    around = loops(module)
    names = flow(module, by_name.keys())
    each = turns(names, around)
    again = made_again(launched, each)
    stacked = stacked_again(names, around, each)
    returned = {(origin.node, origin.path) for origin in _results(names)}
    kept = {*copied_for_the_caller(names, returned)}
    times = Counter(_uncopied(names, origin) for origin in _results(names))
    found = []
    for (node, path), readings in _readings(names, launched, around).items():
        writer = by_name[node[1]]
        value = Value(names, node, path, (node, path) in returned and writer.loop is None, (node, path) in kept)
        barrier = _barrier(value, writer, readings, verdicts or {}, before or Lost())
        same = stacked.pop((node, path), None)
        found.append(replace(barrier, again=again.get(node), stacked=same, returned=times[node, path]))
    found.extend(_only_stacked(names, by_name[node[1]], path, one) for (node, path), one in stacked.items())
    position = {kernel.name: number for number, kernel in enumerate(launched)}
    return tuple(sorted(found, key=lambda barrier: position[barrier.writer]))


def _only_stacked(names: Flow, writer: Kernel, path: Path, stacked: Stacked) -> Barrier:
    """Of what nobody reads in the program."""
    node = writer.computation, writer.name
    return Barrier(
        value=_name(Value(names, node, path, returned=False, kept=False)),
        computation=writer.computation,
        writer=writer.name,
        readers=(),
        bytes=stacked.shape.nbytes,
        crossings=writer.launches,
        per_iteration=writer.per_iteration,
        launches=writer.launches,
        cause="loop carry",
        detail="stacked by the loop",
        opcodes=writer.opcodes,
        verdict=None,
        stack=stacked.stack,
        branches=writer.branches,
        stacked=stacked,
    )


def _results(names: Flow) -> Iterator[Origin]:
    entry = names.module.computations[names.module.entry]
    for path, _ in leaves(entry.instructions[entry.root].shape):
        yield from names.origins((entry.name, entry.root), path)


def _uncopied(names: Flow, origin: Origin) -> tuple[Node, Path]:
    """The value that a result is, or is a copy of; of copies that a loop hands round, one of them."""
    seen: set[Node] = set()
    while names.instruction(origin.node).opcode in COPIES and (operands := names.instruction(origin.node).operands):
        before = names.origins((origin.node[0], operands[0]))
        seen.add(origin.node)
        if len(before) != 1 or before[0].node in seen:
            break
        origin = before[0]
    return origin.node, origin.path


def _readings(
    names: Flow, launched: Sequence[Kernel], around: Sequence[Loop]
) -> dict[tuple[Node, Path], list[_Reading]]:
    """Who reads what: by the kernel that wrote it and the element of its result."""
    loops = {loop.name: loop for loop in around}
    writers = {(writer.computation, writer.name): writer for writer in launched}
    found: defaultdict[tuple[Node, Path], list[_Reading]] = defaultdict(list)
    for reader in launched:
        node = (reader.computation, reader.name)
        for number, origin in _reads(names, node, writers):
            writer = writers[origin.node]
            times = _crossings(writer, reader, origin.once, loops)
            size = min(
                bytes_touched(names.module, node, number),
                # A loop writes the value slice by slice, and what reads it afterwards reads all of them.
                made_anew(names, origin, writers) * max(1, writer.launches // times),
                value_shape(names.module, origin.node, origin.path).nbytes,
            )
            if writer.kind == "copy":  # without it the readers would still read what is copied
                size, times = value_shape(names.module, origin.node, origin.path).nbytes, writer.launches
            found[origin.node, origin.path].append(_Reading(reader, number, origin, size, times))
    return found


def _crossings(writer: Kernel, reader: Kernel, once: Collection[str], loops: Mapping[str, Loop]) -> int:
    """How often `reader` reads what `writer` writes, each time that the innermost loop of unknown length around the
    writer goes round (one that is around the reader alone counts once); `once` are loops whose first iteration alone
    reads it."""
    unknown = next((loop for loop in loops_around(writer, loops) if loop.trip_count is None), None)
    around = [*loops_around(reader, loops)]
    if unknown is not None and unknown not in around:
        return 1  # what the last iteration left
    inside = takewhile(lambda loop: loop != unknown, around)
    return math.prod(loop.trip_count or 1 for loop in inside if loop.name not in once)


def _reads(names: Flow, node: Node, writers: Mapping[Node, Kernel]) -> Iterator[tuple[int, Origin]]:
    """The operands of the kernel `node` that other kernels wrote. A loop's output buffer, which is filled and never
    read, is left out; not a copy that is made for it."""
    for number, operand in enumerate(names.instruction(node).operands):
        source = (node[0], operand)
        in_place = updates_in_place(names.module, node, number)
        for path, shape in leaves(names.instruction(source).shape):
            for origin in names.origins(source, path) if shape.dtype != "token" else ():
                around = origin.carried or origin.entered
                if not (in_place and around) or writers[origin.node].kind == "copy":
                    yield number, origin


def _barrier(
    value: Value, writer: Kernel, readings: Sequence[_Reading], verdicts: Mapping[str, Verdict], before: Lost
) -> Barrier:
    crossing = _crossing(value, writer, readings, verdicts)
    why = blame(crossing)
    readers = [reading.reader for reading in readings]
    dearest = max(readings, key=lambda reading: reading.bytes * reading.crossings)
    stack = stack_of(value, why, crossing, (writer, *readers), before)
    return Barrier(
        value=_name(value),
        computation=writer.computation,
        writer=writer.name,
        readers=tuple(dict.fromkeys(reader.name for reader in readers)),
        bytes=dearest.bytes,
        crossings=dearest.crossings,
        per_iteration=writer.per_iteration,
        launches=writer.launches,
        cause=why.cause,
        detail=why.detail,
        opcodes=tuple(dict.fromkeys(step.opcode for step in reversed(crossing.made))),
        verdict=crossing.verdict,
        stack=stack,
        on_chip=crossing.shape.is_on_chip,
        branches=writer.branches,
        of_gradient=is_of_gradient(value, why, crossing, stack),
    )


def _crossing(value: Value, writer: Kernel, readings: Sequence[_Reading], verdicts: Mapping[str, Verdict]) -> Crossing:
    module = value.names.module
    steps = made(module, value.node, value.path)
    uses = [  # behind the loop that the writer is in nothing can be fused with it, whatever it does with the value
        (reading.reader, step)
        for reading in readings
        if not reading.origin.left
        for step in used(module, (reading.reader.computation, reading.reader.name), reading.number)
    ]
    every = (*((writer, step) for step in steps), *uses)
    computation = module.computations[value.node[0]]
    items = (value.names.instruction((reading.reader.computation, reading.reader.name)) for reading in readings)
    writer_operands = value.names.instruction(value.node).operands
    producers = value.node[1], steps[0].name  # a verdict about an earlier step is about another value
    return Crossing(
        shape=value_shape(module, value.node, value.path),
        made=steps,
        used=tuple(step for _, step in uses),
        readers=len({reading.reader.name for reading in readings}),
        carried=any(reading.origin.carried for reading in readings),
        entered=any(reading.origin.entered for reading in readings),
        starts=frozenset(chain.from_iterable(reading.origin.once for reading in readings)),
        left=any(reading.origin.left for reading in readings),
        branched=any(reading.origin.branched for reading in readings),
        returned=value.returned,
        kept=value.kept,
        handed_on=bool(writer.branches) and bool(conditional_of_copy(module, value.node)),
        fetched=any(computation.instructions[name].shape.is_on_host for name in writer_operands),
        called=tuple(step for kernel, step in every if kernel.kind == "library call" or step.opcode not in DOTS),
        verdict=next((verdicts[name] for name in producers if name in verdicts), None),
        exchange=exchange(module, computation, value.names.instruction(value.node), items),
        loop_of=_loop_of_one(module, computation),
    )


def _loop_of_one(module: hlo.Module, computation: hlo.Computation) -> hlo.Instruction | None:
    """The loop whose turn the computation is, where XLA made it of one operation."""
    loops = (caller for _, caller in module.callers(computation.name) if caller.opcode == "while")
    return next((loop for loop in loops if operation_of(loop)), None)


def _name(value: Value) -> str:
    """The get-tuple-element that takes the value out of its kernel's tuple, where there is one."""
    computation = value.names.module.computations[value.node[0]]
    kernel = computation.instructions[value.node[1]]
    for name in kernel.users if value.path else ():
        user = computation.instructions[name]
        if user.opcode == "get-tuple-element" and user.attributes["index"] == str(value.path[0]):
            return name
    return kernel.name
