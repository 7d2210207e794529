"""What a GPU's clock says of the fixes of `check`: programs with and without them, timed on an attached GPU.

    python benchmarks/gpu_tried.py export FOLDER [NAME...]   # anywhere, with the packages of package_steps.py installed
    python benchmarks/gpu_times.py --exported FOLDER --out benchmarks/measured/CARD-tried.jsonl     # where the GPU is
    python benchmarks/gpu_tried.py report FOLDER --out benchmarks/measured/CARD-tried-reported.jsonl    # anywhere
    python benchmarks/gpu_tried.py page [benchmarks/measured/CARD-tried.jsonl] [--page docs/fixed.md]

`export` lowers each program of package_steps.py for a GPU as it is, with each fix of the lines that it runs, and with
all of them; and the bad form of every pair of the rules' pages that claims harm on a GPU, as it is, as its own rule's
fix leaves it, and the good form. What is timed needs jax alone. Both have to be of one version.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import package_steps
import timing
from exported import Exported, add, index, load, save
from gpu_page import short, table, wrapped
from timing import fixes, measuring

import fusionlint
from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.texts import in_place_of_files
from fusionlint.explained import Report, Totals
from fusionlint.finding import Finding
from fusionlint.page import Page, pages_folder, read_page
from fusionlint.tasks import explain_all
from fusionlint.trials import Trial
from fusionlint.trying import fixable, variants_of

ROOT = Path(__file__).parents[1]
STEPS = Path(package_steps.__file__)
GPU = "h200"
TIMEOUT = 600.0
MEASURED = ROOT / "benchmarks" / "measured" / "h200-tried.jsonl"
NOISE = 0.02
Row = Mapping[str, Any]
CHECKING = threading.Lock()  # check keeps what it knows of a project in one place


def _step(name: str, *, concrete: bool) -> timing.Program:
    step = getattr(package_steps, name)
    given = step.example_args() if concrete else jax.eval_shape(step.example_args)
    leaves, tree = jax.tree.flatten(given)
    return timing.Program(jax.jit(lambda leaves: step(*tree.unflatten(leaves))), leaves)


def _name(finding: Finding) -> str:
    return f"{Path(finding.location.path).name}:{finding.location.line} {finding.rule}"


def steps(name: str) -> Iterator[tuple[Exported, dict[str, str]]]:
    """The program with each fix, and with all; and the files as they are then. Raises RuntimeError."""
    job = Job(parse_spec(f"{STEPS}:{name}"))
    (report,) = explain_all([(job, targets.get("cpu"))], timeout=TIMEOUT)
    if not isinstance(report, Report):
        raise RuntimeError(f"{name}: {report.message}")
    found = fixable(report, targets.get(GPU))
    groups = [[one] for one in found] + ([found] if len(found) > 1 else [])
    yield Exported(f"{name}.0", name), {}
    for number, variant in enumerate(variants_of(groups), 1):
        yield Exported(f"{name}.{number}", name, tuple(map(_name, variant.fixes))), variant.texts


def export_steps(name: str, folder: Path, platform: str) -> list[Exported]:
    """Each in a process of its own, which imports the package with that fix."""
    with CHECKING:
        found = [*steps(name)]
    done = []
    for one, texts in found if len(found) > 1 else []:
        asked = json.dumps({"one": asdict(one), "texts": texts})
        command = [sys.executable, __file__, "one", str(folder), "--platform", platform]
        result = subprocess.run(command, input=asked, text=True, capture_output=True, timeout=TIMEOUT, check=False)
        if result.returncode:
            print(f"{name}, {', '.join(one.fixes)}: {result.stderr.strip().splitlines()[-1:]}", flush=True)
        else:
            done.append(one)
    return done


def export_one(folder: Path, platform: str) -> None:
    asked = json.load(sys.stdin)
    one = Exported(**asked["one"])
    with in_place_of_files(asked["texts"]):
        save(folder, one, _step(one.of, concrete=not one.fixes), platform, with_arrays=not one.fixes)


def export_page(page: Page, folder: Path, platform: str) -> list[Exported]:
    """The pairs of which the page claims something on a GPU, and whose bad form has a fix."""
    done = []
    for number, pair in timing.pairs_of(page):
        fixed = pair.bad._replace(code=fixes.fixed(page.name, pair.bad.code))
        is_program = timing.concerns_a_gpu(pair) and not measuring.is_run(pair)
        if fixed == pair.bad or not is_program or "h100" not in page.targets_of[number]:
            continue
        of = f"{page.name}.{number}"
        with tempfile.TemporaryDirectory() as scratch:
            for form, block in (("bad", pair.bad), ("fixed", fixed), ("good", pair.good)):
                program = timing.program(block, Path(scratch), f"{page.name}_{number}_{form}")
                one = Exported(f"{of}.{form}", of, (page.name,) if form == "fixed" else (), form)
                save(folder, one, program, platform, with_arrays=form == "bad")
                done.append(one)
    return done


def export(folder: Path, names: Sequence[str], platform: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = sorted(path.stem for path in pages_folder().glob("*.md"))
    todo: list[tuple[str, Callable[[], list[Exported]]]] = []
    for name in names or [*pages, *package_steps.NAMES]:
        if name in pages:
            todo.append((name, lambda name=name: export_page(read_page(name, pages_folder()), folder, platform)))
        else:
            todo.append((name, lambda name=name: export_steps(name, folder, platform)))
    with ThreadPoolExecutor(2) as pool:
        for name, done in [(name, pool.submit(make)) for name, make in todo]:
            try:
                add(folder, done.result())
            except Exception as error:  # noqa: BLE001  one that fails never stops the rest
                print(f"{name}: {type(error).__name__}: {error}", flush=True)


def reported(folder: Path, one: Exported) -> dict[str, Any]:
    """What `explain` says of the program without the device."""
    program = load(folder, one)
    try:
        told = fusionlint.explain(program.jitted, program.arrays, target=GPU)
    except fusionlint.ExplainError as error:
        return {"file": one.file, "error": str(error)}
    return {"file": one.file, **asdict(told.totals)}


def report(folder: Path, out: Path, processes: int) -> None:
    programs = [one for of in index(folder).values() for one in of]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool, out.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"target": GPU, "jax": jax.__version__}) + "\n")
        for found in pool.map(functools.partial(reported, folder), programs):
            file.write(json.dumps(found) + "\n")
            file.flush()


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("export", "one"):
        commands.add_parser(command).add_argument("folder", type=Path)
        commands.choices[command].add_argument("--platform", default="cuda")
    commands.choices["export"].add_argument("names", nargs="*")
    commands.add_parser("report").add_argument("folder", type=Path)
    commands.choices["report"].add_argument("--out", type=Path, required=True)
    commands.choices["report"].add_argument("--processes", type=int, default=os.cpu_count() or 1)
    commands.add_parser("page").add_argument("file", type=Path, nargs="?", default=MEASURED)
    commands.choices["page"].add_argument("--page", type=Path, default=ROOT / "docs" / "fixed.md")
    options = parser.parse_args()
    if options.command == "one":
        export_one(options.folder, options.platform)
    elif options.command == "report":
        report(options.folder, options.out, options.processes)
    elif options.command == "page":
        options.page.write_text(page(*timed(options.file)), encoding="utf-8")
    else:
        export(options.folder, options.names, options.platform)


if __name__ == "__main__":
    main()
