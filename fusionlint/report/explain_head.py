"""Report -> the lines above the barriers: how many launches, how they are launched, how long they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fusionlint.explained import Report
from fusionlint.hlo.kernels import Kernel, Loop, launched, total
from fusionlint.hlo.thunks import A_GRAPH, GRAPHS_OF_TWO, one_by_one
from fusionlint.report.source_lines import where_from
from fusionlint.report.units import counted, duration, listed, size

# What names a target: where no command line does.
IN_PYTHON = 'target="h100"'
IN_PYTEST = "--fusionlint-target"
_LOOPS = 3  # so many kinds, those that launch most, are told apart
_GRAPHS = 2  # so many kinds of CUDA graphs
# So many kernels are named at most, each of so great a share and so many times the mean.
_DEAREST, _SHARE, _MEAN = 3, 0.2, 4


def head(report: Report, option: str = "--target") -> Iterator[str]:
    """The first lines of the report: the totals in one breath, then what is to be known about them. `option` is what
    names a target where the report is read."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"{report.entry} on {_hardware(report)}" + (f" ({versions})" if versions else "")
    compiled = f"; compiled in {report.compile_seconds:.1f} s" if report.compile_seconds else ""
    each = "each of them: " if report.devices > 1 else ""
    yield f"{each}{_launches(report)}, {_bytes(report)}{_time(report)}{compiled}"
    yield f"kernels: {_listed(report.stages.kernels)}"
    if sent := _sent(report):
        yield f"collectives: {sent}"
    if scalar := _scalar_ops(report):
        yield f"{scalar} between kernels"
    yield from _dearest(report)
    yield from _graphs(report)
    if report.target == "cpu":
        yield f"these are CPU counts: no guide to a GPU or TPU; name one with {option}"
    yield from report.notes
    if not report.barriers:
        yield "no value crosses memory between two kernels"


def _sent(report: Report) -> str:
    """`2 all-reduce (1.3 MB in all), 1 all-gather (4.2 MB)`: how often each, and what a device hands in; of a
    conditional's branches the one that does most. "" without any."""
    alike: dict[str, list[Kernel]] = {}
    for kernel in report.kernels:
        if kernel.kind == "collective":
            alike.setdefault(", ".join(kernel.opcodes), []).append(kernel)
    return ", ".join(_told(name, kernels) for name, kernels in alike.items())


def _told(name: str, kernels: Sequence[Kernel]) -> str:
    times, moved = launched(kernels), total(kernels, lambda kernel: kernel.launches * kernel.bytes_read)
    return f"{times} {name} ({size(moved)}{' in all' if times > 1 else ''})"


def brief(report: Report) -> str:
    """`env.py:step(f32[8]) on h100: 7 launches, 10.1 kB`: what fits on one line."""
    return f"{report.entry} on {_hardware(report)}: {_launches(report)}, {_bytes(report)}"


def _hardware(report: Report) -> str:
    """`h100`, or `4 x h100` for a program that four run together."""
    return f"{report.devices} x {report.target}" if report.devices > 1 else report.target


def _launches(report: Report) -> str:
    """`1000 steps x 4 launches + 2 x 20 steps x 3 + 6 = 4126 launches`: the loops that launch most, like ones together,
    and the rest."""
    totals = report.totals
    whole = counted(totals.launches, "launch", "launches")
    if totals.launches_per_iteration:
        again = counted(totals.launches_per_iteration, "launch", "launches")
        return f"{whole} and {again} {_of_each(report)}"
    outer = [loop for loop in report.loops if loop.parent is None and 0 < _loop_launches(loop) <= totals.launches]
    outer.sort(key=_loop_launches, reverse=True)
    kinds = [*dict.fromkeys(map(_kind, outer))][:_LOOPS]
    shown = [loop for loop in outer if _kind(loop) in kinds]
    # Of a conditional's branches the dearest counts: not all of their loops are in the totals.
    while sum(map(_loop_launches, shown)) > totals.launches:
        shown.pop()
    if not shown:
        return whole
    alike = Counter(map(_kind, shown))
    parts = [f"{f'{alike[kind]} x ' if alike[kind] > 1 else ''}{kind[0]} steps x {kind[1]}" for kind in alike]
    parts[0] += " launch" if shown[0].launches_per_iteration == 1 else " launches"
    return f"{' + '.join(parts)} + {totals.launches - sum(map(_loop_launches, shown))} = {whole}"


def _kind(loop: Loop) -> tuple[int, int]:
    """How many steps a loop has, and how many launches each."""
    return loop.trip_count or 0, loop.launches_per_iteration


def _of_each(report: Report) -> str:
    """Of which loops the launches per iteration are: no one loop has those of all."""
    unknown = [loop for loop in report.loops if loop.trip_count is None and loop.launches_per_iteration]
    if len(unknown) < 2:
        return "per iteration of a loop of unknown length"
    return f"in an iteration of each of {len(unknown)} loops of unknown length"


def _loop_launches(loop: Loop) -> int:
    return (loop.trip_count or 0) * loop.launches_per_iteration


def _bytes(report: Report) -> str:
    again = report.totals.bytes_per_iteration
    return size(report.totals.bytes) + (f" and {size(again)} per iteration" if again else "")


def _time(report: Report) -> str:
    totals = report.totals
    if totals.microseconds is None or not totals.timed_by:  # nothing is known, or nothing is launched
        return ""
    again = totals.microseconds_per_iteration
    more = f" and {duration(again)} per iteration" if again else ""
    takes = duration(totals.microseconds)
    about = "" if takes.startswith("under") else "about "
    return f", {about}{takes}{more} by {listed([*totals.timed_by])}"


def _scalar_ops(report: Report) -> str:
    """`3 of the launches are scalar ops: the scalar core runs them`, `3 of the launches, and 4 of those per iteration,
    are ...`; "" for none."""
    once, again = report.totals.scalar_ops, report.totals.scalar_ops_per_iteration
    if not once and not again:
        return ""
    of = f"{once or again} of the launches{'' if once else ' per iteration'}"
    of += f", and {again} of those per iteration," if once and again else ""
    if once + again == 1:
        return f"{of} is a scalar op: the scalar core runs it"
    return f"{of} are scalar ops: the scalar core runs them"


def _dearest(report: Report) -> Iterator[str]:
    """The kernels that each take a great part of the whole, and much more than the others do: no barrier says it."""
    totals = report.totals
    every = [kernel for kernel in report.kernels if kernel.kind != "scalar"]
    for kernel in sorted(every, key=_microseconds, reverse=True)[:_DEAREST]:
        again = kernel.per_iteration
        whole = totals.microseconds_per_iteration if again else totals.microseconds
        alike = sum(other.per_iteration == again for other in every)
        if not whole or _microseconds(kernel) < whole * max(_SHARE, _MEAN / alike):
            continue
        of = f"{duration(_microseconds(kernel))} of {duration(whole)}{' per iteration' if again else ''}"
        times = f", launched {kernel.launches} times" if kernel.launches > 1 else ""
        place = f": {place}" if (place := where_from(kernel.stack)) else ""
        yield f"{of} are one kernel, {kernel.name}{times}{place}"


def _microseconds(kernel: Kernel) -> float:
    return kernel.launches * (kernel.microseconds or 0.0)


def _graphs(report: Report) -> Iterator[str]:
    """Of each CUDA graph how many launches it is made of, and where; and what might be one."""
    graphs = Counter((kernel.graph, kernel.loop) for kernel in report.kernels if kernel.graph is not None)
    alike = Counter((launches, loop is not None) for (_, loop), launches in graphs.items())
    if len(alike) > _GRAPHS:
        in_steps = sum(loop is not None for _, loop in graphs)
        of = f", {in_steps} of them in the steps of loops" if in_steps else ""
        yield f"{len(graphs)} CUDA graphs, of {min(graphs.values())} to {max(graphs.values())} launches each{of}"
    for (launches, in_loop), times in alike.items() if len(alike) <= _GRAPHS else ():
        where = " of every step" if in_loop else ""
        said = f"{counted(launches, 'launch', 'launches')}{where} {'go' if launches > 1 else 'goes'} as one CUDA graph"
        yield f"{times} times {said}" if times > 1 else said
    once, again = report.totals.host_launches, report.totals.host_launches_per_iteration
    if once is None:
        return
    if graphs and once > len(graphs):
        yield f"the host launches {once} times" + (f", and {again} per iteration" if again else "")
    if few := sorted({*one_by_one(report.kernels, report.loops)}):
        yield (
            f"{listed([*map(str, few)])} launches of every step go one by one: XLA makes a CUDA graph of {A_GRAPH} or "
            f"more, or of 2 with XLA_FLAGS={GRAPHS_OF_TWO}, 1.6 to 4 times as fast on an H200"  # docs/gpu.md
        )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none"
