"""benchmarks/gpu_times.py and gpu_page.py: what is timed on a device, and what docs/gpu.md says of it.

No GPU is needed: a CPU is timed, and what a GPU was measured to do is read from benchmarks/measured."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.compilers

ROOT = Path(__file__).parents[1]
H200 = ROOT / "benchmarks" / "measured" / "h200.jsonl"


@pytest.fixture
def gpu_times(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("gpu_times")


@pytest.fixture
def gpu_page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("gpu_page")


def row(form: str, busy: float, call: float, **more: object) -> dict[str, Any]:
    return {"page": "sort-for-max", "pair": 0, "form": form, "busy_us": busy, "least_us": call, "counted": 3, **more}


def test_each_form_is_a_line_and_what_fails_stops_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_times.py"), "sort-for-max", "reads-one-by-one"]
    command += ["--spec", "nowhere.py:f(f32[8])", "--out", str(tmp_path / "out"), "--processes", "2"]
    done = subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head, *lines = map(json.loads, (tmp_path / "out").read_text().splitlines())
    assert head["device"] == "cpu"
    (failed,) = (line for line in lines if "failed" in line)
    assert failed["failed"] == "nowhere.py:f(f32[8])"
    forms = {(line["page"], line["pair"], line["form"]): line for line in lines if "page" in line}
    assert len(forms) == 6
    assert forms["sort-for-max", 0, "bad"]["us"] > forms["sort-for-max", 0, "good"]["us"] > 0
    assert forms["sort-for-max", 0, "good"]["counted"] == 1
    assert "counted" not in forms["reads-one-by-one", 0, "bad"]  # it is run from Python, not compiled


def test_what_takes_too_long_to_compile_keeps_nobody_from_being_timed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\n\ntime.sleep(600)\n")
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_times.py"), "sort-for-max", "--compiling", "10"]
    command += ["--spec", f"{tmp_path / 'slow.py'}:f(f32[8])", "--out", str(tmp_path / "out"), "--processes", "1"]
    done = subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, *lines = map(json.loads, (tmp_path / "out").read_text().splitlines())
    assert [line["failed"] for line in lines if "failed" in line] == [f"{tmp_path / 'slow.py'}:f(f32[8])"]
    assert len([line for line in lines if "page" in line]) == 4


def plane(name: str, *lines: tuple[str, list[tuple[float, float, str]]]) -> Any:
    """Of a profile: lines with the start and the duration of their events, in microseconds."""
    made = [
        SimpleNamespace(
            name=line,
            events=[SimpleNamespace(name=event, start_ns=1e3 * at, duration_ns=1e3 * took) for at, took, event in some],
        )
        for line, some in lines
    ]
    return SimpleNamespace(name=name, lines=made)


def test_of_a_gpu_the_streams_are_read_and_three_calls_are_one(gpu_times: ModuleType) -> None:
    calls = [(5000.0 * i + at, took, name) for i in range(3) for at, took, name in ((0, 2, "add"), (7, 1, "copy"))]
    gpu = plane("/device:GPU:0", ("Stream #7", calls), ("XLA Ops", calls))
    seen = gpu_times.launched_in([plane("/host:CPU", ("python", calls)), gpu])
    assert len(seen) == 6
    expected = {"kernels": 2.0, "busy_us": 3.0, "span_us": 8.0, "names": {"add": 1.0, "copy": 1.0}}
    assert gpu_times.summed(seen) == expected


def test_where_calls_cannot_be_told_apart_nobody_says_how_long_one_took(gpu_times: ModuleType) -> None:
    found = gpu_times.summed([(0.0, 3000.0, "add"), (9e6, 3000.0, "add")])
    assert found["busy_us"] == 2.0
    assert "span_us" not in found


@pytest.mark.parametrize(
    ("good", "is_claimed", "is_refuted"),
    [
        ((2.0, 90.0), True, False),
        ((12.0, 120.0), True, False),  # noise
        ((14.0, 108.0), True, False),  # noise
        ((14.0, 120.0), True, True),
        ((14.0, 90.0), True, False),  # the kernels take longer, the call does not
        ((14.0, 120.0), False, False),
    ],
)
def test_a_page_is_refuted_by_kernels_that_take_clearly_longer_in_a_call_that_does_too(
    gpu_page: ModuleType, good: tuple[float, float], is_claimed: bool, is_refuted: bool
) -> None:
    pair = gpu_page.Pair("sort-for-max", 0, row("bad", 10.0, 100.0), row("good", *good), is_claimed)
    assert pair.is_refuted is is_refuted


def test_a_form_that_was_changed_since_is_not_the_one_that_was_measured(gpu_page: ModuleType) -> None:
    _, rows = gpu_page.read(H200)
    of_page = {name: one for name, one in rows.items() if name[0] == "sort-for-max"}
    assert [pair.number for pair in gpu_page.pairs(of_page)] == [0, 1]
    of_page["sort-for-max", 0, "good"] = {**of_page["sort-for-max", 0, "good"], "code": "another"}
    assert [pair.number for pair in gpu_page.pairs(of_page)] == [1]


def test_no_page_claims_what_the_clock_of_a_gpu_refutes(gpu_page: ModuleType) -> None:
    _, rows = gpu_page.read(H200)
    every = [*gpu_page.pairs(rows)]
    assert len(every) > 150
    assert [f"{pair.page} {pair.number}" for pair in every if pair.is_refuted] == []


@pytest.mark.parametrize(("program", "name"), [("gpu_page.py", "gpu.md"), ("gpu_tried.py page", "fixed.md")])
def test_the_page_in_docs_is_what_the_figures_say(program: str, name: str, tmp_path: Path) -> None:
    file, *rest = program.split()
    command = [sys.executable, str(ROOT / "benchmarks" / file), *rest, "--page", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / name).read_text() == (ROOT / "docs" / name).read_text(), f"run benchmarks/{program}"


def test_a_fix_is_timed_beside_what_it_was_and_what_the_page_says(tmp_path: Path) -> None:
    """As on a GPU, but exported for a CPU, where it can run here."""
    env, folder, out = {**os.environ, "JAX_PLATFORMS": "cpu"}, tmp_path / "exported", tmp_path / "out"
    for command in (
        ["gpu_tried.py", "export", str(folder), "roll-then-set", "choice-of-two", "--platform", "cpu"],
        ["gpu_times.py", "--exported", str(folder), "--out", str(out), "--processes", "1"],
    ):
        program, *rest = command
        done = subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / program), *rest], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    rolled = {line["form"]: line for line in lines if line["of"] == "roll-then-set.1"}
    assert rolled["fixed"]["same"]
    assert rolled["good"]["same"]
    assert rolled["bad"]["counted"] > rolled["fixed"]["counted"] == rolled["good"]["counted"]
    assert not next(line for line in lines if line["file"] == "choice-of-two.0.fixed")["same"]  # other draws
    assert "HloModule" in gzip.decompress((folder / "roll-then-set.1.fixed.hlo.gz").read_bytes()).decode()
