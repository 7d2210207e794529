"""The compiled side: random numbers that one function draws line after line, where one draw would make them all.

In: a Barrier. A draw hashes a key and counts; jax names the function of its own in which it does so, `jit(_uniform)`.
What is drawn once is nobody's loss: told is what a loop of the program does, or what is mapped over many.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import readers_of, steps_of, value_of, writer_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# The first of these in an op_name is what the user calls.
_CALLED = regex(
    r"\bjit\(_?(uniform|normal|randint|bernoulli|truncated_normal|exponential|gumbel|laplace|shuffle|permutation|beta"
    r"|categorical|cauchy|gamma\w*|dirichlet|poisson\w*|choice|logistic|rademacher|multivariate_normal|t|bits|split)\)"
)
# Of these the parameters may be arrays, or are scales of what is drawn.
_KINDS = frozenset(
    ("bernoulli", "exponential", "gumbel", "laplace", "normal", "randint", "truncated_normal", "uniform")
)
# Of more numbers than these a kernel of its own is no loss.
_MOST = 1 << 16

# The function that draws, with those that call it, what it draws, and in which computation.
Caller = tuple[tuple[object, ...], str, str]


def drawn_line_by_line(barrier: Barrier, module: hlo.Module) -> int:
    """By how many lines of one function numbers of one kind are drawn, of which those are that the value is made of, or
    is a key for. What else the kernel of a draw makes or reads is none."""
    known = _known(OfModule(module))
    if not known:
        return 0
    kernels = [writer_of(barrier, module)] if _is_drawn(barrier, module) else []
    if value_of(barrier, module).shape.dtype.startswith("u"):
        kernels += readers_of(barrier, module)
    steps = (step for kernel in kernels for step in steps_of(kernel, module))
    return max((known.get((step.stack, kind), 0) for step in steps if (kind := _kind(step))), default=0)


def _is_drawn(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is a number that is drawn, or bits of one."""
    made = made_at(At(barrier.value, None, module.computations[barrier.computation]), module)
    return _CALLED.search(made.step(module).op_name) is not None


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> dict[tuple[tuple[hlo.Frame, ...], str], int]:
    """By the place and the kind of a draw."""
    lines: defaultdict[Caller, set[tuple[hlo.Frame, ...]]] = defaultdict(set)
    large: set[Caller] = set()
    for home, steps in _homes(of.module):
        for step in steps:
            if kind := _kind(step):
                inner, *outer = step.stack
                caller = ((inner.path, inner.function, *outer), kind, home)
                lines[caller].add(step.stack)
                if prod(step.shape.dims) > _MOST:
                    large.add(caller)
    small = ((caller, stacks) for caller, stacks in lines.items() if caller not in large)
    return {(stack, kind): len(stacks) for (_, kind, _), stacks in small for stack in stacks}


def _kind(step: hlo.Instruction) -> str:
    """What is drawn where numbers are hashed; "" elsewhere, and where it is done once."""
    if step.opcode != "xor" or not step.stack:
        return ""
    called = _CALLED.search(step.op_name)
    if called is None or called[1] not in _KINDS or is_of_jax(step, (called[0][4:-1],)):
        return ""
    return called[1] if "vmap(" in step.op_name or "/while/" in step.op_name[: called.start()] else ""


def _homes(module: hlo.Module) -> Iterator[tuple[str, Iterator[hlo.Instruction]]]:
    """The work of each computation that kernels stand in, and by which it is run: a CPU hashes in loops of its own."""
    for part in module.computations.values():
        callers = module.callers(part.name)
        if part.name == module.entry or any(item.opcode in ("while", "conditional", "call") for _, item in callers):
            steps = (step for item in part.instructions.values() for step in steps_of(item, module))
            yield _home(part.name, module), steps


def _home(name: str, module: hlo.Module) -> str:
    seen = {name}
    while outer := [(around, item) for around, item in module.callers(name) if around not in seen]:
        around, item = outer[0]
        if item.opcode not in ("while", "call") or not _CALLED.search(item.op_name):
            break
        seen.add(around)
        name = around
    return name
