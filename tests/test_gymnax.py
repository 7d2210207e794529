"""Real environments: what a step of 4096 gymnax environments launches on h100 is what was counted before fusionlint."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_thunks import by_us, by_xla

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Artifacts
from fusionlint.explained import explain
from fusionlint.report.explain_text import report_text

pytestmark = pytest.mark.compilers

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SLOW = ("Freeway", "Seaquest")  # a minute and a quarter of one; benchmarks/gymnax_envs.py has them


def _benchmark() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("gymnax_envs")
    finally:
        sys.path.remove(str(BENCHMARKS))


BENCHMARK = _benchmark()
NAMES = [name for name in BENCHMARK.ENVIRONMENTS if name not in SLOW]


@functools.cache
def compiled() -> dict[str, Artifacts]:
    """A step of each environment, compiled by one worker; skips where the counts were not made with what is here."""
    for package, measured in BENCHMARK.MEASURED_WITH.items():
        try:
            here = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed: pip install 'fusionlint[examples]'")
        if here != measured:
            pytest.skip(f"counted with {package} {measured}; here is {here}")
    target = targets.get("h100")
    absent = targets.missing(target)
    if absent:
        pytest.skip(absent)
    return dict(BENCHMARK.steps(NAMES, target))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_launches_what_was_counted_before_on_h100(name: str) -> None:
    assert explain(compiled()[name]).totals.launches == pytest.approx(BENCHMARK.ON_H100[name], abs=1)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernels_of_a_real_environment_are_xlas_thunks_on_h100(name: str) -> None:
    report = explain(compiled()[name])
    assert [launch[:4] for launch in by_us(report, report.kernels)] == [
        launch[:4] for launch in by_xla(compiled()[name], report)
    ]


def test_a_report_on_h100_says_how_long_compiling_took() -> None:
    made = compiled()["CartPole"]
    assert made.compile_seconds > 0
    assert f"compiled in {made.compile_seconds:.1f} s" in report_text(explain(made))
