"""docs/gpu.md: what a GPU's clock and profiler say of launches, of explain's microseconds, and of the rules' pages.

    python benchmarks/gpu_page.py [benchmarks/measured/h200.jsonl] [--target h200] [--page docs/gpu.md]

The file is what gpu_times.py measured on the device, h200-graphs-of-2.jsonl beside it what it measured with XLA_FLAGS
set to let XLA record two launches into a CUDA graph. What `explain` says of the same programs without the device stands
in h200-reported.jsonl; `--report` makes that file anew, with the jax that is installed (about 15 minutes on two cores).
Exit code 1 names pages that claim harm on a GPU where its clock says otherwise: `off-gpu` before the call in the specs
of their blocks leaves the GPU out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timing
import unrolled
from timing import measuring

from fusionlint.compiling import jobs, targets
from fusionlint.compiling.artifacts import CompileError
from fusionlint.compiling.entry import parse_spec
from fusionlint.explained import explain
from fusionlint.hlo.kernels import Kernel
from fusionlint.hlo.thunks import GRAPHS_OF_TWO
from fusionlint.page import pages_folder, read_page

ROOT = Path(__file__).parents[1]
COMMANDS = "python benchmarks/gpu_times.py", "python benchmarks/gpu_page.py"
CLEARLY, NOISE = 1.25, 1.1  # what is slower by less is noise: of kernels, and of the quickest call
MANY = 100  # launches: where launching is what takes the time
FUSIONS, PRODUCTS, LIBRARY = WORK = (
    "fusions of loops and reductions alone",
    "with matrix products",
    "with a sort or a library's call",
)
UNROLLED = "benchmarks/unrolled.py"
AT_ONCE = 40  # programs that one process compiles
Row = Mapping[str, Any]  # a line of a file
Name = tuple[str, int, str]  # a page, the number of a pair, bad or good; or a SPEC, 0 and ""


@dataclass(frozen=True)
class Pair:
    """Both forms of a pair as they were measured, and whether the page claims that the bad one harms a GPU."""

    page: str
    number: int
    bad: Row
    good: Row
    is_claimed: bool

    def ratio(self, quantity: str) -> float | None:
        """Good over bad; None where the device was not asked."""
        if quantity not in self.bad or quantity not in self.good:
            return None
        return float(self.good[quantity] / self.bad[quantity])

    @property
    def is_refuted(self) -> bool:
        """The kernels of the good form take clearly longer, and the quickest call longer too."""
        busy, call = self.ratio("busy_us"), self.ratio("least_us")
        return self.is_claimed and busy is not None and call is not None and busy > CLEARLY and call > NOISE


def read(path: Path) -> tuple[Row, dict[Name, Row]]:
    """What it was measured on, and the programs by name."""
    head, *rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return head, {name_of(row): row for row in rows if "failed" not in row}


def name_of(row: Row) -> Name:
    return (row["page"], row["pair"], row["form"]) if "page" in row else (row["spec"], 0, "")


def pairs(rows: Mapping[Name, Row]) -> Iterator[Pair]:
    """Those of the pages of today whose code is still what was measured."""
    for name in sorted({page for page, _, form in rows if form}):
        page = read_page(name, pages_folder())
        for number, pair in timing.pairs_of(page):
            forms = [rows.get((name, number, form)) for form in ("bad", "good")]
            codes = [timing.digest(block) for block in (pair.bad, pair.good)]
            if all(forms) and [form["code"] for form in forms if form] == codes:
                yield Pair(name, number, *(form for form in forms if form), "h100" in page.targets_of[number])


def reported(rows: Iterable[Row], target: targets.Target) -> Iterator[dict[str, Any]]:
    """What `explain` says of the same programs, compiled without the device."""
    with tempfile.TemporaryDirectory(prefix="gpu-page-") as folder:
        named = [(name_of(row), _spec(row, Path(folder))) for row in rows if "counted" in row]
        for i in range(0, len(named), AT_ONCE):
            some = named[i : i + AT_ONCE]
            results = jobs.compile_many([parse_spec(spec) for _, spec in some], target)
            for (name, _), result in zip(some, results, strict=True):
                about = {"page": name[0], "pair": name[1], "form": name[2]} if name[2] else {"spec": name[0]}
                if isinstance(result, CompileError):
                    yield about | {"failed": name, "error": str(result)}
                    continue
                report = explain(result)
                totals = report.totals
                about |= {"launches": totals.launches, "host_launches": totals.host_launches}
                yield about | {
                    "us": totals.microseconds,
                    "again": totals.launches_per_iteration,
                    "work": _work(report.kernels),
                }


def _work(every: Sequence[Kernel]) -> str:
    """What the program does beside fusions of loops and reductions; a library's routine before a product."""
    if any(kernel.kind in ("library call", "custom call") for kernel in every):
        return LIBRARY
    return PRODUCTS if any("dot" in kernel.opcodes for kernel in every) else FUSIONS


def _spec(row: Row, folder: Path) -> str:
    name, number, form = name_of(row)
    if not form:
        return f"{ROOT}/{name}"
    pair = dict(timing.pairs_of(read_page(name, pages_folder())))[number]
    block = pair.bad if form == "bad" else pair.good
    return measuring.spec_of(block, folder, f"{name}_{number}_{form}".replace("-", "_"))


def page(head: Row, rows: Mapping[Name, Row], told: tuple[Row, Mapping[Name, Row]], of_two: Mapping[Name, Row]) -> str:
    """docs/gpu.md: of what was measured, of what `explain` says of it, and of what was measured with graphs of two."""
    of_unrolled = {name: row for name, row in rows.items() if name[0].startswith(UNROLLED)}
    others = {name: row for name, row in rows.items() if not name[2] and name not in of_unrolled}
    blocks = [
        "# What a GPU's clock says",
        _opening(head),
        "## Launches",
        _launches(rows.values()),
        "## Microseconds",
        *_times(rows, told),
        "## What the host launches",
        *_host(rows, told[1]),
        *_graphs(rows, of_two, told[1]),
        "## `unroll`",
        *_loops(of_unrolled),
        "## Other programs",
        *_others(others),
        "## Pages",
        *_pairs([*pairs(rows)]),
    ]
    return "\n\n".join(blocks) + "\n"


def wrapped(*sentences: str) -> str:
    return textwrap.fill(" ".join(sentences), 118, break_long_words=False, break_on_hyphens=False)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _opening(head: Row) -> str:
    return wrapped(
        f"Measured {head['date']} on an {head['device']} with jax {head['jax']}, in a virtual machine whose",
        "host is slow to",
        "launch: a call that runs one kernel takes some 75 us there. So look at the kernels' own time, and",
        "at ratios.",
        f"`{COMMANDS[0]}` measures it again where a GPU is attached, and `{COMMANDS[1]}` writes this page of",
        "its figures.",
    )


def _launches(rows: Iterable[Row]) -> str:
    both = [(row["counted"], row["kernels"]) for row in rows if "counted" in row and "kernels" in row]
    same = sum(counted == seen for counted, seen in both)
    more = sum(seen > counted for counted, seen in both)
    fewer = len(both) - same - more
    branch = f"In {fewer} it saw fewer: of a conditional the dearest branch is counted, and another was taken."
    return wrapped(
        "jax's profiler saw as many kernels and copies as fusionlint counts in the HLO in",
        f"{same} of {len(both)} programs. In {more} it saw more: a library's call, or a sort, is one",
        "instruction and several",
        "kernels.",
        branch if fewer else "",
    )


def _times(rows: Mapping[Name, Row], told: tuple[Row, Mapping[Name, Row]]) -> Iterator[str]:
    head, reports = told
    yield wrapped(
        f"Those that `explain --target {head['target']}` reports without the device, with jax {head['jax']},",
        "over those that",
        "the kernels took on it. What the host takes to launch them comes on top, and is in neither.",
    )
    lines = []
    for work in WORK:
        ratios = [
            reports[name]["us"] / row["busy_us"]
            for name, row in rows.items()
            if "busy_us" in row and reports.get(name, {}).get("work") == work and not reports[name]["again"]
        ]
        low, middle, high = statistics.quantiles(ratios, n=4)
        lines.append((work, str(len(ratios)), f"{middle:.2f}", f"{low:.2f} to {high:.2f}"))
    yield table(("programs", "", "reported / measured, median", "half of them"), lines)
    yield wrapped(
        "No kernel reaches the roofline that a product is taken for. Small arrays, which stay in the cache, are taken",
        "to be read from memory. A library's call is taken for its bytes; what it computes comes on top.",
    )


def _host(rows: Mapping[Name, Row], reports: Mapping[Name, Row]) -> Iterator[str]:
    loops = [
        (reports[name]["launches"], reports[name]["host_launches"], row["us"])
        for name, row in rows.items()
        if reports.get(name, {}).get("launches", 0) >= MANY and not reports[name]["again"]
    ]
    alone = [us / launches for launches, host, us in loops if host > 0.9 * launches]
    graphs = [us / launches for launches, host, us in loops if host < 0.4 * launches]
    yield wrapped(
        "XLA records five launches or more in a row into a CUDA graph, which the host launches at once. Of",
        "the programs of",
        f"{MANY} launches or more, {len(alone)} launch nearly all of them one by one: a call takes",
        f"{statistics.median(alone):.1f} us for each. {len(graphs)} launch most in graphs, and take",
        f"{statistics.median(graphs):.1f} us for each (medians). So a step of four launches can take longer",
        "than one of",
        "seven. `explain` says how often the host launches, and of which loops the steps are too short for a graph;",
        "`unroll` makes them longer.",
    )


def _graphs(rows: Mapping[Name, Row], of_two: Mapping[Name, Row], reports: Mapping[Name, Row]) -> Iterator[str]:
    one_by_one = {
        name: (rows[name]["us"], row["us"])
        for name, row in of_two.items()
        if name in rows and name in reports and reports[name]["launches"] >= MANY
        if reports[name]["host_launches"] > 0.5 * reports[name]["launches"]
    }
    yield wrapped(
        f"With `XLA_FLAGS={GRAPHS_OF_TWO}` two launches are enough for a graph.",
        "Microseconds of a call without it and with it, of programs that launch most of their kernels one by one.",
        "Those that gain little have steps that are graphs anyway:",
    )
    lines = [
        (_shown(name), short(without), short(with_it), f"{without / with_it:.1f}")
        for name, (without, with_it) in sorted(one_by_one.items(), key=lambda item: item[1][1] / item[1][0])
    ]
    yield table(("", "without", "with", "times as fast"), lines)


def _shown(name: Name) -> str:
    first, number, form = name
    return f"[{first}](../rules/{first}.md) {number}, {form}" if form else f"`{first}`"


def _loops(rows: Mapping[Name, Row]) -> Iterator[str]:
    yield wrapped(
        f"[{UNROLLED}](../{UNROLLED}): microseconds of a call (of its kernels alone), by how many steps are",
        "taken at once.",
    )
    counts = sorted({count for every in unrolled.CALLS.values() for count in every})
    lines = []
    for call in unrolled.CALLS:
        found = [rows.get((f"{UNROLLED}:{call.format(count)}", 0, "")) for count in counts]
        cells = (f"{row['us']:.0f} ({row['busy_us']:.0f})" if row else "" for row in found)
        lines.append((f"`{call.replace(', {}', '')}`", *cells))
    yield table(("", *map(str, counts)), lines)


def _others(rows: Mapping[Name, Row]) -> Iterator[str]:
    yield wrapped("Those of examples/. Kernels and copies, microseconds of them and of the call:")
    quantities = ("kernels", "busy_us", "us")
    lines = [(f"`{name[0]}`", *(short(row[one]) for one in quantities)) for name, row in sorted(rows.items())]
    yield table(("", "kernels", "their time", "call"), lines)


def _pairs(every: Sequence[Pair]) -> Iterator[str]:
    compiled = [pair for pair in every if "counted" in pair.bad]
    ratios = [ratio for pair in compiled if pair.is_claimed and (ratio := pair.ratio("busy_us")) is not None]
    less, more = sum(ratio < 0.95 for ratio in ratios), sum(ratio > 1.05 for ratio in ratios)
    yield wrapped(
        f"Of {len(ratios)} pairs of programs that a page claims to differ on a GPU, the good form's kernels",
        "take less time in",
        f"{less}, as much (within 5 %) in {len(ratios) - less - more}, and more in {more}.",
        "Kernels and copies, microseconds of them and of the call:",
    )
    lines = [
        (
            f"[{pair.page}](../rules/{pair.page}.md) {pair.number}",
            *(_cell(pair, quantity) for quantity in ("kernels", "busy_us", "us")),
            "no claim" if pair in compiled and not pair.is_claimed else "",
        )
        for pair in every
    ]
    yield table(("page, pair", "kernels", "their time", "call", ""), lines)


def _cell(pair: Pair, quantity: str) -> str:
    if pair.ratio(quantity) is None:
        return ""
    return f"{short(pair.bad[quantity])} -> {short(pair.good[quantity])}"


def short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "benchmarks" / "measured" / "h200.jsonl")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--report", action="store_true", help="compile everything without the device first")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "gpu.md")
    options = parser.parse_args()
    head, rows = read(options.file)
    beside = options.file.with_name(f"{options.file.stem}-reported.jsonl")
    if options.report:
        target = targets.get(options.target)
        about = {"target": target.name, "jax": targets.versions(target)["jax"]}
        lines = [about, *reported(rows.values(), target)]
        beside.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    _, of_two = read(options.file.with_name(f"{options.file.stem}-graphs-of-2.jsonl"))
    options.page.write_text(page(head, rows, read(beside), of_two), encoding="utf-8")
    refuted = [f"{pair.page} (pair {pair.number})" for pair in pairs(rows) if pair.is_refuted]
    if refuted:
        print(f"slower on an {head['device']} than what they advise against: {', '.join(refuted)}")
    return int(bool(refuted))


if __name__ == "__main__":
    sys.exit(main())
