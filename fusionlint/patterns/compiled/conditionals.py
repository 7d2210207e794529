"""The compiled side: conditionals, what their branches do, and what they only hand on."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.links import SAME, written_last
from fusionlint.patterns.compiled.of_jax import is_of_jax

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# What goes from memory to memory as it is; a TPU does it in two steps.
_MOVED = SAME | {"parameter", "tuple", "constant", "copy-start", "copy-done"}
_CHEAP = frozenset(
    ("abs", "add", "and", "broadcast", "clamp", "compare", "convert", "iota", "maximum", "minimum", "multiply",
     "negate", "not", "or", "select", "sign", "subtract", "xor")
)  # fmt: skip
_DEAR = frozenset(("ceil", "cosine", "exponential", "exponential-minus-one", "floor", "logistic", "sine", "tanh"))
# These have no number everywhere, and in the branch that is not taken a gradient that is none.
_NOT_EVERYWHERE = frozenset(("atan2", "cbrt", "divide", "log", "log-plus-one", "power", "remainder", "rsqrt", "sqrt"))
_HEAVY = frozenset(
    ("call", "cholesky", "conditional", "convolution", "custom-call", "dot", "fft", "sort", "triangular-solve", "while")
)
# So many steps are no more work than the launch of a branch.
_FEW = 64
_NUMBERS = 128
_SMALL = 8


def conditionals_at(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """Those of the user that have the writer of the value, or one of its readers, in a branch."""
    found = {barrier.computation: None}
    for name in barrier.readers:
        found |= {part.name: None for part in module.computations.values() if name in part.instructions}
    for name in found:
        for _, caller in module.callers(name):
            if caller.opcode == "conditional" and not is_of_jax(caller):
                yield caller


def is_choice_of_arrays(conditional: hlo.Instruction, module: hlo.Module, *, dear: bool = True) -> bool:
    """Whether every branch only computes arrays element by element, which takes no longer than to choose a branch;
    where not `dear`, by sums and products alone."""
    results = conditional.shape.parts or (conditional.shape,)
    if not any(prod(part.dims) >= _NUMBERS for part in results):
        return False
    known = _MOVED | _CHEAP | (_DEAR | _NOT_EVERYWHERE if dear else frozenset())
    is_differentiated = "jvp(" in conditional.op_name
    for name in conditional.called:
        steps = [*_work(module.computations[name], module)]
        if len(steps) > _FEW or any(step.opcode not in known for step in steps):
            return False
        if is_differentiated and any(step.opcode in _NOT_EVERYWHERE for step in steps):
            return False
    return True


def _work(branch: hlo.Computation, module: hlo.Module) -> Iterator[hlo.Instruction]:
    for item in branch.instructions.values():
        for step in module.work_of(item):
            if step.opcode not in ("constant", "parameter", "tuple", "get-tuple-element", "bitcast"):
                yield step


def hands_on(conditional: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a branch returns nothing but what it is given."""
    branches = (module.computations[name].instructions.values() for name in conditional.called)
    return any(all(item.opcode in _MOVED for item in branch) for branch in branches)


def buffers_around(conditional: hlo.Instruction, module: hlo.Module) -> Iterator[hlo.Shape]:
    """The arrays of which one branch writes a small piece, and does nothing else that takes long, and another one hands
    on as they are."""
    branches = [module.computations[name] for name in conditional.called]
    roots = [branch.instructions[branch.root] for branch in branches]
    if any(step.opcode in _HEAVY for branch in branches for step in _work(branch, module)):
        return
    for number, shape in enumerate(conditional.shape.parts or (conditional.shape,)):
        names = [root.operands[number] if root.opcode == "tuple" else root.name for root in roots]
        ways = [_way(name, branch, module) for name, branch in zip(names, branches, strict=True)]
        pieces = [way for way in ways if isinstance(way, tuple)]
        if pieces and "handed on" in ways and prod(shape.dims) >= _SMALL * max(map(prod, pieces)):
            yield shape


def _way(name: str, branch: hlo.Computation, module: hlo.Module) -> str | tuple[int, ...]:
    """How a branch comes by a result: "handed on", the size of the piece that it writes into what it is given, or
    "" for any other way."""
    item = branch.instructions[name]
    while item.opcode in _MOVED and len(item.operands) == 1:
        item = branch.instructions[item.operands[0]]
    if item.opcode == "parameter":
        return "handed on"
    place = written_last(item, branch, module)
    if place is None or not place.into or branch.instructions[place.into].opcode != "parameter":
        return ""
    return place.piece


def is_in_a_loop(item: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether an instruction is run again and again, by a loop in the program."""
    todo = [name for name, part in module.computations.items() if part.instructions.get(item.name) is item]
    for name in todo:
        callers = module.callers(name)
        if any(caller.opcode == "while" for _, caller in callers):
            return True
        todo += [outer for outer, _ in callers if outer not in todo]
    return False
