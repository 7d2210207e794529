"""docs/fidelity.md: what a compilation without the GPU gets otherwise than one on it. Needs an attached GPU that is a
target of fusionlint (`fusionlint targets`), and writes the page anew.

    python benchmarks/fidelity.py [--batches 64 2048 65536] [--page docs/fidelity.md]

Each function is compiled twice, on the device and from its description alone, and the lists of kernels are compared.
What runs, and how long it takes, is gpu_times.py's.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

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


def page(device: Target, rows: Sequence[tuple[str, Comparison]]) -> str:
    """docs/fidelity.md, from (SPEC, comparison) for each function."""
    found = ", ".join(f"{name} {version}" for name, version in versions(device).items())
    same = sum(comparison.is_same for _, comparison in rows)
    lines = [
        "# How true is a compilation without the device?",
        "",
        f"Measured {datetime.now(timezone.utc):%Y-%m-%d} on {device.what} with {found}, by `{COMMAND}`.",
        "",
        f"Of {len(rows)} functions, {same} have the same kernels, launched as often, whether the GPU is there or not.",
        "How long they take on it is in [gpu.md](gpu.md).",
        "",
        "| function | launches alike | only without the device | only on it |",
        "|---|---|---|---|",
        *(_row(*row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _row(spec: str, found: Comparison) -> str:
    only = _listed(found.only_described), _listed(found.only_device)
    return f"| `{spec.removeprefix(f'{ROOT}/')}` | {found.both} | {only[0]} | {only[1]} |"


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
    options = parser.parse_args()
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
        rows.append((spec, compared(described.kernels, real.kernels)))
        print(_row(*rows[-1]), flush=True)
    options.page.write_text(page(device, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
