"""What the programs of examples/programs cost, before and after the fixes that their reports suggest (fixed/).

    python benchmarks/programs.py [--targets h100 v5e] [NAME...]

`compiled` are programs, those of eager operations with them, as `fusionlint run` counts them on the CPU. `CPU seconds`
are those of the whole plain program. Launches are those of one call of the function that the program is about; of a
loop of unknown length they are per iteration.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusionlint.compiling import targets
from fusionlint.compiling.scripts import run_script
from fusionlint.explained import Report
from fusionlint.recorded import explain_recorded
from fusionlint.recording import Recording

PROGRAMS = Path(__file__).parents[1] / "examples" / "programs"
# How the name of the function that each is about begins, in both of its forms.
ABOUT = {
    "ppo": "train",
    "fit": "step",
    "flax_mnist": "train_step",
    "diffrax_pendulum": "diffeqsolve(",
    "numpyro_svi": "SVI.update(",
}
FIXED = ("ppo", "fit", "diffrax_pendulum", "numpyro_svi")


@dataclass(frozen=True)
class Cost:
    """Programs that were compiled, and the compiler's seconds for all of them."""

    compiled: int
    seconds: float


def recorded(path: Path, *arguments: str) -> Recording:
    """What the program compiles on a CPU, lowered for other hardware too. Raises RuntimeError where it fails."""
    before = os.environ.get("JAX_PLATFORMS")
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        ran = run_script(str(path), arguments, ("cpu", "cuda", "tpu"))
    finally:
        os.environ.pop("JAX_PLATFORMS") if before is None else os.environ.update(JAX_PLATFORMS=before)
    if ran.status:
        raise RuntimeError(f"{path} failed with status {ran.status}")
    return ran.recording


def cost(recording: Recording) -> Cost:
    """Of compiling all of it."""
    lines = recording.eager
    return Cost(
        recording.compilations + sum(line.programs for line in lines),
        sum(one.seconds for one in recording.functions) + sum(line.seconds for line in lines),
    )


def launches(recording: Recording, function: str, target: str) -> int:
    """Of the function whose name begins so, once it is compiled for the target."""
    told = explain_recorded(recording, [targets.get(target)])
    (report,) = (one.results[0] for one in told if one.function.name.startswith(function))
    if not isinstance(report, Report):
        raise RuntimeError(report.message)
    return int(report.launches_per_iteration or report.launches)


def cpu_seconds(path: Path) -> float:
    """Of the program as it is, run by itself on the CPU."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, str(path)], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FIXED))
    parser.add_argument("--targets", nargs="*", default=["h100", "v5e"])
    options = parser.parse_args()
    print(f"| program | compiled | CPU seconds | {' | '.join(options.targets)} |")
    print("|---" * (len(options.targets) + 3) + "|")
    for name in options.names or FIXED:
        paths = [PROGRAMS / f"{name}.py", PROGRAMS / "fixed" / f"{name}.py"]
        both = [recorded(path) for path in paths]
        cells = [
            _change([cost(one).compiled for one in both]),
            _change([round(cpu_seconds(path), 1) for path in paths]),
        ]
        cells += [_change([launches(one, ABOUT[name], target) for one in both]) for target in options.targets]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


def _change(numbers: Sequence[float]) -> str:
    return " -> ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in dict.fromkeys(numbers))


if __name__ == "__main__":
    main()
