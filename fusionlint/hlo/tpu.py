"""What is particular to programs for a TPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.flow import leaves
from fusionlint.hlo.kernels import Kernel


def scalars_apart(module: hlo.Module, every: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """`every` kernel, those of kind "scalar" that make single numbers of single numbers: a TPU's scalar core runs them
    between its kernels."""
    return tuple(replace(kernel, kind="scalar") if _is_scalar(module, kernel) else kernel for kernel in every)


def _is_scalar(module: hlo.Module, kernel: Kernel) -> bool:
    items = module.computations[kernel.computation].instructions
    item = items[kernel.name]
    if item.opcode in ("custom-call", "send", "recv", "infeed", "outfeed") or kernel.kind == "collective":
        return False
    shapes = [item.shape, *(items[name].shape for name in item.operands)]
    return not any(part.dims for shape in shapes for _, part in leaves(shape))
