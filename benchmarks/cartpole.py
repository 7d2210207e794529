"""The table of examples/cartpole/README.md: launches per environment step, and time per step on this machine's CPU.

    python benchmarks/cartpole.py [--targets cpu h100 v5e] [--batches 64 2048 65536] [--no-time]

Launches are read off what each target's compiler makes; a target whose compiler is not installed is left out. Times
of the five variants are taken in turns and given as ratios: the seconds are this machine's own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Artifacts, CompileError
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_many
from fusionlint.hlo.kernels import Kernel, kernels
from fusionlint.hlo.parse import parse

FOLDER = Path(__file__).parents[1] / "examples" / "cartpole"
VARIANTS = ("a_python_loop", "b_scan_rng_concat", "c_no_rng", "d_tuple_carry", "e_unroll")
STEPS = 1000  # in one rollout of each variant
ROUNDS = 5


def spec(variant: str, batch: int) -> str:
    """What to compile: of `a` the step, which Python calls STEPS times; of the others the whole rollout."""
    state, total = f"f32[{batch},4]", f"f32[{batch}]"
    function = {"a": f"step({state}, {total}, key, {state})", "b": f"rollout({state}, key)"}
    return f"{FOLDER / variant}.py:{function.get(variant[0], f'rollout({state})')}"


def per_step(variant: str, launched: Sequence[Kernel]) -> tuple[float, float]:
    """(launches, of these copies) in one environment step."""
    every_step = launched if variant.startswith("a") else [kernel for kernel in launched if kernel.loop]
    steps = 1 if variant.startswith("a") else STEPS
    copies = [kernel for kernel in every_step if kernel.kind == "copy"]
    return sum(kernel.launches for kernel in every_step) / steps, sum(kernel.launches for kernel in copies) / steps


def launches(target: targets.Target, batches: Sequence[int]) -> dict[tuple[str, int], tuple[float, float]]:
    """(variant, batch) -> (launches, copies) per environment step on `target`. Raises CompileError."""
    cells = [(variant, batch) for variant in VARIANTS for batch in batches]
    made = compile_many([parse_spec(spec(*cell)) for cell in cells], target)
    return {cell: per_step(cell[0], kernels(parse(_text(one)))) for cell, one in zip(cells, made, strict=True)}


def _text(result: Artifacts | CompileError) -> str:
    if isinstance(result, CompileError):
        raise result
    return result.after


def microseconds(batches: Sequence[int], platform: str = "cpu") -> dict[tuple[str, int], float]:
    """(variant, batch) -> microseconds per environment step on this machine's CPU, or its GPU where `platform` is
    "cuda": the fastest of ROUNDS rollouts, the variants taking turns: what else a machine does only ever adds to a
    time."""
    os.environ["JAX_PLATFORMS"] = platform
    import jax  # it reads its environment as it is imported

    sys.path.insert(0, str(FOLDER))
    rollouts = {variant: importlib.import_module(variant).rollout for variant in VARIANTS}
    key = jax.random.key(0)
    times: dict[tuple[str, int], list[float]] = {}
    for batch in batches:
        start = jax.random.uniform(key, (batch, 4), minval=-0.05, maxval=0.05)
        for number in range(ROUNDS + 1):
            for variant, rollout in rollouts.items():
                seconds = _seconds(rollout, (start, key) if variant[0] in "ab" else (start,))
                if number:  # the first call compiles
                    times.setdefault((variant, batch), []).append(seconds)
    return {cell: min(taken) / STEPS * 1e6 for cell, taken in times.items()}


def _seconds(function: Any, args: tuple[Any, ...]) -> float:
    begin = time.perf_counter()
    function(*args).block_until_ready()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="*", default=["h100", "v5e", "cpu"])
    parser.add_argument("--batches", nargs="*", default=[64, 2048, 65536], type=int)
    parser.add_argument("--no-time", action="store_true", help="launches alone")
    parser.add_argument("--gpu", action="store_true", help="time on the attached GPU, not on the CPU")
    options = parser.parse_args()
    for target in map(targets.get, options.targets):
        absent = targets.missing(target)
        if absent:
            print(f"{target.name} left out: {absent}\n")
            continue
        found = ", ".join(f"{name} {version}" for name, version in targets.versions(target).items())
        counts = launches(target, options.batches)
        cells = {
            cell: f"{count:g} ({copies:g})" if copies else f"{count:g}" for cell, (count, copies) in counts.items()
        }
        _print_table(f"{target.name}: launches (copies) per step", options.batches, cells)
        print(f"{found}\n")
    if not options.no_time:
        times = microseconds(options.batches, "cuda" if options.gpu else "cpu")
        cells = {
            cell: f"{_short(us / times['d_tuple_carry', cell[1]])} ({_short(us)} us)" for cell, us in times.items()
        }
        _print_table(f"time on this {'GPU' if options.gpu else 'CPU'}, d = 1", options.batches, cells)


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _print_table(title: str, batches: Sequence[int], cells: dict[tuple[str, int], str]) -> None:
    print(f"| {title} | " + " | ".join(f"{batch} carts" for batch in batches) + " |")
    print("|---" * (len(batches) + 1) + "|")
    for variant in VARIANTS:
        print(f"| `{variant}` | " + " | ".join(cells[variant, batch] for batch in batches) + " |")


if __name__ == "__main__":
    main()
