"""What a compilation cannot know, said once, and only to programs that it matters to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.cost import result_shape
from fusionlint.hlo.kernels import Kernel, target

_SENT = "what devices send each other is counted by its bytes in memory: the links between them are not modelled"
_OFFLOADED = "what goes into the host's memory, or out of it, is timed as if it stayed on the device"
_DOTS = frozenset({"dot", "ragged-dot", "scaled-dot"})


def limits(module: hlo.Module, every: Sequence[Kernel], platform: str, attached: bool) -> tuple[str, ...]:
    """One sentence for each thing that the report on `module` cannot know; `attached`: compiled on the device itself.
    `platform` is "cpu", "cuda" or "tpu"."""
    moved = tuple(_moved(module, every))
    if platform == "tpu":
        return (*moved, "XLA:TPU gives no reasons for what it did not fuse: the causes are read off the program")
    if platform != "cuda":
        return moved
    done = {opcode for kernel in every for opcode in kernel.opcodes}
    calls = _calls(module, every)
    without_device = () if attached else tuple(_without_device(done | {_routine(call) for call in calls}))
    return moved + without_device + tuple(_untimed(calls))


def _moved(module: hlo.Module, every: Sequence[Kernel]) -> Iterator[str]:
    if any(kernel.kind == "collective" for kernel in every):
        yield _SENT
    if any(_is_offloaded(module, kernel) for kernel in every):
        yield _OFFLOADED


def _is_offloaded(module: hlo.Module, kernel: Kernel) -> bool:
    steps = module.computations[kernel.computation].instructions
    item = steps[kernel.name]
    shapes = (result_shape(item), *(steps[name].shape for name in item.operands))
    return any(shape.is_on_host for shape in shapes)


def _calls(module: hlo.Module, every: Sequence[Kernel]) -> tuple[str, ...]:
    """The library's and the user's routines that XLA calls whole, by their names."""
    found = (kernel for kernel in every if kernel.kind in ("library call", "custom call"))
    items = (module.computations[kernel.computation].instructions[kernel.name] for kernel in found)
    return tuple(dict.fromkeys(target(item) or item.opcode for item in items if item.opcode != "fusion"))


def _routine(call: str) -> str:
    """A convolution is a call of cuDNN already where no device has been seen, a dot of cuBLAS where one has."""
    return "convolution" if call.startswith("__cudnn$conv") else "dot" if "gemm" in call or "matmul" in call else call


def _without_device(done: set[str]) -> Iterator[str]:
    if done & _DOTS:
        yield "dot: without the device nothing is tuned; there cuBLAS may run it, with what follows as its epilogue"
    if "convolution" in done:
        yield "convolution: without the device nothing is tuned; there cuDNN may choose another algorithm and layout"
    if "sort" in done:
        yield "sort: XLA's own kernel is shown; on the device CUB may sort numbers and pairs in other launches"


def _untimed(calls: Sequence[str]) -> Iterator[str]:
    if calls:
        yield f"{', '.join(calls)}: nobody models the time of this code; taken for its bytes, as one launch each"
