"""XLA:GPU's own list of what it launches: its thunk sequence, and what that says beyond the optimized HLO.

Two facts are nowhere else. Some instructions are two launches: a sort or a triangular solve copies an operand first
that it may not overwrite. And several launches may be recorded into one CUDA graph (kCommandBuffer), which the host
launches at once. `as_launched` adds both to the kernels that were read off the HLO.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fusionlint.hlo.kernels import Kernel, Loop, launched, loops_around

# They run other thunks, or nothing.
CONTROL = frozenset({"kSequential", "kWhile", "kConditional", "kCommandBuffer"})
# One launch, though they print what they wrap as a thunk of its own.
WRAPPERS = frozenset({"kDynamicSliceFusion"})
# Launches in a row that XLA makes a CUDA graph of, as it is set, and what sets it to two.
A_GRAPH, GRAPHS_OF_TWO = 5, "--xla_gpu_graph_min_graph_size=2"
# The kinds of kernels that any graph takes; of a library's call that is not known here.
_IN_GRAPHS = frozenset({"loop", "input", "copy"})


@dataclass(frozen=True, slots=True)
class Thunk:
    """One thunk. `inside` are the instructions around it, outermost first, each with the part of it: ("while.9",
    "body"), ("cond.3", "branch_0"), ("", "") for a sequence; of a CUDA graph, its own name and ""."""

    number: int
    kind: str
    instruction: str  # the HLO instruction it runs; "" where the metadata name none
    inside: tuple[tuple[str, str], ...]
    graph: int | None  # which of the CUDA graphs, in order, it is, or was recorded into
    wrapped: bool  # printed inside a thunk that is one launch


@dataclass(slots=True)
class _Open:
    """A thunk whose inner thunks are being read."""

    indent: int
    thunk: Thunk
    part: str = field(default="")


_TOKEN = re.compile(r"(\d+): (k\w+)|^( *)(condition|body|\w*branch\w*):$", re.MULTILINE)
_METADATA = re.compile(
    r'^thunk_metadata \{\n  thunk_info \{\n(.*?)  \}\n  thunk_kind: "(\w+)"\n\}', re.MULTILINE | re.DOTALL
)
_ANNOTATION = re.compile(r'profile_annotation: "([^"]*)"')
_NUMBER = re.compile(r"thunk_id: (\d+)")


def read_thunks(sequence: str, metadata: str) -> tuple[Thunk, ...]:
    """The thunks of a `*.thunk_sequence*.txt` in order, outer ones before those inside, with their instructions from
    `*.thunk_metadata.txt`."""
    instructions = _instructions(metadata)
    stack: list[_Open] = []
    found: list[Thunk] = []
    graphs = 0
    part = ""
    for token in _TOKEN.finditer(sequence):
        if token[4]:
            part = token[4]
            continue
        indent = token.start() - (sequence.rfind("\n", 0, token.start()) + 1)
        if _is_glued(sequence, token):  # the first thunk of a sequence stands on the sequence's own line
            indent = stack[-1].indent + 2
        while stack and stack[-1].indent >= indent:
            stack.pop()
        if part and stack:
            stack[-1].part = part
        part = ""
        thunk = _thunk(int(token[1]), token[2], instructions, stack)
        if thunk.kind == "kCommandBuffer":  # XLA gives all of them one number
            thunk, graphs = replace(thunk, graph=graphs), graphs + 1
        found.append(thunk)
        stack.append(_Open(indent, thunk))
    return tuple(found)


def _is_glued(sequence: str, token: re.Match[str]) -> bool:
    line = sequence[sequence.rfind("\n", 0, token.start()) + 1 : token.start()]
    return bool(line.strip())


def _thunk(number: int, kind: str, instructions: Mapping[tuple[int, str], str], stack: Sequence[_Open]) -> Thunk:
    around = [outer for outer in stack if outer.thunk.kind in ("kWhile", "kConditional")]
    graph = next((outer.thunk.graph for outer in stack if outer.thunk.kind == "kCommandBuffer"), None)
    return Thunk(
        number=number,
        kind=kind,
        instruction=instructions.get((number, kind), ""),
        inside=tuple((outer.thunk.instruction, outer.part) for outer in around),
        graph=graph,
        wrapped=any(outer.thunk.kind in WRAPPERS for outer in stack),
    )


def _instructions(metadata: str) -> dict[tuple[int, str], str]:
    found = {}
    for info, kind in _METADATA.findall(metadata):
        name, number = _ANNOTATION.search(info), _NUMBER.search(info)
        if name:
            found[int(number[1]) if number else 0, kind] = name[1]
    return found


def launches(thunks: Sequence[Thunk], around: Sequence[Loop]) -> Iterator[Thunk]:
    """The thunks that are launched, in order: of a loop in `around` with a known trip count the body alone."""
    known = {loop.name for loop in around if loop.trip_count is not None}
    for thunk in thunks:
        unused = any(name in known and part == "condition" for name, part in thunk.inside)
        if thunk.kind not in CONTROL and not thunk.wrapped and not unused:
            yield thunk


def as_launched(every: Sequence[Kernel], thunks: Sequence[Thunk]) -> tuple[Kernel, ...]:
    """`every` kernel with the CUDA graph it is part of, and, before an instruction that copies an operand first, a
    kernel of that name and of kind "copy", which is also the kind of a fusion that a copy alone is launched for: a
    slice that lies in one piece. As they are where `thunks` is empty."""
    own = [thunk for thunk in thunks if not thunk.wrapped]
    times = Counter(thunk.instruction for thunk in own if thunk.kind == "kCopy")
    copies = times.keys() - {thunk.instruction for thunk in own if thunk.kind != "kCopy"}
    graphs = {thunk.instruction: thunk.graph for thunk in thunks}
    found = []
    for kernel in every:
        known = replace(kernel, graph=graphs.get(kernel.name))
        if kernel.name in copies:
            known = replace(known, kind="copy")
        elif kernel.kind != "copy":
            found += [_copy_before(known)] * times[kernel.name]
        found.append(known)
    return tuple(found)


def host_launches(every: Sequence[Kernel]) -> int:
    """How often the host launches something in one run of `every` kernel: a CUDA graph once for all that is in it."""
    alone = [kernel for kernel in every if kernel.graph is None]
    graphs = {kernel.graph: kernel for kernel in every if kernel.graph is not None}  # one of each: all run as often
    return launched([*alone, *graphs.values()])


def one_by_one(every: Sequence[Kernel], around: Sequence[Loop]) -> Iterator[int]:
    """Of each innermost loop whose step is launched one by one how many launches that is: too few for a CUDA graph,
    where nothing else keeps them from it."""
    outer = {loop.parent for loop in around}
    for loop in around:
        inside = [kernel for kernel in every if kernel.loop == loop.name]
        could = all(kernel.graph is None and kernel.kind in _IN_GRAPHS and not kernel.branches for kernel in inside)
        if loop.name not in outer and 2 <= len(inside) < A_GRAPH and could:
            yield len(inside)


def loops_as_launched(around: Sequence[Loop], every: Sequence[Kernel]) -> tuple[Loop, ...]:
    """`around` with the launches of the kernels that `as_launched` found."""
    by_name = {loop.name: loop for loop in around}

    def counted(loop: Loop) -> Loop:
        inside = [(kernel, times) for kernel in every if (times := _times_inside(kernel, loop.name, by_name))]
        copies = [(kernel, times) for kernel, times in inside if kernel.kind == "copy"]
        return replace(loop, launches_per_iteration=_launched(inside), copies_per_iteration=_launched(copies))

    return tuple(counted(loop) for loop in around)


def _launched(counted: Sequence[tuple[Kernel, int]]) -> int:
    return launched(replace(kernel, launches=times) for kernel, times in counted)


def _times_inside(kernel: Kernel, loop: str, loops: Mapping[str, Loop]) -> int:
    """How often the kernel is launched in one iteration of the loop; 0 outside. Where a loop in between has no known
    trip count, per iteration of that one."""
    times, known = 1, True
    for around in loops_around(kernel, loops):
        if around.name == loop:
            return times
        known = known and around.trip_count is not None
        times *= (around.trip_count or 0) if known else 1
    return 0


def _copy_before(kernel: Kernel) -> Kernel:
    """What is copied is what the instruction then overwrites."""
    size = kernel.bytes_written
    return replace(kernel, kind="copy", opcodes=("copy",), bytes_read=size, bytes_written=size, microseconds=None)
