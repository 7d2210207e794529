"""Real programs, unchanged: examples/programs captured on the CPU, reported for hardware that is not there, and what
they gain by what their reports suggest."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from fusionlint.compiling import targets
from fusionlint.explained import Report
from fusionlint.recorded import Told, explain_recorded
from fusionlint.recording import Recording
from fusionlint.report.run_text import run_text
from fusionlint.rule import all_rules
from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

pytestmark = pytest.mark.compilers

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "examples" / "programs"
NEEDS = {
    "ppo": ("gymnax", "optax"),
    "fit": ("optax",),
    "flax_mnist": ("flax", "optax"),
    "diffrax_pendulum": ("diffrax",),
    "numpyro_svi": ("numpyro",),
}


def _benchmark() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("programs")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


BENCHMARK = _benchmark()


ROUNDS = {"diffrax_pendulum": "4"}  # of others two


@cache
def recorded(name: str) -> Recording:
    """Of the program run for a few rounds, "fixed/fit" of its better form; skips where a library is not installed."""
    for library in ("jax", *NEEDS[name.removeprefix("fixed/")]):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed: pip install 'fusionlint[examples]'")
    recording = BENCHMARK.recorded(PROGRAMS / f"{name}.py", ROUNDS.get(Path(name).name, "2"))
    assert isinstance(recording, Recording)
    return recording


@cache
def told(name: str, target: str) -> list[Told]:
    """On the target; skips where its compiler is not installed."""
    found = targets.get(target)
    if absent := targets.missing(found):
        pytest.skip(absent)
    return explain_recorded(recorded(name), [found], all_rules())


def report(name: str, target: str) -> Report:
    """Of the function that the program is about."""
    (one,) = [one for one in told(name, target) if one.function.name.startswith(BENCHMARK.ABOUT[Path(name).name])]
    (found,) = one.results
    assert isinstance(found, Report), found
    return found


def own(name: str) -> dict[str, int]:
    """The user's functions, and how often each was compiled."""
    return {one.name: len(one.compilations) for one in recorded(name).functions if one.owner == "user"}


def reasons(name: str) -> list[str]:
    return [reason for one in recorded(name).functions for again in one.compilations for reason in again.why]


def test_ppo_is_one_program_and_its_environment_stands_in_its_report() -> None:
    assert own("ppo") == {"train": 1}
    found = report("ppo", "h100")
    assert found.totals.launches > 1000
    (outer,) = [loop for loop in found.loops if loop.parent is None and loop.trip_count == 2]
    assert outer.launches_per_iteration > 500
    paths = {frame.path for barrier in found.barriers for frame in barrier.barrier.stack}
    assert str(PROGRAMS / "ppo.py") in paths


def test_a_fit_says_that_a_python_number_and_a_short_batch_compile_it_again() -> None:
    (step,) = [one for one in recorded("fit").functions if one.name == "step"]
    said = reasons("fit")
    assert any(reason.startswith("params['b']: f32[], a Python number (weakly typed) -> an array") for reason in said)
    assert "x: f32[64,16] -> f32[8,16]" in said
    assert len(step.compilations) == 4


@pytest.mark.parametrize("target", ["h100", "v5e"])
@pytest.mark.parametrize("name", ["fit", "diffrax_pendulum", "numpyro_svi"])
def test_a_program_is_reported_for_accelerators(name: str, target: str) -> None:
    found = report(name, target)
    assert found.target == target
    assert max(found.launches, found.launches_per_iteration) > 1
    assert str(PROGRAMS / f"{name}.py") in found.lines


def test_a_train_loop_of_flax_is_captured_with_its_state() -> None:
    assert own("flax_mnist")["train_step"] == 1
    (step,) = [one for one in recorded("flax_mnist").functions if one.name == "train_step"]
    names = [one.name for one in step.largest.arguments]
    assert "state.params['Conv_0']['kernel']" in names
    assert names[-2:] == ["images", "labels"]
    assert step.largest.spec is None  # of a TrainState a SPEC knows no words
    assert report("flax_mnist", "cpu").totals.launches > 1


def test_a_solver_that_diffrax_jits_is_named_with_the_field_that_it_solves_and_why_it_is_compiled_again() -> None:
    (solver,) = own("diffrax_pendulum")
    assert solver.startswith("diffeqsolve(")
    assert own("diffrax_pendulum")[solver] == 4
    (why,) = set(reasons("diffrax_pendulum"))
    assert why.startswith("field is made anew by each call of swings")


def test_an_svi_is_its_models_and_the_eager_start_is_told_by_the_line_that_calls_it() -> None:
    assert own("numpyro_svi") == {"SVI.update(model)": 2}
    lines = [one.outer.function for one in recorded("numpyro_svi").eager if one.outer]
    assert set(lines) == {"main"}
    assert "inside one jax.jit they are one program" in run_text(recorded("numpyro_svi"), ())


def test_ppo_gains_launches_by_what_check_and_its_report_say() -> None:
    assert check_files([PROGRAMS / "ppo.py"], Scope(("scan-without-unroll",))).findings
    before, after = report("ppo", "h100"), report("fixed/ppo", "h100")
    assert "key-split-in-scan" in {one.rule for one in before.barriers}
    assert after.launches < 0.95 * before.launches
    assert after.microseconds is not None
    assert before.microseconds is not None
    assert after.microseconds < before.microseconds


@pytest.mark.parametrize("name", ["fit", "diffrax_pendulum", "numpyro_svi"])
def test_a_program_that_says_why_it_is_compiled_again_is_compiled_once_when_that_is_mended(name: str) -> None:
    assert reasons(name)
    assert not reasons(f"fixed/{name}")
    assert set(own(f"fixed/{name}").values()) == {1}
    before, after = (BENCHMARK.cost(recorded(one)) for one in (name, f"fixed/{name}"))
    assert after.compiled < before.compiled
    assert after.seconds < before.seconds
