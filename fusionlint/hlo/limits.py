"""What a compilation cannot know, said once, and only to programs that it matters to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel, target

_DOTS = frozenset({"dot", "ragged-dot", "scaled-dot"})


def limits(module: hlo.Module, every: Sequence[Kernel], platform: str, attached: bool) -> tuple[str, ...]:
    """One sentence for each thing that the report on `module` cannot know; `attached`: compiled on the device itself.
    `platform` is "cpu", "cuda" or "tpu"."""
    if platform == "tpu":
        return ("XLA:TPU gives no reasons for what it did not fuse: the causes are read off the program",)
    if platform != "cuda":
        return ()
    opcodes = {opcode for kernel in every for opcode in kernel.opcodes}
    return tuple(_without_device(opcodes) if not attached else ()) + tuple(_untimed(module, every))


def _without_device(opcodes: set[str]) -> Iterator[str]:
    if opcodes & _DOTS:
        yield "dot: without the device nothing is tuned; there cuBLAS may run it, with what follows as its epilogue"
    if "convolution" in opcodes:
        yield "convolution: without the device nothing is tuned; there cuDNN may take in what follows"
    if "sort" in opcodes:
        yield "sort: XLA's own kernel is shown; on the device CUB may sort numbers and pairs in other launches"


def _untimed(module: hlo.Module, every: Sequence[Kernel]) -> Iterator[str]:
    calls = [kernel for kernel in every if kernel.kind in ("library call", "custom call")]
    items = [module.computations[kernel.computation].instructions[kernel.name] for kernel in calls]
    names = dict.fromkeys(target(item) or item.opcode for item in items if item.opcode != "fusion")
    if names:
        yield f"{', '.join(names)}: nobody models the time of this code; taken for its bytes, as one launch each"
