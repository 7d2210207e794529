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
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import package_steps
import timing
from exported import Exported, add, index, load, save
from gpu_tried_page import GPU, page, timed
from timing import fixes, measuring

import fusionlint
from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.texts import in_place_of_files
from fusionlint.explained import Report
from fusionlint.finding import Finding
from fusionlint.page import Page, pages_folder, read_page
from fusionlint.tasks import explain_all
from fusionlint.trying import fixable, variants_of

ROOT = Path(__file__).parents[1]
STEPS = Path(package_steps.__file__)
TIMEOUT = 600.0
MEASURED = ROOT / "benchmarks" / "measured" / "h200-tried.jsonl"
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
