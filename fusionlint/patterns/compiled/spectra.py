"""The compiled side: Fourier transforms of real data, of which complex ones are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.behind import Made, behind
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import bounds

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_CALLS = ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn")
# What keeps the halves of a spectrum mirrored, if both operands have it.
_MIRRORED = frozenset(("add", "multiply", "subtract"))
_ELEMENTWISE = _MIRRORED | {
    "abs",
    "compare",
    "convert",
    "divide",
    "imag",
    "maximum",
    "minimum",
    "real",
    "select",
    "sqrt",
}


def transforms(computation: hlo.Computation, kind: str) -> Iterator[Made]:
    """The transforms of that kind, FFT or IFFT, that the user calls."""
    for item in computation.instructions.values():
        if item.opcode == "fft" and item.attributes["fft_type"] == kind and is_of_call(item, _CALLS):
            yield Made(item, item, computation)


def is_of_real_data(transform: Made, module: hlo.Module) -> bool:
    given = transform.operand(0, module)
    return given.step.opcode == "convert" and not given.operand(0, module).step.shape.dtype.startswith("c")


def is_read_by_half(transform: Made, module: hlo.Module) -> bool:
    """Whether all that reads a transform along the last axis cuts the first half out, at once or after arithmetic."""
    item, here = transform.step, transform.computation
    length = item.shape.dims[-1]
    if item.attributes["fft_length"] != f"{{{length}}}" or not item.users:
        return False
    for name in item.users:
        user = here.instructions[name]
        body = module.body(user)
        if body is None:
            return False
        given = [body.parameters[number] for number, one in enumerate(user.operands) if one == item.name]
        if not all(_is_cut(body.instructions[step], body, length) for one in given for step in one.users):
            return False
    return True


def _is_cut(step: hlo.Instruction, body: hlo.Computation, length: int) -> bool:
    if step.opcode == "slice":
        begin, end = bounds(step)[-1]
        return begin == 0 and end <= length // 2 + 1
    if step.opcode not in _ELEMENTWISE or step.shape.dims[-1:] != (length,) or not step.users:
        return False
    return all(_is_cut(body.instructions[name], body, length) for name in step.users)


def round_trip(back: Made, module: hlo.Module) -> set[str]:
    """The kernels of a convolution by transforms of real data, of whose result only the real part is read; none where
    it is not seen that all of it is real."""
    item, here = back.step, back.computation
    readers = [here.instructions[name] for name in item.users]
    if not readers or not all(_takes_the_real_part(item.name, reader, module) for reader in readers):
        return set()
    found: set[str] = {item.name}
    return found if _is_mirrored(back.operand(0, module), found, module) else set()


def _is_mirrored(made: Made, found: set[str], module: hlo.Module) -> bool:
    found.add(made.kernel.name)
    if made.step.opcode == "fft":
        found.add(behind(made.step.operands[0], made.kernel, made.computation, module).kernel.name)
        return made.step.attributes["fft_type"] == "FFT" and is_of_real_data(made, module)
    if made.step.opcode == "broadcast":
        return _is_mirrored(made.operand(0, module), found, module)
    if made.step.opcode not in _MIRRORED:
        return False
    return all(_is_mirrored(made.operand(number, module), found, module) for number in range(2))


def _takes_the_real_part(name: str, reader: hlo.Instruction, module: hlo.Module) -> bool:
    body = module.body(reader)
    if body is None:
        return reader.opcode == "real"
    given = [body.parameters[number] for number, one in enumerate(reader.operands) if one == name]
    return all(body.instructions[user].opcode == "real" for one in given for user in one.users)


def kernels_of_real_data(barrier: Barrier, module: hlo.Module) -> set[str]:
    """The kernels beside the value that belong to a round trip of real data."""
    if not module.every("fft"):
        return set()
    here = module.computations[barrier.computation]
    return {name for back in transforms(here, "IFFT") for name in round_trip(back, module)}
