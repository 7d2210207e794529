"""Artifacts -> Report: what XLA made of one function on one target, and which rules explain it. Never imports jax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.compiling.targets import TARGETS, Platform, TargetError, get
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier, barriers
from fusionlint.hlo.collectives import mesh_of
from fusionlint.hlo.kernels import Kernel, Loop, kernels, launched, loops
from fusionlint.hlo.limits import limits
from fusionlint.hlo.lines import Lines, lines, lines_of_kernels, written_in
from fusionlint.hlo.lost import Lost, lost, with_joins
from fusionlint.hlo.priority_fusion import gpu_verdicts, right_snapshot
from fusionlint.hlo.sites import at_their_calls
from fusionlint.hlo.thunks import Thunk, as_launched, host_launches, loops_as_launched, read_thunks
from fusionlint.hlo.times import Price, Rates, microseconds, price, spoken_by, timed
from fusionlint.hlo.tpu import scalars_apart
from fusionlint.hlo.verdicts import Verdict, cpu_log, in_final_names, is_cpu_log
from fusionlint.stages import Stages, stages
from fusionlint.trials import Trial

if TYPE_CHECKING:
    from fusionlint.rule import BarrierCheck, Rule


@dataclass(frozen=True, slots=True, repr=False)
class ExplainedBarrier:
    """A barrier, and the first rule that knows a way around it; "" where none does."""

    barrier: Barrier
    rule: str
    advice: str
    price: Price | None = None  # None where the target has no rates

    def __repr__(self) -> str:
        from fusionlint.report.explain_text import barrier_line

        return f"<ExplainedBarrier {barrier_line(self)}>"


@dataclass(frozen=True, slots=True)
class Totals:
    """Launches, bytes (read and written) and microseconds (None where the target has no rates) of one call. What stands
    inside a loop of unknown length is counted apart, per iteration of that loop; of a conditional's branches the
    dearest counts."""

    launches: int
    launches_per_iteration: int
    bytes: int
    bytes_per_iteration: int
    microseconds: float | None = None
    microseconds_per_iteration: float | None = None
    timed_by: tuple[str, ...] = ()  # who says so, as TimedBy of hlo/kernels.py has it, the greater share first
    scalar_ops: int = 0  # of the launches: those of a TPU's scalar core
    scalar_ops_per_iteration: int = 0
    # What the host launches: of a CUDA graph all at once. None where XLA's thunks are not known.
    host_launches: int | None = None
    host_launches_per_iteration: int | None = None


class Count(int):
    """A number of a `report`, which a failed assertion on it can show."""

    report: Report

    def __new__(cls, value: int, report: Report) -> Count:
        count = super().__new__(cls, value)
        count.report = report
        return count

    def __getnewargs__(self) -> tuple[int, Report]:  # type: ignore[override]  # int has another
        return int(self), self.report


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Everything `fusionlint explain` says about one function on one target. Where it runs on several `devices`, all
    numbers are those of one of them.

    `str(report)` is the text of the command, and a notebook shows the same. Launches and bytes are read off what the
    compiler made: on a GPU off XLA's own thunks. Microseconds are None where the target has no rates; else they are
    XLA's model's, the compiler's cycles, of a GPU's matrix products their roofline, or bytes over bandwidth, as
    `totals.timed_by` says.
    """

    entry: str  # the SPEC, or the function with its arguments
    target: str
    versions: Mapping[str, str]  # jax, jaxlib and the compiler's plugin
    compile_seconds: float
    totals: Totals
    kernels: tuple[Kernel, ...]
    loops: tuple[Loop, ...]
    barriers: tuple[ExplainedBarrier, ...]  # dearest first
    stages: Stages
    notes: tuple[str, ...] = ()  # what the compilation cannot know, as far as it matters here
    # The source lines of the program that the compiler was given (of what it made of it where only that is there: what
    # was optimized away then counts as never compiled), and of the work inside each kernel, by its name.
    lines: Lines = field(default_factory=dict)
    lines_of_kernels: Mapping[str, Lines] = field(default_factory=dict)
    written_in: Mapping[str, Lines] = field(default_factory=dict)  # of those, where the work itself is written
    devices: int = 1  # that run the program at once, each its part
    # What comes of the fixes of `check`, where they were tried: () where none is for these lines.
    trials: tuple[Trial, ...] | None = None

    @property
    def launches(self) -> Count:
        """Of one call, loops of known length unrolled. What stands in a loop of unknown length is not in it:
        `launches_per_iteration` has that."""
        return Count(self.totals.launches, self)

    @property
    def launches_per_iteration(self) -> Count:
        """Of each iteration of a loop of unknown length; 0 without one."""
        return Count(self.totals.launches_per_iteration, self)

    @property
    def bytes(self) -> Count:
        """Read and written by all launches of one call, but for loops of unknown length."""
        return Count(self.totals.bytes, self)

    @property
    def microseconds(self) -> float | None:
        """Of one call, but for loops of unknown length; None where nothing is known about it."""
        return self.totals.microseconds

    # What a report looks like is the business of `report/`, which is imported when somebody looks.

    def __str__(self) -> str:
        from fusionlint.report.explain_head import IN_PYTHON
        from fusionlint.report.explain_text import report_text

        return report_text(self, option=IN_PYTHON).rstrip("\n")

    def __repr__(self) -> str:
        from fusionlint.report.explain_head import brief

        return f"<Report {brief(self)}>"

    def _repr_html_(self) -> str:
        from fusionlint.report.explain_html import report_html

        return report_html(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def explain(artifacts: Artifacts, rules: Sequence[Rule] = ()) -> Report:
    """Read what a compilation left, and let the barrier sensors of `rules` speak: of those whose page shows harm there.

    Raises hlo.HloSyntaxError where the text is not HLO.
    """
    after = hlo.parse(artifacts.after)
    before = hlo.parse(artifacts.before) if artifacts.before else None  # a dump may lack it
    known = lost(before) if before else Lost()
    after = with_joins(at_their_calls(after, before), known) if before else after
    after = replace(after, mesh=mesh_of(artifacts.stablehlo, after.devices)) if after.devices > 1 else after
    platform, rates = _platform(artifacts.target)
    speaking = [*_sensors(rules, platform)]
    thunks = _thunks(artifacts)
    every = _kernels(after, thunks, platform, rates)
    found = barriers(after, _verdicts(artifacts, after), known)
    by_name = {kernel.name: kernel for kernel in every}
    prices = (price(barrier, by_name[barrier.writer], rates) if rates else None for barrier in found)
    said = lines(before or after)
    explained = [_explained(barrier, after, speaking, cost) for barrier, cost in zip(found, prices, strict=True)]
    return Report(
        entry=artifacts.entry,
        target=artifacts.target,
        versions=artifacts.versions,
        compile_seconds=artifacts.compile_seconds,
        totals=_totals(every, rates is not None, is_of_thunks=bool(thunks)),
        kernels=every,
        loops=loops_as_launched(loops(after), every),
        barriers=tuple(sorted(explained, key=_dearest_first)),
        stages=stages(artifacts.jaxpr, artifacts.stablehlo, before, after, every),
        notes=(*limits(after, every, platform, artifacts.attached), *_unread(artifacts, platform, found, before, said)),
        lines=said,
        lines_of_kernels=lines_of_kernels(after, every),
        written_in=written_in(after, every),
        devices=after.devices,
    )


def _unread(
    artifacts: Artifacts, platform: Platform, found: Sequence[Barrier], before: hlo.Module | None, said: Lines
) -> Iterator[str]:
    """What the compiler surely told, and was not found in its words: those of a version that is not known here."""
    if platform == "cpu" and found and artifacts.compile_seconds and not is_cpu_log(artifacts.log):
        yield "no verdict: XLA's reasons are written in a way that is not known here; causes are read off the program"
    # What hands its arguments on, or is filled with a constant, is no line's work.
    if before and not said and not before.opcodes <= _WITHOUT_LINES:
        yield "no lines: HLO names the lines of the source in a way that is not known here, or not at all"


_WITHOUT_LINES = frozenset({"parameter", "constant", "broadcast", "tuple", "get-tuple-element"})
_PLATFORMS: Mapping[str, Platform] = {"gpu": "cuda", "tpu": "tpu"}


def _platform(name: str) -> tuple[Platform, Rates | None]:
    """Of the target called `name`, or of that platform where XLA did not say what device it compiled for."""
    try:
        target = get(name)
    except TargetError:
        return _PLATFORMS[name], None
    if target.memory_bandwidth is None:
        return target.platform, None
    return target.platform, Rates(
        target.memory_bandwidth, target.launch_us or 0.0, target.clock_hz, target.matrix_flops
    )


def _sensors(rules: Sequence[Rule], platform: Platform) -> Iterator[tuple[str, BarrierCheck]]:
    """The barrier sensors that speak for the hardware of that platform, each with its rule's name: those that
    recognise a pair of the page whose table shows harm there. What helps a GPU may cost a CPU."""
    measured_as = next(target.measured_as for target in TARGETS if target.platform == platform)
    for rule in rules:
        harmed = rule.page.targets_of if rule.barrier_sensors else ()
        for check, pair in rule.barrier_sensors:
            if not {"any", measured_as}.isdisjoint(harmed[pair] if pair < len(harmed) else ()):
                yield rule.name, check


def _thunks(artifacts: Artifacts) -> tuple[Thunk, ...]:
    sequence = artifacts.dumped("*.thunk_sequence_after_thunk_passes.txt") or artifacts.dumped("*.thunk_sequence.txt")
    return read_thunks(sequence, artifacts.dumped("*.thunk_metadata.txt"))


def _kernels(
    module: hlo.Module, thunks: Sequence[Thunk], platform: Platform, rates: Rates | None
) -> tuple[Kernel, ...]:
    every = as_launched(kernels(module), thunks)
    if platform == "tpu":
        every = scalars_apart(module, every)
    return timed(module, every, rates) if rates else every


def _verdicts(artifacts: Artifacts, module: hlo.Module) -> dict[str, Verdict]:
    dump = artifacts.dumped("*.priority_fusion_dump.txt")
    if not dump:
        return in_final_names(module, cpu_log(artifacts.log))
    texts = [artifacts.every_dumped(f"*.{side}_priority-fusion*.txt") for side in ("before", "after")]
    number = right_snapshot(dump, texts[1])
    if number is None or number >= len(texts[0]):
        return {}
    before, after = (hlo.parse(side[number]) for side in texts)
    return gpu_verdicts(dump, before, after, module)


def _totals(every: Sequence[Kernel], are_timed: bool, is_of_thunks: bool) -> Totals:
    once = [kernel for kernel in every if not kernel.per_iteration]
    again = [kernel for kernel in every if kernel.per_iteration]
    return Totals(
        launches=launched(once),
        launches_per_iteration=launched(again),
        bytes=_moved(once),
        bytes_per_iteration=_moved(again),
        microseconds=microseconds(once) if are_timed else None,
        microseconds_per_iteration=microseconds(again) if are_timed else None,
        timed_by=spoken_by(every) if are_timed else (),
        scalar_ops=_scalar_ops(once),
        scalar_ops_per_iteration=_scalar_ops(again),
        host_launches=host_launches(once) if is_of_thunks else None,
        host_launches_per_iteration=host_launches(again) if is_of_thunks else None,
    )


def _scalar_ops(every: Sequence[Kernel]) -> int:
    return launched(kernel for kernel in every if kernel.kind == "scalar")


def _moved(every: Sequence[Kernel]) -> int:
    """Bytes of all launches; of a conditional's branches those of the one that moves most."""
    return launched(replace(k, launches=k.launches * (k.bytes_read + k.bytes_written)) for k in every)


def _dearest_first(explained: ExplainedBarrier) -> tuple[float, int, int]:
    barrier, price = explained.barrier, explained.price
    return -(price.moving + price.launching if price else 0.0), -barrier.bytes * barrier.crossings, -barrier.launches


def _explained(
    barrier: Barrier, module: hlo.Module, sensors: Iterable[tuple[str, BarrierCheck]], cost: Price | None
) -> ExplainedBarrier:
    for name, check in sensors:
        advice = check(barrier, module)
        if advice is not None:
            return ExplainedBarrier(barrier, name, advice, cost)
    return ExplainedBarrier(barrier, "", "", cost)
