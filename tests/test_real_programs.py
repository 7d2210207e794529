"""Real programs, unchanged: examples/programs captured on the CPU and reported for hardware that is not there."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest

from fusionlint.compiling import targets
from fusionlint.compiling.scripts import run_script
from fusionlint.explained import Report
from fusionlint.recorded import Told, explain_recorded
from fusionlint.recording import Recording

pytestmark = pytest.mark.compilers

PROGRAMS = Path(__file__).parents[1] / "examples" / "programs"
NEEDS = {"ppo": ("gymnax", "optax"), "fit": ("optax",), "flax_mnist": ("flax", "optax")}


@cache
def recorded(name: str) -> Recording:
    """Of the program run for two rounds; skips where a library is not installed."""
    for library in ("jax", *NEEDS[name]):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed: pip install 'fusionlint[examples]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_PLATFORMS", "cpu")
        ran = run_script(str(PROGRAMS / f"{name}.py"), ["2"], ("cpu", "cuda", "tpu"))
    assert ran.status == 0
    return ran.recording


def told(name: str, target: str) -> list[Told]:
    """On the target; skips where its compiler is not installed."""
    found = targets.get(target)
    if absent := targets.missing(found):
        pytest.skip(absent)
    return explain_recorded(recorded(name), [found])


def own(name: str) -> dict[str, int]:
    """The user's functions, and how often each was compiled."""
    return {one.name: len(one.compilations) for one in recorded(name).functions if one.owner == "user"}


def test_ppo_is_one_program_and_its_environment_stands_in_its_report() -> None:
    assert own("ppo") == {"train": 1}
    (one,) = told("ppo", "h100")
    (report,) = one.results
    assert isinstance(report, Report)
    assert report.totals.launches > 1000
    (outer,) = [loop for loop in report.loops if loop.parent is None and loop.trip_count == 2]
    assert outer.launches_per_iteration > 500
    paths = {frame.path for barrier in report.barriers for frame in barrier.barrier.stack}
    assert str(PROGRAMS / "ppo.py") in paths


def test_a_fit_says_that_a_python_number_and_a_short_batch_compile_it_again() -> None:
    (step,) = [one for one in recorded("fit").functions if one.name == "step"]
    reasons = [reason for one in step.compilations for reason in one.why]
    assert any(
        reason.startswith("params['b']: f32[], a Python number (weakly typed) -> an array") for reason in reasons
    )
    assert "x: f32[64,16] -> f32[8,16]" in reasons
    assert len(step.compilations) == 4


@pytest.mark.parametrize("target", ["h100", "v5e"])
def test_a_fit_is_reported_for_accelerators(target: str) -> None:
    (one,) = told("fit", target)
    (report,) = one.results
    assert isinstance(report, Report)
    assert report.target == target
    assert report.totals.launches > 1
    assert str(PROGRAMS / "fit.py") in report.lines


def test_a_train_loop_of_flax_is_captured_with_its_state() -> None:
    assert own("flax_mnist")["train_step"] == 1
    (step,) = [one for one in recorded("flax_mnist").functions if one.name == "train_step"]
    names = [one.name for one in step.largest.arguments]
    assert "state.params['Conv_0']['kernel']" in names
    assert names[-2:] == ["images", "labels"]
    assert step.largest.spec is None  # of a TrainState a SPEC knows no words
    reports = [one.results[0] for one in told("flax_mnist", "cpu") if one.function == step]
    assert isinstance(reports[0], Report)
    assert reports[0].totals.launches > 1
