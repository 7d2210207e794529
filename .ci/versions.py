#!/usr/bin/env python3
"""The tests with the mark `any_jax`, on each version of jax that is supported: a table of versions and checks.

    python .ci/versions.py [--jobs N] [VERSION...]

Each version gets an environment of its own in a temporary folder, with the package as it would be published and jax for
the CPU. Exit status 1 if anything fails, or could not be tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST = "newest"
# Each with a Python that it is made for; together they are all that fusionlint is for.
PYTHONS = {
    "0.4.38": "3.10",
    "0.5.3": "3.10",
    "0.6.2": "3.10",
    "0.7.2": "3.11",
    "0.8.2": "3.11",
    "0.9.2": "3.12",
    "0.10.2": "3.12",
    NEWEST: "3.13",
}
MARK = "any_jax"
ASKED_FOR = ("pytest>=8", "jaxtyping>=0.3")  # by the files that hold such tests


@dataclass(frozen=True)
class Check:
    """The tests of one file: how many there were, and of those that failed the names and what they said."""

    tests: int = 0
    skipped: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        if self.failed:
            return f"{len(self.failed)} of {self.tests} FAIL"
        return f"{self.skipped} of {self.tests} SKIPPED" if self.skipped else str(self.tests)

    @property
    def is_good(self) -> bool:
        """What was skipped was not tried."""
        return not self.failed and not self.skipped


@dataclass(frozen=True)
class Row:
    """One version; `problem` says why nothing was tried."""

    jax: str
    python: str
    checks: Mapping[str, Check] = field(default_factory=dict)
    setup: float = 0.0  # seconds
    seconds: float = 0.0
    problem: str = ""

    @property
    def is_good(self) -> bool:
        return bool(self.checks) and not self.problem and all(check.is_good for check in self.checks.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=[*PYTHONS], help="of jax; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="versions at a time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fusionlint-versions-") as home, ThreadPoolExecutor(given.jobs) as pool:
        wheel = built(Path(home))
        rows = list(pool.map(lambda version: tried(version, wheel, Path(home, version)), given.versions))
    print("\n".join(table(rows)))
    print("\n".join(line for row in rows for line in failures(row)))
    return 0 if all(row.is_good for row in rows) else 1


def built(home: Path) -> Path:
    """The wheel of the working tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(home), str(ROOT)]
    subprocess.run(command, check=True)
    return next(home.glob("*.whl"))


def tried(version: str, wheel: Path, home: Path) -> Row:
    """The row of one version. Prints as it is done: the whole takes minutes."""
    wanted = PYTHONS.get(version, PYTHONS[NEWEST])
    python = python_of(wanted)
    if python is None:
        return Row(version, wanted, problem=f"there is no Python {wanted} here")
    start = time.monotonic()
    pins = ["jax", "jaxlib"] if version == NEWEST else [f"jax=={version}", f"jaxlib=={version}"]
    subprocess.run([python, "-m", "venv", home], check=True)
    pip = [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, *pins, *ASKED_FOR]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        return Row(version, wanted, problem=f"pip could not install it: {last_line(done.stderr)}")
    say = "import jax, jaxlib; print(jax.__version__, jaxlib.__version__)"
    jax, jaxlib = subprocess.check_output([home / "bin" / "python", "-c", say], text=True).split()
    setup = time.monotonic() - start
    done = subprocess.run(
        [home / "bin" / "pytest", "-q", "-m", MARK, "-p", "no:cacheprovider", f"--junitxml={home}/tests.xml", *files()],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = dict(read(home / "tests.xml")) if (home / "tests.xml").exists() else {}
    name = f"{jax} (newest)" if version == NEWEST else jax
    problem = f"its jaxlib is {jaxlib}" if jaxlib != jax else "" if checks else last_line(done.stdout + done.stderr)
    shutil.rmtree(home)  # 400 MB
    row = Row(name, wanted, checks, setup, time.monotonic() - start, problem)
    print(f"jax {name}: {'passed' if row.is_good else 'FAILED'} in {row.seconds:.0f} s", flush=True)
    return row


def python_of(version: str) -> str | None:
    """An interpreter of that minor version, pyenv's among others; a shim of pyenv's may be there and not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for python in filter(None, [shutil.which(f"python{version}"), *found]):
        done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        if done.stdout.startswith(f"Python {version}."):
            return python
    return None


def files() -> list[str]:
    """Those that hold such tests: the others may import what is not installed here."""
    return [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if f"mark.{MARK}" in path.read_text()]


def read(report: Path) -> Iterator[tuple[str, Check]]:
    """pytest's own report -> a Check for each file of tests."""
    cases: dict[str, list[ET.Element]] = {}
    for case in ET.parse(report).iter("testcase"):
        named = case.get("classname") or case.get("name", "")  # a file that cannot be imported has no class
        cases.setdefault(named.removeprefix("tests.").removeprefix("test_"), []).append(case)
    for name, its in sorted(cases.items()):
        failed = {}
        for case in its:
            wrong = [one for tag in ("failure", "error") for one in case.findall(tag)]
            if wrong:
                failed[case.get("name", "")] = (wrong[0].get("message") or "").strip().partition("\n")[0]
        yield name, Check(len(its), sum(case.find("skipped") is not None for case in its), failed)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """In Markdown: a line for each version, a column for each file of tests."""
    names = sorted({name for row in rows for name in row.checks})
    lines = [["jax", "Python", *names, "set up", "in all"]]
    for row in rows:
        cells = [row.checks[name].cell if name in row.checks else "-" for name in names]
        lines.append([row.jax, row.python, *cells, f"{row.setup:.0f} s", f"{row.seconds:.0f} s"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def failures(row: Row) -> Iterator[str]:
    """One line for each thing that is wrong."""
    if row.problem:
        yield f"jax {row.jax}: {row.problem}"
    for name, check in row.checks.items():
        yield from (f"jax {row.jax}: test_{name}.py::{test}: {said[:200]}" for test, said in check.failed.items())


def last_line(text: str) -> str:
    return next(iter(reversed(re.sub(r"\s+$", "", text).splitlines())), "it said nothing")


if __name__ == "__main__":
    sys.exit(main())
