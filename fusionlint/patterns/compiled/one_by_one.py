"""The compiled side: the same work several times where one operation would do all of it: transforms of arrays of one
shape of which none needs another, and sums over what has one label, then the next.

In: a Barrier. What is alike in a module is found once.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import made_of, readers_of, steps_of, writer_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# Bytes: of larger arrays a launch more is nothing, and a stack of them is much to hold.
_MOST_TRANSFORMED = 1 << 20
_FFTS = frozenset(f"{back}{real}fft{axes}" for back in ("", "i") for real in ("", "r") for axes in ("", "2", "n"))


def transforms_alike(barrier: Barrier, module: hlo.Module) -> int:
    """How many transforms there are like the one that makes the value or takes it, none of what another made."""
    known = _transforms(OfModule(module)) if "fft" in module.opcodes else {}
    kernels = (writer_of(barrier, module), *readers_of(barrier, module))
    return max((known.get(kernel.name, 0) for kernel in kernels), default=0)


@functools.lru_cache(maxsize=1)
def _transforms(of: OfModule) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in of.module.computations.values():
        alike: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
        for item in part.instructions.values():
            if item.opcode == "fft" and item.shape.nbytes <= _MOST_TRANSFORMED and not is_of_jax(item, _FFTS):
                given = part.instructions[item.operands[0]].shape
                kind = item.attributes.get("fft_type"), item.attributes.get("fft_length")
                alike[item.shape, given, kind, _caller(item)].append(item.name)
        for names in alike.values():
            if len(names) > 1 and not any(made_of(name, set(names) - {name}, part) for name in names):
                found |= dict.fromkeys(names, len(names))
    return found


def _caller(item: hlo.Instruction) -> tuple[str, str]:
    """The function of the user's that calls: what others call is theirs to join."""
    frame = item.stack[0] if item.stack else None
    return (frame.path, frame.function) if frame else ("", "")


def labels_apart(barrier: Barrier, module: hlo.Module) -> int:
    """How many labels the line is asked about, one after the other, that the value is summed for."""
    kernels = (writer_of(barrier, module), *readers_of(barrier, module))
    steps = [step for kernel in kernels for step in steps_of(kernel, module)]
    if not any(step.opcode == "reduce" for step in steps):
        return 0
    known = _labels(OfModule(module))
    return max((len(known.get(step.stack, ())) for step in steps if _is_asked(step)), default=0)


def _is_asked(step: hlo.Instruction) -> bool:
    return step.opcode == "compare" and step.attributes.get("direction") == "EQ" and bool(step.stack)


@functools.lru_cache(maxsize=1)
def _labels(of: OfModule) -> dict[tuple[hlo.Frame, ...], set[str]]:
    """By line, the numbers that arrays are compared with there."""
    found: defaultdict[tuple[hlo.Frame, ...], set[str]] = defaultdict(set)
    for part in of.module.computations.values():
        for step in filter(_is_asked, part.instructions.values()):
            if step.shape.dims and not is_of_jax(step):
                found[step.stack] |= set(_numbers((part.instructions[name] for name in step.operands), part))
    return found


def _numbers(given: Iterable[hlo.Instruction], part: hlo.Computation) -> Iterator[str]:
    for one in given:
        while one.opcode in ("broadcast", "bitcast", "convert", "reshape"):
            one = part.instructions[one.operands[0]]
        if one.opcode == "constant" and not one.shape.dims:
            yield one.literal
