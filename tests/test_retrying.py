"""`fusionlint run --try-fixes` and `fusionlint.explain(try_fixes=True)`: what was compiled as a program ran is compiled
again from its source; of what cannot be one line says why."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import run

import fusionlint
from fusionlint import retrying
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import new_folder
from fusionlint.compiling.lowering import lowered_for
from fusionlint.compiling.targets import get
from fusionlint.recorded import Told, explain_recorded
from fusionlint.recording import Place, RecordedFunction, Recording

jax = pytest.importorskip("jax")

# `step` and `closest` have a fix that gains, `made.inner` has one that nobody can try, `double` has none.
SCRIPT = """\
import jax
import jax.numpy as jnp

from near import closest


@jax.jit
def step(state, rate):
    d = jnp.sum((state[:, None] - state[None]) ** 2, axis=-1)
    i = jnp.argmin(d, axis=1)
    return state - rate * d[jnp.arange(d.shape[0]), i][:, None]


def made(power):
    @jax.jit
    def inner(state):
        d = jnp.sum((state[:, None] - state[None]) ** power, axis=-1)
        i = jnp.argmin(d, axis=1)
        return d[jnp.arange(d.shape[0]), i]

    return inner


@jax.jit
def double(state):
    return state * 2


def main():
    state = jnp.ones((64, 3))
    for rate in (0.1, 0.2):
        state = step(state, rate)
    print(jax.jit(closest)(made(2)(double(state))[None]).shape)


if __name__ == "__main__":
    main()
"""
NEAR = """\
import jax.numpy as jnp


def closest(d):
    i = jnp.argmin(d, axis=1)
    return d[jnp.arange(d.shape[0]), i]
"""
NOT_TRIED = "the fixes of `fusionlint check` for these lines were not tried: "


def written(folder: Path) -> Path:
    (folder / "pyproject.toml").write_text("")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "near.py").write_text(NEAR)
    return folder


@cache
def ran(form: str) -> tuple[Path, str, str]:
    """The folder of a run that tried the fixes, what the script printed, and the report."""
    folder = written(new_folder())
    command = [sys.executable, "-m", "fusionlint", "run", "--target", "cpu", "--try-fixes", "--output-format", form]
    command += ["--output", "report", "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return folder, done.stdout, (folder / "report").read_text()


@pytest.mark.compilers  # a program without JAX_PLATFORMS meets those that are installed
def test_each_function_of_a_run_is_told_with_its_fixes() -> None:
    _, printed, said = ran("text")
    assert printed == "(1,)\n"
    of = dict(re.findall(r"^\d\. (\S+)  (.*?)(?=^\S|\Z)", said, re.M | re.S))
    assert re.search(r"\n +better  train.py:11:27 argmax-then-pick  \d+ -> \d+ launches, ", of["step"])
    assert "`fusionlint check train.py --select argmax-then-pick --fix --unsafe-fixes` writes" in of["step"]
    assert " near.py:6:12 argmax-then-pick " in of["closest"]
    assert f"\n   {NOT_TRIED}no name at the top of a module leads to it: " in of["made.inner"]
    assert "no fix of `fusionlint check` is for these lines" in of["double"]


@pytest.mark.compilers
def test_what_a_run_tried_is_evidence_for_check(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _, said = ran("json")
    fixes = {report["entry"]: report["fixes"] for report in json.loads(said)["reports"]}
    (step,) = fixes["train.py:step(state: f32[64,3], rate: f32[])"]
    assert step["word"] == "better"
    assert fixes["train.py:double(state: f32[64,3])"] == []
    assert fixes["train.py:made.inner(state: f32[64,3])"] is None
    monkeypatch.chdir(folder)
    checked = run("check", "train.py", "--evidence", "report", "--target", "cpu").stdout
    assert re.search(r"train.py:11:27: argmax-then-pick.*?= tried on cpu: \d+ -> \d+ launches", checked, re.S)


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """near.py, imported."""
    monkeypatch.chdir(written(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("near")
    del sys.modules["near"]


def test_a_report_in_python_has_the_trials_if_it_is_asked_for_them(near: ModuleType) -> None:
    report = fusionlint.explain(near.closest, jax.numpy.ones((64, 64)), target="cpu", try_fixes=True)
    assert [trial.word for trial in report.trials or ()] == ["better"]
    assert "   better  near.py:6:12 argmax-then-pick " in str(report)
    assert fusionlint.explain(near.closest, "f32[64,64]", target="cpu").trials is None


def test_what_is_compiled_already_has_no_source(near: ModuleType) -> None:
    compiled = jax.jit(near.closest).lower(jax.numpy.ones((8, 8))).compile()
    report = fusionlint.explain(compiled, target="cpu", try_fixes=True)
    assert report.trials is None
    assert report.notes[-1] == f"{NOT_TRIED}{retrying.NO_SOURCE}"


def test_a_script_that_asks_as_it_is_imported_is_not_imported_again(
    near: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = "print(*fusionlint.explain(closest, 'f32[8,8]', target='cpu', try_fixes=True).notes, sep='\\n')\n"
    (tmp_path / "asks.py").write_text(f"import fusionlint\n{NEAR}\n\n{asks}")
    runpy.run_path("asks.py", run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{NOT_TRIED}who imports asks.py runs it; let what line 10 does stand below `if __name__ ==")


def test_a_recording_knows_which_line_of_its_module_was_running(near: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "import fusionlint, jax, near\ndef double(x):\n    return x * 2\ndef main():\n    jax.jit(double)(ones)\n"
        "    jax.jit(near.closest)(ones)\nones = jax.numpy.ones((8, 8))\nwith fusionlint.capture() as captured:\n"
        "    if __name__ == '__main__':\n        main()\n"
    )
    captured = runpy.run_path("asks.py", run_name="__main__")["captured"]
    lines = {one.name: one.largest.module_line for one in captured.recording.functions}
    assert lines == {"double": 10, "closest": 0}


def test_what_stands_below_the_guard_is_not_run_by_an_import(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 1\nif __name__ == '__main__':\n    x = 2\n    x = 3\nx = 4\n")
    assert [line for line in range(1, 6) if retrying._is_for_scripts(str(script), line)] == [2, 3, 4]


# What a recording has to say for its fixes to be tried.
def told(function: RecordedFunction) -> Told:
    return Told(function, function.largest, explain_recorded(Recording(functions=(function,)), [get("cpu")])[0].results)


@pytest.fixture
def of_closest(near: ModuleType) -> Told:
    return told(lowered_for(near.closest, ("f32[8,8]",), {}, "cpu"))


def note(one: Told) -> str:
    (result,) = retrying.with_trials(one, [get("cpu")], 60.0).results
    assert isinstance(result, fusionlint.Report)
    assert result.trials is None
    return result.notes[-1].removeprefix(NOT_TRIED)


def of_function(one: Told, **fields: Any) -> Told:
    return replace(one, function=replace(one.function, **fields))


def of_compilation(one: Told, **fields: Any) -> Told:
    return replace(one, compilation=replace(one.compilation, **fields))


def test_one_line_says_why_a_function_cannot_be_compiled_again(of_closest: Told) -> None:
    cell = Place("/tmp/ipykernel_1/1.py", 3, "closest")
    assert note(of_function(of_closest, defined=cell)) == "its source is in no file"
    assert note(of_function(of_closest, sha256="another")) == "near.py was changed after it ran"
    assert note(of_function(of_closest, plain=False)).startswith("no name at the top of a module leads to it")
    assert note(of_compilation(of_closest, spec=None)) == (
        "a SPEC cannot say its arguments, or how it is jitted; put `example_args` beside it, and ask "
        "`fusionlint explain near.py:closest --try-fixes`"
    )
    (report,) = of_closest.results
    assert isinstance(report, fusionlint.Report)
    on_two = replace(of_closest, results=(replace(report, devices=2),))
    assert note(on_two) == "it runs on several devices at once"


def test_what_another_process_cannot_compile_or_compiles_otherwise_is_not_tried(of_closest: Told) -> None:
    wrong = of_compilation(of_closest, spec="(f32[8,8], n=3)")
    assert note(wrong).startswith("closest(d) does not take (float32[8,8], n=3): ")
    other = of_compilation(of_closest, spec="(f32[16,8])")
    assert note(other).startswith("compiled by itself it is another program, of ")


def test_settings_that_are_none_cost_the_fixes_alone(of_closest: Told, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.fusionlint]\nselect = 3\n")
    assert "select" in note(of_closest)


def one(*_):
    return 1.0


@pytest.mark.parametrize(
    ("args", "spec"),
    [
        (("f32[8,8]",), "(f32[8,8])"),
        (("f32[8]", 3, {"w": ["key[2]", 2.0]}, None), "(f32[8], 3, {'w': [key[2], 2.0]}, None)"),
        (((jax.ShapeDtypeStruct((), "float32", weak_type=True), True),), "((~f32[], True))"),
        (("f32[8]", object()), None),
    ],
)
def test_the_arguments_of_explain_are_said_as_a_spec_has_them(args: tuple[Any, ...], spec: str | None) -> None:
    recorded = lowered_for(one, args, {}, "cpu")
    assert (recorded.plain, recorded.largest.spec) == (True, spec)
    assert spec is None or parse_spec(f"a.py:f{spec}").args is not None


def test_what_no_name_leads_to_is_not_plain(near: ModuleType) -> None:
    jitted = jax.jit(near.closest)
    assert lowered_for(near.closest, ("f32[8,8]",), {}, "cpu").plain
    assert not lowered_for(jitted, ("f32[8,8]",), {}, "cpu").plain
    near.closest = jitted
    assert lowered_for(jitted, ("f32[8,8]",), {}, "cpu").plain
