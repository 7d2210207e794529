"""Module -> [Kernel]: what is launched, in order, and how often."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fusionlint.branches import Branches, dearest
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.collectives import collective
from fusionlint.hlo.cost import traffic
from fusionlint.hlo.one_by_one import operation_of
from fusionlint.hlo.trips import trip_count


@dataclass(frozen=True, slots=True)
class Loop:
    """A while instruction. `trip_count` is None where the program does not tell it; then everything inside is counted
    per iteration. `parent` is the enclosing Loop's name."""

    name: str
    computation: str
    trip_count: int | None
    parent: str | None
    frame: hlo.Frame | None
    launches_per_iteration: int  # loops inside multiplied out, of a conditional the branch that launches most
    copies_per_iteration: int  # those of them that only copy


TimedBy = Literal["", "XLA's model", "bytes over bandwidth", "the roofline of products"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One working instruction outside fusion bodies. `kind` is XLA's fusion kind (loop, input, output, custom) or
    "library call", "custom call", "copy" (of a fusion that does nothing else, too), "collective", or the opcode of an
    unfused instruction."""

    name: str
    computation: str
    kind: str
    opcodes: tuple[str, ...]  # the distinct work inside, in order: what the kernel does
    launches: int  # product of the known trip counts of the loops around it
    loop: str | None  # the innermost enclosing Loop's name
    per_iteration: bool  # some enclosing trip count is unknown, so `launches` is per iteration of that loop
    bytes_read: int  # per launch
    bytes_written: int
    stack: tuple[hlo.Frame, ...]
    branches: Branches = ()
    graph: int | None = None  # XLA:GPU: the number of the CUDA graph that it is launched in
    microseconds: float | None = None  # per launch, the launch included; None where nothing is known
    timed_by: TimedBy = ""


# They name memory, or wait for it, and launch nothing.
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "domain"),
    *("opt-barrier", "optimization-barrier", "partition-id", "replica-id", "get-dimension-size"),
}
FREE_TARGETS = {"AllocateBuffer", "ConcatBitcast"}
_CONTROL = {"while", "conditional", "call"}
_COPIES = {"copy", "copy-start", "slice-start"}
_LIBRARY = {"dot", "ragged-dot", "scaled-dot", "convolution", "fft", "sort", "topk", "cholesky", "triangular-solve"}
_LIBRARY_TARGET = re.compile(
    r"(__)?(lapack|blas|cusolver|cublas|cudnn|cufft|hip|roc|miopen|onednn|ynn|cub\$|(gpu\$)?topk)", re.IGNORECASE
)
_LIBRARY_FUSION = re.compile(r'"kind":"__(ynn|xnn|onednn|cudnn|cublas)')


def kernels(module: hlo.Module) -> tuple[Kernel, ...]:
    """Every working instruction of the program, in schedule order.

    They stand in ENTRY, in `call`ed computations, in while bodies (and in the condition, where the trip count is
    unknown: with a known one XLA runs the body alone), and in each branch of a conditional, where `launches` holds if
    that branch is taken: `launched` adds up what really runs. Inside a loop of unknown trip count `launches` starts
    again at 1. An asynchronous pair counts once, at its start.
    """
    return tuple(
        _kernel(module, place, item) for place, item in _steps(module, _entry(module)) if _is_work(module, item)
    )


def loops(module: hlo.Module) -> tuple[Loop, ...]:
    """Every while instruction of the program, outer ones before those inside."""
    steps = _steps(module, _entry(module))
    return tuple(_loop(module, place, item) for place, item in steps if item.opcode == "while")


def launched(counted: Iterable[Kernel]) -> int:
    """Launches of one run of `counted`: of a conditional's branches only the one that launches most.

    A kernel with `per_iteration` counts as in one iteration of its loop.
    """
    return _launched((kernel.branches, kernel.launches) for kernel in counted)


def loops_around(kernel: Kernel, loops: Mapping[str, Loop]) -> Iterator[Loop]:
    """The loops that a kernel is launched in, by name in `loops`, the innermost first."""
    name = kernel.loop
    while name is not None:
        yield loops[name]
        name = loops[name].parent


def total(counted: Iterable[Kernel], each: Callable[[Kernel], float]) -> float:
    """The sum of `each` kernel's number; of a conditional's branches only the one with the greatest sum."""
    return math.fsum(dearest((kernel.branches, each(kernel)) for kernel in counted))


@dataclass(frozen=True, slots=True)
class _Place:
    """A computation whose instructions run on their own, and what is around it."""

    computation: hlo.Computation
    times: int = 1
    loop: str | None = None
    per_iteration: bool = False
    branches: Branches = ()
    stack: tuple[hlo.Frame, ...] = ()  # of the operation that XLA made the loop of, whose steps have none


def _entry(module: hlo.Module) -> _Place:
    return _Place(module.computations[module.entry])


def _steps(module: hlo.Module, place: _Place) -> Iterator[tuple[_Place, hlo.Instruction]]:
    for item in place.computation.instructions.values():
        yield place, item
        for inner in _inside(module, place, item):
            yield from _steps(module, inner)


def _inside(module: hlo.Module, place: _Place, item: hlo.Instruction) -> Iterator[_Place]:
    """The computations that control flow at `item` runs."""
    if item.opcode == "while":
        yield from _iteration(module, place, item)
    elif item.opcode == "conditional":
        for number, name in enumerate(item.called):
            branches = (*place.branches, (item.name, number))
            yield replace(place, computation=module.computations[name], branches=branches)
    elif item.opcode == "call" or (_wrapped(module, item) or item).opcode in _CONTROL:
        yield replace(place, computation=module.computations[item.called[0]])


def _iteration(module: hlo.Module, place: _Place, item: hlo.Instruction) -> Iterator[_Place]:
    condition, body = (module.computations[hlo.names(item.attributes[key])[0]] for key in ("condition", "body"))
    count = trip_count(module, place.computation, item)
    place = replace(place, stack=item.stack) if operation_of(item) else place
    if count is None:
        inside = replace(place, times=1, loop=item.name, per_iteration=True)
        yield replace(inside, computation=condition)
        yield replace(inside, computation=body)
    else:
        yield replace(place, computation=body, times=place.times * count, loop=item.name)


def _wrapped(module: hlo.Module, item: hlo.Instruction) -> hlo.Instruction | None:
    """What an asynchronous start runs, where that is a computation of its own."""
    if not item.opcode.endswith("-start") or "calls" not in item.attributes:
        return None
    inner = module.computations[item.called[0]]
    return inner.instructions[inner.root]


def _is_work(module: hlo.Module, item: hlo.Instruction) -> bool:
    if 0 in item.shape.dims:  # no element, nothing to launch a kernel for
        return False
    wrapped = _wrapped(module, item)
    if wrapped is not None:
        return wrapped.opcode not in _CONTROL
    if item.opcode == "custom-call":
        return target(item) not in FREE_TARGETS
    return not (item.opcode in _FREE or item.opcode in _CONTROL or item.opcode.endswith(("-done", "-update")))


def _kernel(module: hlo.Module, place: _Place, item: hlo.Instruction) -> Kernel:
    moved = traffic(module, place.computation, item)
    return Kernel(
        name=item.name,
        computation=place.computation.name,
        kind=_kind(module, item),
        opcodes=_opcodes(module, item),
        launches=place.times,
        loop=place.loop,
        per_iteration=place.per_iteration,
        bytes_read=moved.read,
        bytes_written=moved.written,
        stack=item.stack or place.stack,
        branches=place.branches,
    )


def _kind(module: hlo.Module, item: hlo.Instruction) -> str:
    item = _wrapped(module, item) or item
    if item.opcode in _COPIES or _opcodes(module, item) == ("copy",):
        return "copy"
    if is_library_call(item):
        return "library call"
    if item.opcode == "fusion":
        return item.attributes["kind"].removeprefix("k").lower()
    if collective(item):
        return "collective"
    return "custom call" if item.opcode == "custom-call" else item.opcode


def is_library_call(item: hlo.Instruction) -> bool:
    """Whether the instruction, standing alone, is a routine that XLA calls whole: a dot, FFT, sort, LAPACK's; or a
    fusion that XLA hands to a library whole, as XLA:CPU does with a dot (YNNPACK, XNNPACK, oneDNN)."""
    if item.opcode == "custom-call":
        return bool(_LIBRARY_TARGET.match(target(item)))
    if item.opcode == "fusion":
        return bool(_LIBRARY_FUSION.search(item.attributes.get("backend_config", "")))
    return item.opcode in _LIBRARY


def target(item: hlo.Instruction) -> str:
    """A custom call's target, "" for anything else."""
    return item.attributes.get("custom_call_target", "").strip('"')


def _opcodes(module: hlo.Module, item: hlo.Instruction) -> tuple[str, ...]:
    item = _wrapped(module, item) or item
    return tuple(dict.fromkeys(_work(module, item))) or ("copy",)  # a fusion of bitcasts alone


def _work(module: hlo.Module, item: hlo.Instruction) -> Iterator[str]:
    if body := module.body(item):  # Triton nests them
        for inner in body.instructions.values():
            yield from _work(module, inner)
    elif item.opcode not in _FREE:
        yield item.opcode.removesuffix("-start")


def _loop(module: hlo.Module, place: _Place, item: hlo.Instruction) -> Loop:
    once = [replace(inner, times=1) for inner in _iteration(module, place, item)]
    work = [(at, step) for inner in once for at, step in _steps(module, inner) if _is_work(module, step)]
    return Loop(
        name=item.name,
        computation=place.computation.name,
        trip_count=trip_count(module, place.computation, item),
        parent=place.loop,
        frame=item.stack[0] if item.stack else None,
        launches_per_iteration=_launched((at.branches, at.times) for at, step in work),
        copies_per_iteration=_launched((at.branches, at.times) for at, step in work if _kind(module, step) == "copy"),
    )


def _launched(counted: Iterable[tuple[Branches, int]]) -> int:
    return sum(dearest(counted))
