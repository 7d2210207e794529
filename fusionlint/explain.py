"""Artifacts -> Report: what XLA made of one function on one target, and which rules explain it. Never imports jax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier, barriers
from fusionlint.hlo.kernels import Kernel, Loop, kernels, launched, loops
from fusionlint.hlo.verdicts import cpu_log, in_final_names
from fusionlint.stages import Stages, stages

if TYPE_CHECKING:
    from fusionlint.rule import Rule


@dataclass(frozen=True, slots=True)
class ExplainedBarrier:
    """A barrier, and the first rule that knows a way around it; "" where none does."""

    barrier: Barrier
    rule: str
    advice: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Launches and bytes (read and written) of one call. What stands inside a loop of unknown length is counted apart,
    per iteration of that loop; of a conditional's branches the dearest counts."""

    launches: int
    launches_per_iteration: int
    bytes: int
    bytes_per_iteration: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything `fusionlint explain` says about one function on one target."""

    entry: str  # the SPEC
    target: str
    versions: Mapping[str, str]  # jax, jaxlib and the compiler's plugin
    compile_seconds: float
    totals: Totals
    kernels: tuple[Kernel, ...]
    loops: tuple[Loop, ...]
    barriers: tuple[ExplainedBarrier, ...]  # dearest first
    stages: Stages


def explain(artifacts: Artifacts, rules: Sequence[Rule] = ()) -> Report:
    """Read what a compilation left, and let the barrier sensors of `rules` speak.

    Raises hlo.HloSyntaxError where the text is not HLO.
    """
    after = hlo.parse(artifacts.after)
    before = hlo.parse(artifacts.before) if artifacts.before else None  # a dump may lack it
    every = kernels(after)
    found = barriers(after, in_final_names(after, cpu_log(artifacts.log)))
    return Report(
        entry=artifacts.entry,
        target=artifacts.target,
        versions=artifacts.versions,
        compile_seconds=artifacts.compile_seconds,
        totals=_totals(every),
        kernels=every,
        loops=loops(after),
        barriers=tuple(_explained(barrier, after, rules) for barrier in sorted(found, key=_dearest_first)),
        stages=stages(artifacts.jaxpr, artifacts.stablehlo, before, after, every),
    )


def _totals(every: Sequence[Kernel]) -> Totals:
    once = [kernel for kernel in every if not kernel.per_iteration]
    again = [kernel for kernel in every if kernel.per_iteration]
    return Totals(
        launches=launched(once),
        launches_per_iteration=launched(again),
        bytes=_moved(once),
        bytes_per_iteration=_moved(again),
    )


def _moved(every: Sequence[Kernel]) -> int:
    """Bytes of all launches; of a conditional's branches those of the one that moves most."""
    return launched(replace(k, launches=k.launches * (k.bytes_read + k.bytes_written)) for k in every)


def _dearest_first(barrier: Barrier) -> tuple[int, int]:
    return -barrier.bytes * barrier.crossings, -barrier.launches


def _explained(barrier: Barrier, module: hlo.Module, rules: Sequence[Rule]) -> ExplainedBarrier:
    for rule in rules:
        for sensor in rule.barrier_sensors:
            advice = sensor(barrier, module)
            if advice is not None:
                return ExplainedBarrier(barrier, rule.name, advice)
    return ExplainedBarrier(barrier, "", "")
