"""How long reading HLO takes, and how much memory: `python benchmarks/reading.py [--instructions 100000]`.

The program is made of the texts in tests/hlo, their computations renamed and repeated, so that lines are as long as
XLA's own. Limits, at 100 000 instructions: 2.5 s and 500 MB for the text with its Module. What follows (kernels,
barriers, times) is printed beside. Exit status 1 where a limit does not hold.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import barriers
from fusionlint.hlo.kernels import kernels
from fusionlint.hlo.times import Rates, timed

TEXTS = Path(__file__).parents[1] / "tests" / "hlo"
SOURCES = ("scan_h100_jax0.10.2.txt", "nested_scan_h100_jax0.10.2.txt", "layers_h100_jax0.10.2.txt")
SECONDS, MEGABYTES = 2.5, 500
Result = TypeVar("Result")


def program(instructions: int) -> str:
    """HLO text with at least so many instructions: copies of the sources' computations, all called from ENTRY."""
    split = [_split((TEXTS / name).read_text()) for name in SOURCES]
    sources = [body for _, body in split]
    parts, entries, count = [split[0][0]], [], 0
    while count < instructions:
        number = len(entries)
        body = sources[number % len(sources)]
        names = set(re.findall(r"^(?:ENTRY )?%?([\w.\-]+) (?:\(.*)?\{$", body, re.MULTILINE))
        copy = re.sub(r"%([\w.\-]+)", lambda found: f"%{found[1]}.copy{number}", body)  # noqa: B023  used at once
        entries.append(next(f"{name}.copy{number}" for name in names if f"ENTRY %{name} " in body))
        parts.append(copy.replace("ENTRY ", ""))
        count += body.count(" = ")
    return "".join(parts) + _entry(entries, parts)


def _split(text: str) -> tuple[str, str]:
    """The head with its tables of source lines, and the computations."""
    start = re.search(r"^(?:ENTRY )?%", text, re.MULTILINE)
    assert start
    return text[: start.start()], text[start.start() :] + "\n"


def _entry(entries: list[str], parts: list[str]) -> str:
    return (
        "ENTRY %whole (p: f32[]) -> f32[] {\n" + "".join(_calls(entries, parts)) + "  ROOT %p = f32[] parameter(0)\n}\n"
    )


def _calls(entries: list[str], parts: list[str]) -> Iterator[str]:
    """A call of each copy, with inputs of its own."""
    for number, (name, part) in enumerate(zip(entries, parts[1:], strict=True)):
        block = part[part.index(f"%{name} ") :]
        shapes = re.findall(r"= (\S+) parameter\((\d+)\)", block)
        result = re.findall(r"ROOT %\S+ = (\(.*?\)|\S+) ", block)[0]
        given = [f"%in.{number}.{i}" for i in range(len(shapes))]
        for shape, i in shapes:
            yield f"  %in.{number}.{i} = {shape} constant({{...}})\n"
        yield f"  %call.{number} = {result} call({', '.join(given)}), to_apply=%{name}\n"


def measured(what: str, work: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - begin
    print(f"| {what} | {seconds:.2f} s | {_peak():.0f} MB |")
    return result, seconds


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", type=int, default=100_000)
    options = parser.parse_args()
    text = program(options.instructions)
    print(f"{len(text) / 1e6:.1f} MB of text\n\n| step | time | peak memory |\n|---|---|---|")
    module, seconds = measured("read", lambda: hlo.parse(text))
    memory = _peak()
    every, _ = measured("kernels", lambda: kernels(module))
    measured("times", lambda: timed(module, every, Rates(3.35e12, 1.0)))
    found, _ = measured("barriers", lambda: barriers(module))
    count = sum(len(computation.instructions) for computation in module.computations.values())
    share = count / 100_000
    print(f"\n{count} instructions, {len(every)} kernels, {len(found)} barriers; limits {SECONDS} s, {MEGABYTES} MB")
    return int(seconds > SECONDS * share or memory > MEGABYTES * max(share, 0.2))


if __name__ == "__main__":
    sys.exit(main())
