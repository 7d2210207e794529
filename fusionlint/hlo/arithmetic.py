"""How much a program computes: the floating-point operations of one run, those that a fusion repeats counted again."""

from __future__ import annotations

import re
from math import prod

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel, kernels, total

_FLOATS = ("f", "bf", "c")
_ARITHMETIC = frozenset(
    ("add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "negate", "abs", "sqrt",
     "rsqrt", "cbrt", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "sine",
     "cosine", "tan", "erf", "atan2")
)  # fmt: skip


def flops(module: hlo.Module) -> int:
    """One operation for each element that an arithmetic instruction makes, each time that it runs; two for each
    element and place of a matrix product that is no library call. What runs in a loop of unknown length counts once."""
    return int(total(kernels(module), lambda kernel: kernel.launches * of_kernel(module, kernel)))


def of_kernel(module: hlo.Module, kernel: Kernel) -> int:
    """Those of one launch of the kernel."""
    computation = module.computations[kernel.computation]
    return _of(module, computation, computation.instructions[kernel.name])


def _of(module: hlo.Module, computation: hlo.Computation, item: hlo.Instruction) -> int:
    if body := module.body(item):
        return sum(_of(module, body, inner) for inner in body.instructions.values())
    operands = [computation.instructions[name].shape for name in item.operands]
    if not item.shape.dtype.startswith(_FLOATS):
        return 0
    if item.opcode == "dot":
        contracted = re.findall(r"\d+", item.attributes.get("lhs_contracting_dims", ""))
        return 2 * prod(item.shape.dims) * prod(operands[0].dims[int(i)] for i in contracted)
    if item.opcode == "reduce":
        return prod(operands[0].dims)
    return prod(item.shape.dims) if item.opcode in _ARITHMETIC else 0
