"""The mark of tests that depend on which compilers are installed, the check that no test lacks it, and what they
compile.

CI runs all tests without the compilers of hardware that is not here, installs them, and then runs those with the mark.
So a test that was skipped for want of a compiler, or that goes by what is installed, has to have it.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Artifacts, CompileError
from fusionlint.compiling.entry import Entry, parse_spec
from fusionlint.compiling.jobs import compile_many
from fusionlint.explained import Report, explain
from fusionlint.rule import Rule

# What is said where a compiler, or an environment to compile, is not installed.
_EXTRA = re.compile(r"pip install 'fusionlint\[(?:cuda|tpu|examples)\]'")
# What CI installs for its second run, as far as anything asks for it by name.
_BROUGHT = re.compile(r"jax-cuda\d+-plugin|libtpu|gymnax")
_ENOUGH = 10  # programs: less than starting a process takes
_FORGOTTEN = "it depends on the compilers installed, so it wants the mark `compilers`: CI runs it again with them"


def needed(target: str) -> Collection[pytest.MarkDecorator]:
    """The marks of a test's case for the target of that name: for `pytest.param(..., marks=...)`."""
    return () if target in ("cpu", "any") else (pytest.mark.compilers,)


def each(*names: str) -> list[object]:
    """Targets to parametrize a test by, with their marks."""
    return [pytest.param(name, marks=needed(name)) for name in names]


def written(code: str, calls: Iterable[str], folder: Path) -> dict[str, str]:
    """Calls of the functions in a text, `f(f32[8])`, each with the SPEC of it as a file in `folder`."""
    path = folder / "code.py"
    path.write_text(code)
    return {call: f"{path}:{call}" for call in calls}


def compiled(specs: Mapping[str, str], name: str) -> dict[str, Artifacts]:
    """What the SPECs, which have names, are on the target of that name; skips where its compiler is not installed."""
    target = targets.get(name)
    if absent := targets.missing(target):
        pytest.skip(absent)
    made = dict(zip(specs, _side_by_side([*map(parse_spec, specs.values())], target), strict=True))
    found = {name: one for name, one in made.items() if isinstance(one, Artifacts)}
    assert found.keys() == made.keys(), [one for one in made.values() if not isinstance(one, Artifacts)]
    return found


def _side_by_side(entries: Sequence[Entry], target: targets.Target) -> list[Artifacts | CompileError]:
    """As `compile_many`, by as many workers as there are cores, where each has enough to do."""
    workers = max(1, min(os.cpu_count() or 1, len(entries) // _ENOUGH))
    shares = [entries[first::workers] for first in range(workers)]
    with ThreadPoolExecutor(workers) as pool:  # each thread waits for a process
        made = [*pool.map(compile_many, shares, [target] * workers)]
    return [made[number % workers][number // workers] for number in range(len(entries))]


def explained(specs: Mapping[str, str], name: str, rules: Sequence[Rule] = ()) -> dict[str, Report]:
    """The reports of what is `compiled`."""
    return {spec: explain(artifacts, rules) for spec, artifacts in compiled(specs, name).items()}


def told(report: Report) -> set[str]:
    """The rules that know a way around a barrier."""
    return {one.rule for one in report.barriers if one.rule}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "compilers: goes by the compilers installed; CI runs it without and with them")


@pytest.fixture(autouse=True)
def _no_compiler_is_asked_for_without_the_mark(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fails a test without the mark that looks for a compiler. One that only pretends replaces what this replaces."""
    asked: set[str] = set()
    version = importlib.metadata.version

    def noted(distribution: str) -> str:
        asked.add(distribution)
        return version(distribution)

    monkeypatch.setattr(importlib.metadata, "version", noted)
    yield
    if (extra := sorted(filter(_BROUGHT.fullmatch, asked))) and not request.node.get_closest_marker("compilers"):
        pytest.fail(f"asks for {', '.join(extra)}: {_FORGOTTEN}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that is skipped for want of a compiler without the mark, or in CI's second run."""
    report = yield
    wanting = _EXTRA.search(str(report.longrepr)) if report.skipped else None
    marked = item.get_closest_marker("compilers") is not None
    if wanting and (not marked or (os.environ.get("CI") and item.config.option.markexpr == "compilers")):
        report.outcome = "failed"
        report.longrepr = f"skipped, {wanting[0]}: {'CI has it' if marked else _FORGOTTEN}"
    return report
