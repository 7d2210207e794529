"""How many operations each stage of the compiler holds, and what went on the way: counted by us from the texts.

XLA does not say which of its passes removed an operation. What can be told from the two HLO texts is told: operations
that nothing uses, operations that repeat another one, operations on constants alone; the rest was rewritten.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel

# Names for values, not operations on them.
NOT_WORK = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "call", "fusion", "after-all"})
# Two of them are not one: they have an effect, or draw new bits.
NEVER_EQUAL = frozenset({"custom-call", "rng", "infeed", "outfeed", "send", "recv", "while", "conditional"})
# Attributes that say where an operation is from, or where it is to run.
NOT_MEANING = frozenset({"metadata", "sharding", "frontend_attributes", "backend_config"})
# `c:f32[8] = sin b`, and without results `debug_print[`; parameters are `name=value`, with no space.
JAXPR_OPERATION = re.compile(r"(?:^ *|let |; )(?:(?:[\w~]+:\S+ )+= ([a-z]\w*)(?=[\[ \n])|([a-z]\w*)\[)", re.MULTILINE)
STABLEHLO_OPERATION = re.compile(r'^ +(?:%[\w:#, %]+ = )?"?(?:stablehlo|chlo|mhlo)\.(\w+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Removed:
    """What lies between the HLO before and after optimization, in operations; calls counted as if inlined.

    `fused` is the launches that fusion saved: operations inside fusions, less one for each fusion.
    """

    unused: int
    duplicates: int
    on_constants: int
    rewritten: int  # the other operations that are gone: simplified, or turned into others
    added: int  # operations that the text before does not have: XLA's rewrites, and work repeated in several fusions
    fused: int


@dataclass(frozen=True, slots=True)
class Stages:
    """Operation -> how many, at each stage, in all computations (the fusion bodies too); and the kernels by kind."""

    jaxpr: Mapping[str, int]
    stablehlo: Mapping[str, int]
    before: Mapping[str, int]
    after: Mapping[str, int]
    kernels: Mapping[str, int]
    removed: Removed | None


def stages(
    jaxpr: str, stablehlo: str, before: hlo.Module | None, after: hlo.Module, kernels: Sequence[Kernel]
) -> Stages:
    """Count the operations of each stage. `before` and `after` are the HLO before and after optimization; a text that
    is not there ("", None) counts as nothing, and without `before` nothing is known to be removed."""
    first, last = _inlined(before) if before else Counter[str](), _operations(after)
    return Stages(
        jaxpr=_ranked(_jaxpr_operations(jaxpr)),
        stablehlo=_ranked(Counter(name for name in STABLEHLO_OPERATION.findall(stablehlo) if name != "return")),
        before=_ranked(first),
        after=_ranked(last),
        kernels=_ranked(Counter(kernel.kind for kernel in kernels)),
        removed=_removed(before, after, first, last) if before else None,
    )


def _removed(before: hlo.Module, after: hlo.Module, first: Counter[str], last: Counter[str]) -> Removed:
    times = _calls(before)
    seen: Counter[str] = Counter()
    for computation in before.computations.values():
        for reason in _superfluous(computation):
            seen[reason] += times[computation.name]
    fusions = after.every("fusion")
    inside = sum(len(tuple(_work(after.computations[fusion.called[0]]))) for fusion in fusions)
    gone = (first - last).total()
    return Removed(
        unused=seen["unused"],
        duplicates=seen["duplicate"],
        on_constants=seen["constant"],
        rewritten=max(0, gone - seen.total()),
        added=(last - first).total(),
        fused=max(0, inside - len(fusions)),
    )


def _superfluous(computation: hlo.Computation) -> Iterator[str]:
    """One word for each operation that could go by looking at this computation alone: the first that applies."""
    constant: set[str] = set()
    canonical: dict[str, str] = {}
    numbers: dict[object, str] = {}
    for step in computation.instructions.values():
        operands = tuple(canonical.get(name, name) for name in step.operands)
        first = numbers.setdefault(_key(step, operands), step.name)
        canonical[step.name] = first
        # XLA keeps the broadcast of a constant: it costs nothing inside a fusion.
        if step.opcode in ("constant", "broadcast", "iota") and constant.issuperset(operands):
            constant.add(step.name)
        elif step.opcode in NOT_WORK:
            continue
        elif not step.users and not step.is_root:
            yield "unused"
        elif first != step.name:
            yield "duplicate"
        elif operands and constant.issuperset(operands) and not step.called:
            constant.add(step.name)
            yield "constant"


def _key(step: hlo.Instruction, operands: tuple[str, ...]) -> object:
    elided = "..." in step.literal  # a big constant, printed without its value
    if step.opcode in NEVER_EQUAL or step.opcode == "parameter" or step.called or elided:
        return step.name
    attributes = (item for item in step.attributes.items() if item[0] not in NOT_MEANING)
    return step.opcode, step.shape, step.literal, operands, tuple(sorted(attributes))


def _operations(module: hlo.Module) -> Counter[str]:
    return Counter(step.opcode for part in module.computations.values() for step in _work(part))


def _inlined(module: hlo.Module) -> Counter[str]:
    times = _calls(module)
    found: Counter[str] = Counter()
    for computation in module.computations.values():
        for step in _work(computation):
            found[step.opcode] += times[computation.name]
    return found


def _work(computation: hlo.Computation) -> Iterator[hlo.Instruction]:
    return (step for step in computation.instructions.values() if step.opcode not in NOT_WORK)


def _calls(module: hlo.Module) -> Mapping[str, int]:
    """How often each computation would stand in the text if calls were written out. Callers stand after callees."""
    times: defaultdict[str, int] = defaultdict(int)
    times[module.entry] = 1
    for computation in reversed(list(module.computations.values())):
        for step in computation.instructions.values():
            for name in step.called:
                times[name] += times[computation.name]
    return times


def _jaxpr_operations(text: str) -> Counter[str]:
    return Counter(named or bare for named, bare in JAXPR_OPERATION.findall(text))


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(counts.most_common())
