"""docs/fidelity.md: what a compilation without the GPU gets otherwise than one on it, and XLA's microseconds against
the clock. Needs an attached GPU that is a target of fusionlint (`fusionlint targets`), and writes the page anew.

    python benchmarks/fidelity.py [--batches 64 2048 65536] [--page docs/fidelity.md]

Each function is compiled twice, on the device and from its description alone; the lists of kernels are compared, and
each kernel of the first is timed by jax's profiler while the function runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import cartpole

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job
from fusionlint.compiling.attached import chosen
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.executing import compile_all
from fusionlint.compiling.targets import Target, TargetError, versions
from fusionlint.explained import Report, explain
from fusionlint.hlo.kernels import Kernel

ROOT = Path(__file__).parents[1]
COMMAND = "python benchmarks/fidelity.py"
OTHERS = (
    "softmax(f32[4096,1024])",
    "sort_then_fft(f32[64,4096])",
    "noise(f32[1024,1024], key)",
    "solve(f32[64,64], f32[64,64])",
)
Did = tuple[str, tuple[str, ...]]  # a kernel's kind, and the operations in it: what outlasts its name


@dataclass(frozen=True)
class Comparison:
    """Kernels of two compilations of one function: launches of what both have, and of what only one has."""

    both: int
    only_described: Mapping[Did, int]
    only_device: Mapping[Did, int]

    @property
    def is_same(self) -> bool:
        return not self.only_described and not self.only_device


def compared(described: Sequence[Kernel], device: Sequence[Kernel]) -> Comparison:
    """Launches by what the kernels do: those of the compilation without the device, and of that on it."""
    first, second = _launches(described), _launches(device)
    return Comparison((first & second).total(), dict(first - second), dict(second - first))


def _launches(every: Sequence[Kernel]) -> Counter[Did]:
    launches: Counter[Did] = Counter()
    for kernel in every:
        launches[kernel.kind, tuple(sorted(kernel.opcodes))] += kernel.launches
    return launches


@dataclass(frozen=True)
class Timing:
    """One kernel: microseconds by our report and by the device's clock, from its start to its end."""

    name: str
    modelled: float
    measured: float


def timings(every: Sequence[Kernel], measured: Mapping[str, float], launch_us: float) -> list[Timing]:
    """Of the kernels that both have a time. The report's has the `launch_us` of a launch in it, the clock's has not."""
    return [
        Timing(kernel.name, kernel.microseconds - launch_us, measured[kernel.name])
        for kernel in every
        if kernel.microseconds is not None and kernel.name in measured
    ]


def events(planes: Any) -> Iterator[tuple[str, float]]:
    """(HLO instruction, microseconds) of every event of a jax.profiler.ProfileData that has one. On a GPU those of
    its streams alone: what other lines tell is told twice."""
    planes = list(planes)
    devices = [plane for plane in planes if plane.name.startswith("/device:GPU")]
    for plane in devices or planes:
        for line in plane.lines:
            if devices and not line.name.startswith("Stream"):
                continue
            for event in line.events:
                name = dict(event.stats).get("hlo_op")
                if name:
                    yield str(name), event.duration_ns / 1000


def measure(spec: str) -> dict[str, float]:
    """HLO instruction -> median microseconds of its executions, in one run of the function after two that warm up."""
    import jax

    from fusionlint.compiling import arguments, loading

    entry = parse_spec(spec)
    function = loading.load(entry)
    args, kwargs = arguments.concrete(entry, function)  # arrays all
    run = arguments.traced(function, (args, kwargs)).lower().compile()
    for _ in range(2):
        jax.block_until_ready(run(*args, **kwargs))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(run(*args, **kwargs))
        (file,) = Path(folder).rglob("*.xplane.pb")
        found: dict[str, list[float]] = {}
        for name, microseconds in events(jax.profiler.ProfileData.from_file(str(file)).planes):
            found.setdefault(name, []).append(microseconds)
    return {name: statistics.median(every) for name, every in found.items()}


def measured_apart(spec: str) -> dict[str, float]:
    """`measure` in a process of its own; {} where it fails, which is said on stderr."""
    done = subprocess.run([sys.executable, __file__, "--measure", spec], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}


def page(device: Target, rows: Sequence[tuple[str, Comparison, Sequence[Timing]]]) -> str:
    """docs/fidelity.md, from (SPEC, comparison, timings) for each function."""
    found = ", ".join(f"{name} {version}" for name, version in versions(device).items())
    same = sum(comparison.is_same for _, comparison, _ in rows)
    lines = [
        "# How true is a compilation without the device?",
        "",
        f"Measured {datetime.now(timezone.utc):%Y-%m-%d} on {device.what} with {found}, by `{COMMAND}`.",
        "",
        f"Of {len(rows)} functions, {same} have the same kernels, launched as often, whether the GPU is there or not.",
        "Times are of one kernel without its launch: report over device, each function's median kernel.",
        "",
        "| function | launches alike | only without the device | only on it | reported / measured |",
        "|---|---|---|---|---|",
        *(_row(*row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _row(spec: str, found: Comparison, times: Sequence[Timing]) -> str:
    ratios = [time.modelled / time.measured for time in times if time.measured]
    ratio = f"{statistics.median(ratios):.2f} of {len(ratios)} kernels" if ratios else "not measured"
    name = spec.removeprefix(f"{ROOT}/")
    return f"| `{name}` | {found.both} | {_listed(found.only_described)} | {_listed(found.only_device)} | {ratio} |"


def _listed(launches: Mapping[Did, int]) -> str:
    return "; ".join(f"{count} {kind} ({', '.join(opcodes)})" for (kind, opcodes), count in launches.items()) or "none"


def _report(result: Artifacts | CompileError) -> Report:
    if isinstance(result, CompileError):
        raise SystemExit(f"fidelity: {result}")
    return explain(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", nargs="*", default=[64, 2048, 65536], type=int)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "fidelity.md")
    parser.add_argument("--measure", metavar="SPEC", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    try:
        (device,) = chosen(["gpu"])
    except TargetError as error:
        raise SystemExit(f"fidelity: {error}") from None
    if not device.device:
        raise SystemExit(f"fidelity: {device.what} is not a target; add it to fusionlint/compiling/targets.py first")
    specs = [cartpole.spec(variant, batch) for variant in cartpole.VARIANTS for batch in options.batches]
    specs += [f"{ROOT / 'tests' / 'data' / 'explained.py'}:{call}" for call in OTHERS]
    jobs = [(Job(parse_spec(spec)), target) for spec in specs for target in (device._replace(attached=False), device)]
    made = [_report(result) for result in compile_all(jobs)]
    rows = []
    for spec, described, real in zip(specs, made[::2], made[1::2], strict=True):
        times = timings(real.kernels, measured_apart(spec), device.launch_us or 0.0)
        rows.append((spec, compared(described.kernels, real.kernels), times))
        print(_row(*rows[-1]), flush=True)
    options.page.write_text(page(device, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
