"""What `explain` costs beyond compiling: `python benchmarks/explain.py [--targets h100 v5e cpu] [--rounds 3]`.

A function is lowered and compiled bare, in a process of its own with the environment of a worker, and explained; the
two take turns, and of each the fastest round counts. Printed is the ratio that the house holds to 1.25: explain's wall
time, less `import jax` and half a second to start the worker, over the bare lowering and compiling. Exit status 1 where
it does not hold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import CompileError
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_many, worker_environment
from fusionlint.explained import explain
from fusionlint.report.explain_text import report_text
from fusionlint.rule import all_rules

HERE = Path(__file__).parent
CARTPOLE = HERE.parent / "examples" / "cartpole"
LIMIT, START = 1.25, 0.5
SPECS = {
    "b_scan_rng_concat": f"{CARTPOLE / 'b_scan_rng_concat.py'}:rollout(f32[2048,4], key)",
    "e_unroll": f"{CARTPOLE / 'e_unroll.py'}:rollout(f32[2048,4])",
    "deep": f"{HERE / 'deep.py'}:train(f32[256,256])",
}
BARE = """
import sys, time
begin = time.perf_counter()
import jax
from fusionlint.compiling import arguments, loading
from fusionlint.compiling.devices import device
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.targets import get
imported = time.perf_counter()
target, entry = get(sys.argv[2]), parse_spec(sys.argv[1])
sharding = device(target)
function = loading.load(entry)
given = arguments.abstract(entry, function, sharding)
ready = time.perf_counter()
arguments.traced(function, given).lower().compile()
print(ready - begin, time.perf_counter() - ready)
"""


def bare(spec: str, target: targets.Target) -> tuple[float, float]:
    """Seconds until the function is there, and of its lowering and compiling."""
    command = [sys.executable, "-c", BARE, spec, target.name]
    done = subprocess.run(
        command,
        env=worker_environment(target),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    ready, compiling = map(float, done.stdout.split())
    return ready, compiling


def explained(spec: str, target: targets.Target) -> float:
    """Seconds of all that `explain` does, from the SPEC to the text."""
    rules = all_rules()
    begin = time.perf_counter()
    with TemporaryDirectory() as home:
        (result,) = compile_many([parse_spec(spec)], target, outdir=Path(home, "jobs"))
        if isinstance(result, CompileError):
            raise result
        report_text(explain(result, rules))
    return time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="*", default=["h100", "v5e", "cpu"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    worst = 0.0
    print("| function | target | until there | lower and compile | explain | ratio |\n|---|---|---|---|---|---|")
    for target in map(targets.get, options.targets):
        for name, spec in SPECS.items():
            rounds = [(*bare(spec, target), explained(spec, target)) for _ in range(options.rounds)]
            ready, compiling, whole = (min(column) for column in zip(*rounds, strict=True))
            ratio = (whole - ready - START) / compiling
            worst = max(worst, ratio)
            print(f"| {name} | {target.name} | {ready:.2f} s | {compiling:.2f} s | {whole:.2f} s | {ratio:.2f} |")
    print(f"\nworst ratio {worst:.2f}, limit {LIMIT}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
