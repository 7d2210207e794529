"""Microseconds: of a kernel, of a program, and of what a barrier costs.

By XLA's own model where the optimized HLO carries its figures (GPU: `reification_cost`, the execution of one kernel,
asked for by `xla_gpu_collect_cost_model_stats`; TPU: `estimated_cycles`, with what starting a kernel takes), else bytes
over the target's memory bandwidth. Both know nothing of caches, of launches that overlap, or of the host.

A GPU's matrix products are the exception: of tiles that nothing has tuned XLA's model says 116 ms for what an H200 does
in 1.4. Theirs is the roofline, the longer of their bytes over bandwidth and their arithmetic over what the matrix units
do at most; beside the clock of an H200: docs/gpu.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.arithmetic import of_kernel
from fusionlint.hlo.barriers import Barrier
from fusionlint.hlo.cost import result_shape
from fusionlint.hlo.kernels import Kernel, total


@dataclass(frozen=True, slots=True)
class Rates:
    """What a target's costs are reckoned with: `bandwidth` of its memory in bytes per second, `launch_us` in
    microseconds per kernel, `clock_hz` where its compiler counts cycles, `matrix_flops` the operations of bf16 per
    second that a GPU's matrix units do."""

    bandwidth: float
    launch_us: float = 0.0
    clock_hz: float | None = None
    matrix_flops: float | None = None

    def moving(self, size: float) -> float:
        """Microseconds for `size` bytes."""
        return size / self.bandwidth * 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """What a barrier costs in one call, in microseconds: to write its value and read it back, and to launch its writer.
    A writer of several values is launched once for all of them."""

    moving: float
    launching: float


# By which priority fusion decides: the entry without a name is GpuPerformanceModel's, that for tiles is for Triton's
# kernels, which the former takes to make a sum anew for every element. Others are experiments.
_EXECUTION = re.compile(r'"exec_time_us":([\d.eE+-]+)[^{}]*"name":"(|indexing-cost-model)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
# What libtpu estimates for a kernel that does next to nothing: f32[8] + 1 on v5e, libtpu 0.0.42.
_LEAST_CYCLES = 1800


def timed(module: hlo.Module, every: Sequence[Kernel], rates: Rates) -> tuple[Kernel, ...]:
    """`every` kernel of `module` with its microseconds, and who says so."""
    return tuple(_timed(module, kernel, rates) for kernel in every)


def _timed(module: hlo.Module, kernel: Kernel, rates: Rates) -> Kernel:
    item = module.computations[kernel.computation].instructions[kernel.name]
    if (roofline := _roofline(module, kernel, rates)) is not None:
        return replace(kernel, microseconds=roofline, timed_by="the roofline of products")
    modelled = None if kernel.kind == "copy" else _modelled(item, rates)
    if modelled is not None:
        return replace(kernel, microseconds=modelled, timed_by="XLA's model")
    moved = rates.moving(_off_chip(module, kernel, item))
    start = 0.0 if kernel.kind == "scalar" else rates.launch_us
    return replace(kernel, microseconds=moved + start, timed_by="bytes over bandwidth")


def _off_chip(module: hlo.Module, kernel: Kernel, item: hlo.Instruction) -> int:
    """The bytes that the kernel moves through memory: of a copy into a TPU's on-chip memory those that it reads, of one
    out of it those that it writes."""
    steps = module.computations[kernel.computation].instructions
    is_read_there = any(steps[name].shape.is_on_chip for name in item.operands[:1])
    is_written_there = result_shape(item).is_on_chip
    if is_read_there == is_written_there:
        return kernel.bytes_read + kernel.bytes_written
    return kernel.bytes_written if is_read_there else kernel.bytes_read


def _roofline(module: hlo.Module, kernel: Kernel, rates: Rates) -> float | None:
    """Of a kernel that XLA itself makes of matrix products of floats, the launch included; None of any other. The
    matrix units take f32 as TF32, half as fast as bf16, which is jax's default precision; f64 is not theirs."""
    if not rates.matrix_flops or "dot" not in kernel.opcodes:
        return None
    computation = module.computations[kernel.computation]
    width = max(_widths(module, computation, computation.instructions[kernel.name]), default=_TF32 + 1)
    if width > _TF32:
        return None
    moved = rates.moving(kernel.bytes_read + kernel.bytes_written)
    computed = of_kernel(module, kernel) / (rates.matrix_flops * _BF16 / width)
    return max(moved, computed * 1e6) + rates.launch_us


def _widths(module: hlo.Module, computation: hlo.Computation, item: hlo.Instruction) -> Iterator[int]:
    """The bytes of one number of each product, also of those in a fusion."""
    if item.opcode == "dot":
        yield hlo.Shape(computation.instructions[item.operands[0]].shape.dtype).nbytes
    if body := module.body(item):
        for inner in body.instructions.values():
            yield from _widths(module, body, inner)


_BF16, _TF32 = 2, 4  # bytes; wider floats the matrix units do not take


def _modelled(item: hlo.Instruction, rates: Rates) -> float | None:
    config = item.attributes.get("backend_config", "")
    if found := {name: float(us) for us, name in _EXECUTION.findall(config)}:
        execution = found.get("indexing-cost-model") or found.get("")
        return execution + rates.launch_us if execution else None  # it has no model of a library call, and says 0
    cycles = _CYCLES.search(config)
    return int(cycles[1]) / rates.clock_hz * 1e6 if cycles and rates.clock_hz else None


def microseconds(every: Iterable[Kernel]) -> float:
    """Of one run of kernels that `timed` has seen; of a conditional's branches the dearest."""
    return total(every, lambda kernel: kernel.launches * (kernel.microseconds or 0.0))


def spoken_by(every: Iterable[Kernel]) -> tuple[str, ...]:
    """Who says what the kernels take, the greater share first; not those who say less than a twentieth."""
    shares: dict[str, float] = defaultdict(float)
    for kernel in every:
        shares[kernel.timed_by] += kernel.launches * (kernel.microseconds or 0.0)
    whole = sum(shares.values())
    return tuple(name for name in sorted(shares, key=lambda name: -shares[name]) if shares[name] > whole / 20)


def price(barrier: Barrier, writer: Kernel, rates: Rates) -> Price:
    """What would be gone with the barrier, at most: a write, a read and a launch, as often as they happen. Values in a
    TPU's on-chip memory move for nothing, and its scalar ops and transfers are no kernels that would be started."""
    start = rates.launch_us if rates.clock_hz is None else _LEAST_CYCLES / rates.clock_hz * 1e6
    moved = 0 if barrier.on_chip else 2 * barrier.bytes * barrier.crossings
    return Price(rates.moving(moved), min(start, writer.microseconds or 0.0) * barrier.launches)
