"""Times the bad and the good form of the rules' pages on this machine's CPU: `python benchmarks/cpu_times.py [RULE]...`

A CPU's launches are calls of functions: fewer of them, and fewer bytes, can still take longer. A page that claims harm
on a CPU where the good form is clearly the slower one has to be told so: `accelerators` before the call in the specs of
its blocks leaves the CPU out. Exit code 1 names such pages. Both forms take turns, and the quickest of each counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import timing
from timing import measuring

from fusionlint.page import Page, Pair, pages_folder, read_page

ROUNDS, SECONDS = 100, 2.0  # a pair is timed so often at most, and so long
CLEARLY = 1.25  # what is slower by less is noise


@dataclass(frozen=True)
class Row:
    """A pair of a page, its forms timed in seconds, and whether the page claims that the bad one harms a CPU."""

    page: str
    number: int
    bad: float
    good: float
    is_claimed: bool

    @property
    def is_refuted(self) -> bool:
        return self.is_claimed and self.good > CLEARLY * self.bad

    def text(self) -> str:
        said = "refutes the page" if self.is_refuted else "" if self.is_claimed else "(no claim)"
        times = f"{self.bad * 1e6:9.1f} -> {self.good * 1e6:9.1f} us"
        return f"{self.page:32} {self.number}  {times}  {self.bad / self.good:6.2f} x  {said}".rstrip()


def rows(names: Sequence[str]) -> Iterator[Row]:
    """The pairs of these pages that are compiled for hardware at all."""
    with tempfile.TemporaryDirectory(prefix="cpu-times-") as folder:
        for page in (read_page(name, pages_folder()) for name in names):
            for number, pair in timing.pairs_of(page):
                if not (measuring.is_run(pair) or measuring.is_lowered(pair)):
                    yield _row(page, number, pair, Path(folder))


def _row(page: Page, number: int, pair: Pair, folder: Path) -> Row:
    programs = [
        timing.program(block, folder, f"{page.name}_{number}_{i}") for i, block in enumerate((pair.bad, pair.good))
    ]
    for program in programs:
        timing.seconds(program.jitted, program.arrays)  # compiles
    quickest = [float("inf"), float("inf")]
    end = time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        for i, program in enumerate(programs):
            quickest[i] = min(quickest[i], timing.seconds(program.jitted, program.arrays))
        if time.perf_counter() > end:
            break
    return Row(page.name, number, *quickest, is_claimed="cpu" in page.targets_of[number])


def main() -> int:
    refuted = []
    for row in rows(sys.argv[1:] or sorted(path.stem for path in pages_folder().glob("*.md"))):
        print(row.text(), flush=True)
        refuted += [row.page] if row.is_refuted else []
    if refuted:
        print(f"slower on this CPU than what they advise against: {', '.join(dict.fromkeys(refuted))}")
    return int(bool(refuted))


if __name__ == "__main__":
    sys.exit(main())
