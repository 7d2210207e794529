"""`fusionlint run` as a user runs it: the script's own output and exit status, then the report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import commands
import pytest

from fusionlint.compiling import targets
from fusionlint.compiling.jobs import new_folder
from fusionlint.evidence import read_evidence

pytest.importorskip("jax")

pytestmark = pytest.mark.compilers  # a program without JAX_PLATFORMS meets those that are installed

SCRIPT = """\
import sys
import jax
import jax.numpy as jnp


@jax.jit
def step(state, n):
    parts = [state[:, 0] + state[:, 1] * n, state[:, 1] - jnp.sin(state[:, 0])]
    return jnp.stack(parts, axis=1)


for size in (64, 64, 128):
    state = step(jnp.ones((size, 2)), 0.5)
print("the script's own words", sys.argv[1:])
sys.exit(3)
"""
ROLLOUT = """\
import jax
import jax.numpy as jnp


@jax.jit
def rollout(s):
    def step(s, _):
        x, v = s[:, 0], s[:, 1]
        return jnp.zeros(s.shape).at[:, 0].set(x + v).at[:, 1].set(jnp.sin(v)), None

    return jax.lax.scan(step, s, None, length=100)[0]


rollout(jnp.ones((512, 2)))
"""


@cache
def folder() -> Path:
    home = new_folder()
    (home / "train.py").write_text(SCRIPT)
    return home


@cache
def fusionlint(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fusionlint", *arguments]
    return subprocess.run(command, cwd=folder(), capture_output=True, text=True, check=False)


RUN = ("run", "--target", "cpu", "train.py", "--lr", "1")
JSON = ("run", "--target", "cpu", "--output-format", "json", "--output", "run.json", "--record", "r.json", "train.py")


def test_the_scripts_output_arguments_and_exit_status_are_its_own() -> None:
    done = fusionlint(*RUN)
    assert done.returncode == 3
    assert done.stdout == "the script's own words ['--lr', '1']\n"


def test_the_report_says_what_was_compiled_why_again_and_what_is_launched() -> None:
    said = fusionlint(*RUN).stderr
    assert "fusionlint: train.py --lr 1 compiled 1 function 2 times in " in said
    assert "\n1. step  train.py:6, called at train.py:13: compiled 2 times, " in said
    assert "   again at train.py:13: state: f32[64,2] -> f32[128,2]\n" in said
    assert "   train.py:step(state: f32[128,2], n: f32[]) on cpu (jax " in said
    assert "   these are CPU counts" in said
    assert "\neager operations: " in said
    assert "   train.py:13: " in said


def test_json_holds_the_run_and_its_reports() -> None:
    done = fusionlint(*JSON)
    assert (done.returncode, "fusionlint" in done.stderr) == (3, False)
    told = json.loads((folder() / "run.json").read_text())
    assert (told["status"], told["command"], told["errors"]) == (3, ["train.py"], [])
    (step,) = told["functions"]
    assert step["compilations"][1]["why"] == ["state: f32[64,2] -> f32[128,2]"]
    (report,) = told["reports"]
    assert report["entry"] == step["compilations"][1]["entry"]
    assert report["launches"] > 0


def test_its_reports_are_evidence_for_check() -> None:
    fusionlint(*JSON)
    (compiled,) = read_evidence(folder() / "run.json")
    script = str((folder() / "train.py").resolve())
    assert compiled.target == "cpu"
    assert any(first <= 8 <= last for first, last in compiled.lines[script])
    assert compiled.sha256[script] is not None


@pytest.mark.compilers
def test_check_confirms_a_finding_by_what_the_run_compiled(tmp_path: Path) -> None:
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    (tmp_path / "rollout.py").write_text(ROLLOUT)
    command = [sys.executable, "-m", "fusionlint"]
    run = ["run", "--target", "h100", "--output-format", "json", "--output", "run.json", "rollout.py"]
    subprocess.run([*command, *run], cwd=tmp_path, check=True)
    check = ["check", "rollout.py", "--evidence", "run.json"]
    done = subprocess.run([*command, *check], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "columns-by-at-set" in done.stdout
    assert "XLA on h100: " in done.stdout
    assert "in rollout.py:rollout(s: f32[512,2])" in done.stdout
    assert "1 finding confirmed, 0 refuted" in done.stdout


SLEEPS = """\
import jax
import jax.numpy as jnp
import time

jax.jit(lambda x: x + 1)(jnp.ones(3))
print("ready", flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (signal.SIGINT, 130, "script.py:<lambda>(x: f32[3]) on cpu"),
        (signal.SIGTERM, 143, "killed before its programs could be lowered"),
    ],
)
def test_ctrl_c_and_signals_reach_the_script_and_the_report_still_comes(
    tmp_path: Path, sent: signal.Signals, status: int, says: str
) -> None:
    (tmp_path / "script.py").write_text(SLEEPS)
    command = [sys.executable, "-m", "fusionlint", "run", "--target", "cpu", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        # A terminal sends Ctrl-C to all processes; what manages jobs sends to the one that it started.
        os.killpg(run.pid, sent) if sent == signal.SIGINT else run.send_signal(sent)
        _, said = run.communicate(timeout=120)
    assert run.returncode == status
    assert ("KeyboardInterrupt" in said) == (sent == signal.SIGINT)
    assert "script.py compiled 1 function 1 time" in said
    assert says in said


@pytest.mark.skipif(sys.platform == "win32", reason="exec as POSIX has it")
@pytest.mark.parametrize(
    "end", ["os._exit(7)", "os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(7)'])"]
)
def test_a_script_that_ends_past_python_was_not_killed(tmp_path: Path, end: str) -> None:
    compiles = "import jax\nimport os\nimport sys\n\njax.jit(lambda x: x + 1)(1.0)\n"
    (tmp_path / "script.py").write_text(f"{compiles}{end}\n")
    command = [sys.executable, "-m", "fusionlint", "run", "--target", "cpu", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert "script.py compiled 1 function 1 time" in done.stderr
    said = "it ended by os._exit, or by exec of another program, before its programs could be lowered: there are no "
    assert f"\n{said}launches to report\n" in done.stderr


def test_an_unknown_target_is_said_before_the_script_runs() -> None:
    done = fusionlint("run", "--target", "h1000", "train.py")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "h1000" in done.stderr


def test_a_report_that_could_not_be_written_is_said_before_the_script_runs() -> None:
    done = fusionlint("run", "--target", "cpu", "--record", "no/such/r.json", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fusionlint: no/such/r.json cannot be written: there is no folder no/such\n"


@pytest.mark.parametrize("option", ["--output", "--record"])
def test_a_folder_and_a_file_without_permission_are_said_before_the_script_runs(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit(5)")
    done = commands.run("run", "--target", "cpu", option, str(tmp_path), str(script))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"fusionlint: {tmp_path} cannot be written: it is a folder\n"
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may write everywhere
    done = commands.run("run", "--target", "cpu", option, str(tmp_path / "r.json"), str(script))
    assert done.exit_code == 2
    assert done.stderr == f"fusionlint: {tmp_path / 'r.json'} cannot be written: permission denied\n"
    assert [*tmp_path.iterdir()] == [script]


def test_the_report_and_the_recording_cannot_be_one_file(tmp_path: Path) -> None:
    both = ("--output", str(tmp_path / "r.json"), "--record", f"{tmp_path}/../{tmp_path.name}/r.json")
    done = commands.run("run", "--target", "cpu", *both, "train.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"fusionlint: --output and --record are one file, {tmp_path / 'r.json'}: name two\n"


def test_what_can_no_longer_be_written_costs_neither_the_report_nor_the_exit_status(tmp_path: Path) -> None:
    """As where the script has taken the folder away that the files belong in."""
    (tmp_path / "out").mkdir()
    (tmp_path / "train.py").write_text("import os\nos.rmdir('out')\nraise SystemExit(5)\n")
    files = ("--output", "out/report.txt", "--record", "out/r.json")
    command = [sys.executable, "-m", "fusionlint", "run", "--target", "cpu", *files, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr == (
        "fusionlint: out/r.json cannot be written: No such file or directory\n"
        "fusionlint: out/report.txt cannot be written: No such file or directory\n"
        "fusionlint: train.py compiled 0 functions\n"
        "the program did not import jax\n"
    )


def test_a_script_that_is_not_there_is_one_line() -> None:
    done = fusionlint("run", "--target", "cpu", "nothing.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fusionlint: nothing.py: no such file\n"


def test_an_option_of_ours_that_the_script_refused_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    command = [sys.executable, "-m", "fusionlint", "run", "train.py", "--target", "h100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    last = "fusionlint: `--target` went to the script: options of fusionlint stand before SCRIPT"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, last)
