"""docs/fixed.md: what fixes gain by a GPU's clock, of what gpu_tried.py exported and gpu_times.py timed."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import package_steps
from gpu_page import short, table, wrapped

from fusionlint.explained import Totals
from fusionlint.trials import Trial

GPU = "h200"
NOISE = 0.02
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Timed:
    """A program as it was timed, the one without fixes that it belongs to, and what `explain` says of both."""

    row: Row
    plain: Row
    told: Totals | None
    told_plain: Totals | None

    @property
    def ratio(self) -> float:
        """Of the kernels' time, over what it was."""
        return float(self.row["busy_us"] / self.plain["busy_us"])

    @property
    def word(self) -> str:
        """By the clock: as a Trial has it of what `explain` reports, but that two per cent are noise."""
        return "better" if self.ratio < 1 - NOISE else "worse" if self.ratio > 1 + NOISE else "same"

    @property
    def said(self) -> str:
        """What `--try-fixes` says of it; "" where it says nothing."""
        if self.told is None or self.told_plain is None:
            return ""
        return Trial(GPU, (), self.told_plain, self.told).word


def timed(path: Path) -> tuple[Row, list[Timed]]:
    """What it was measured on, and what was timed, the programs without fixes left out."""
    head, *rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    beside = path.with_name(f"{path.stem}-reported.jsonl").read_text(encoding="utf-8").splitlines()
    totals = {row["file"]: _totals(row) for row in map(json.loads, beside[1:]) if "error" not in row}
    rows = [row for row in rows if "busy_us" in row]
    plain = {_group(row): row for row in rows if row["form"] in ("", "bad") and not row["fixes"]}
    return head, [
        Timed(row, beside, totals.get(row["file"]), totals.get(beside["file"]))
        for row in rows
        if (beside := plain.get(_group(row))) not in (None, row)
    ]


def _group(row: Row) -> tuple[str, str]:
    """What was timed in turns with what."""
    return row["of"], row.get("beside", "")


def _of(one: Timed) -> str:
    return str(one.row["of"])


def _totals(row: Row) -> Totals:
    return Totals(**{name: value for name, value in row.items() if name != "file"})


def page(head: Row, every: Sequence[Timed]) -> str:
    """docs/fixed.md."""
    of_pages = [one for one in every if one.row["form"]]
    of_packages = [one for one in every if not one.row["form"]]
    alone = [one for one in of_packages if len(one.row["fixes"]) == 1]
    whole = [max(some, key=lambda one: len(one.row["fixes"])) for _, some in groupby(sorted(of_packages, key=_of), _of)]
    blocks = [
        "# What fixes gain, by a GPU's clock",
        _opening(head),
        "## In packages",
        *_in_packages(alone, whole),
        "## In the rules' pages",
        *_in_pages(of_pages),
    ]
    return "\n\n".join(blocks) + "\n"


def _opening(head: Row) -> str:
    return wrapped(
        f"Measured {head['date']} on an {head['device']} with jax {head['jax']}, as",
        "[benchmarks/gpu_tried.py](../benchmarks/gpu_tried.py) says, with safe and unsafe fixes. Better is what takes",
        "the kernels at least two per cent less time, worse what takes them two per cent more.",
    )


def _in_packages(alone: Sequence[Timed], whole: Sequence[Timed]) -> Iterator[str]:
    faster = statistics.geometric_mean([1 / one.ratio for one in whole])
    call = statistics.geometric_mean([one.plain["us"] / one.row["us"] for one in whole])
    yield wrapped(
        f"{len(whole)} programs of packages as they are, in which `check` finds something that it can fix",
        "([benchmarks/package_steps.py](../benchmarks/package_steps.py)): one step of",
        f"{package_steps.BATCH} environments, or one generation of evosax. With all of its fixes a program's kernels",
        f"are {faster:.2f} times as fast, and its call {call:.2f} times (geometric means). A call counts what the host",
        "takes to launch them, which is slow in this virtual machine. Kernels and copies, microseconds of them and of",
        "the call:",
    )
    lines = [
        (_program(one), str(len(one.row["fixes"])), *_cells(one), f"{1 / one.ratio:.2f}")
        for one in sorted(whole, key=lambda one: one.ratio)
    ]
    yield table(("program", "fixes", "kernels", "their time", "call", "times as fast"), lines)
    yield wrapped(
        "Othello's step is what no launch says: rolls of rolls that become one kernel compute each board anew for",
        "every roll. XLA's own model expects that kernel to be quick, and so does `explain`. Since this was measured",
        "a loop of such steps has advice and no fix",
        "([fori-loop-without-unroll](../rules/fori-loop-without-unroll.md)).",
    )
    yield from _by_rule(alone)
    words = Counter(one.word for one in alone)
    others = sorted({one.row["fixes"][0].split()[-1] for one in alone if not one.row["same"]})
    yield wrapped(
        f"With {sum(one.row['same'] for one in alone)} of the {len(alone)} fixes made alone the program returns on the",
        f"GPU what it did, but for rounding; the others draw other numbers ({', '.join(others)}).",
    )
    yield wrapped(
        f"Of these fixes {words['better']} are better, {words['same']} the same and",
        f"{words['worse']} worse. Those that are not the same, by the clock or by what `explain --try-fixes` says",
        "without the device (blank: not asked, one takes a minute to compile):",
    )
    lines = [
        (_program(one), one.row["fixes"][0], *_cells(one), one.said, one.word)
        for one in sorted(alone, key=lambda one: one.ratio)
        if {one.said, one.word} - {"same", ""}
    ]
    yield table(("program", "fix", "kernels", "their time", "call", "`--try-fixes`", "clock"), lines)
    said = Counter((one.said, one.word) for one in alone if one.said)
    agreed = sum(count for (by, clock), count in said.items() if by == clock)
    opposed = said["better", "worse"] + said["worse", "better"]
    yield wrapped(
        f"`--try-fixes` and the clock say the same of {agreed} of {said.total()} fixes, and the contrary of {opposed}.",
    )


def _by_rule(alone: Sequence[Timed]) -> Iterator[str]:
    by_rule: dict[str, list[Timed]] = {}
    for one in alone:
        by_rule.setdefault(one.row["fixes"][0].split()[-1], []).append(one)
    yield wrapped("What one fix takes away, by rule: kernels, and microseconds of them, in the median (and at most).")
    lines = []
    for rule, some in sorted(by_rule.items(), key=lambda item: -len(item[1])):
        cells = []
        for what in ("kernels", "busy_us"):
            gains = [one.plain[what] - one.row[what] for one in some]
            cells.append(f"{short(statistics.median(gains))} ({short(max(gains))})")
        lines.append((f"[{rule}](../rules/{rule}.md)", str(len(some)), *cells))
    yield table(("rule", "fixes", "kernels", "microseconds"), lines)


def _program(one: Timed) -> str:
    return _of(one).replace("_", " ", 1)


def _in_pages(every: Sequence[Timed]) -> Iterator[str]:
    fixed_, good = ({one.row["of"]: one for one in every if one.row["form"] == form} for form in ("fixed", "good"))
    both = [(one, good[of]) for of, one in fixed_.items() if of in good]
    words = Counter(one.word for one, _ in both)
    as_good = sum(one.row["busy_us"] <= best.row["busy_us"] * (1 + NOISE) for one, best in both)
    yield wrapped(
        f"Of {len(both)} bad forms that the fix of their own rule was made in, {words['better']} are better,",
        f"{words['same']} the same and {words['worse']} worse; {as_good} take no longer than the page's good form.",
        "Kernels and copies, and microseconds of them, of the bad, the fixed and the good form:",
    )
    lines = [
        (f"[{name}](../rules/{name}.md) {number}", *(_three(one, best, what) for what in ("kernels", "busy_us")))
        for one, best in sorted(both, key=lambda pair: pair[0].ratio)
        for name, _, number in [one.row["of"].partition(".")]
    ]
    yield table(("page, pair", "kernels", "their time"), lines)


def _cells(one: Timed) -> Iterator[str]:
    return (f"{short(one.plain[what])} -> {short(one.row[what])}" for what in ("kernels", "busy_us", "us"))


def _three(one: Timed, best: Timed, what: str) -> str:
    return " -> ".join(short(row[what]) for row in (one.plain, one.row, best.row))
