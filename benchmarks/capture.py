"""What capturing costs a program: `python benchmarks/capture.py [--rounds 5] [PROGRAM.py ...]`.

Each program runs plain and under capture, in turns, in processes of their own; of each the round with the fewest
seconds counts. Seconds are those of all cores (user and system), which other work on the machine does not stretch as it
does the clock. The ratio of the two is held against 1.05, and against the noise: how far the median of the plain rounds
is above the best. What comes after the program, lowering what was kept for an H100 and a TPU, is counted apart. Exit
status 1 where a program takes more by more than both.

By default: `start`, which is hardly more than the start (about 30 ms to import what captures, and often a collection of
garbage that comes sooner, some 50 ms; it is shown and not held against the limit); `dispatches`, a million calls of
compiled functions, which pass no hook; `compilations`, 400 programs, each of which does; and the real programs of
examples/programs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fusionlint.compiling.scripts import run_script

PROGRAMS = Path(__file__).parents[1] / "examples" / "programs"
LIMIT = 1.05
SYNTHETIC = {
    "start": """\
import jax.numpy as jnp
jnp.ones(8).block_until_ready()
""",
    "dispatches": """\
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x * 2 + 1)
x = jnp.ones(8)
for _ in range(500_000):
    x = step(x)
    x = x * 0.5
x.block_until_ready()
""",
    "compilations": """\
import jax, jax.numpy as jnp
step = jax.jit(lambda x: (x * 2).sum())
for n in range(1, 201):
    step(jnp.ones(n))
""",
}


def plain(program: Path) -> float:
    """Seconds of a run without fusionlint."""
    before = used()
    subprocess.run([sys.executable, str(program)], check=True, stdout=subprocess.DEVNULL)
    return used() - before


def captured(program: Path, *platforms: str) -> float:
    """Seconds of a run under capture, with what it lowers at its end."""
    before = used()
    with silent():
        assert run_script(str(program), (), platforms).status == 0
    return used() - before


def used() -> float:
    """Seconds that the processes took that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def silent():
    """What a child prints goes nowhere."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    failed = False
    print(
        "| program | plain | captured | ratio | noise | lowering for cuda and tpu |\n|---|---|---|---|---|---|",
        flush=True,
    )
    with TemporaryDirectory() as folder:
        for name, text in SYNTHETIC.items():
            Path(folder, f"{name}.py").write_text(text)
        synthetic = [Path(folder, f"{name}.py") for name in SYNTHETIC]
        for program in options.programs or [*synthetic, *sorted(PROGRAMS.glob("*.py"))]:
            pairs = [(plain(program), captured(program)) for _ in range(options.rounds)]
            without, within = ([*column] for column in zip(*pairs, strict=True))
            ratio, noise = min(within) / min(without), statistics.median(without) / min(without)
            lowering = max(0.0, captured(program, "cuda", "tpu") - min(within))
            failed |= ratio > max(LIMIT, noise) and program.stem != "start"
            row = f"| {program.stem} | {min(without):.2f} s | {min(within):.2f} s | {ratio:.3f} | {noise:.3f} |"
            print(f"{row} {lowering:.2f} s |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
