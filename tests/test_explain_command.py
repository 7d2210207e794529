"""`fusionlint explain` as a user runs it: what is printed where, and the exit code."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import SHOWN

import fusionlint.rule
from fusionlint.cli import main
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier
from fusionlint.rule import Rule

pytest.importorskip("jax")

SOURCE = Path(__file__).parent / "data" / "explained.py"
ON_CPU = ("--target", "cpu")


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> list[Rule]:
    every: list[Rule] = []
    monkeypatch.setattr(fusionlint.rule, "all_rules", lambda: every)
    return every


def test_reports_of_two_functions_are_printed_and_nothing_known_against_them_is_exit_0(rules: list[Rule]) -> None:
    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:softmax(f32[8,16])", f"{SOURCE}:until(f32[16])", *ON_CPU])
    assert done.exit_code == 0
    assert "softmax(f32[8,16]) on cpu (jax " in done.stdout
    assert "\n\n" + str(SOURCE) + ":until(f32[16]) on cpu" in done.stdout
    assert done.stderr == ""


def test_a_barrier_that_a_rule_explains_is_exit_1(rules: list[Rule]) -> None:
    rules.append(Rule("fusionlint.rules.key_split_in_scan", harm="fusion"))

    @rules[0].barrier
    def sensor(barrier: Barrier, module: hlo.Module) -> str | None:
        return "write it apart" if barrier.cause == "concatenate" else None

    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:rollout(f32[64,2])", "--all", *ON_CPU])
    assert done.exit_code == 1
    assert "   key-split-in-scan: write it apart\n" in done.stdout


def test_what_fails_is_one_line_and_exit_2_and_the_others_still_come(rules: list[Rule]) -> None:
    specs = [f"{SOURCE}:no_such_function(f32[8])", f"{SOURCE}:softmax(f32[8,16])", "no colon"]
    done = CliRunner().invoke(main, ["explain", *specs, *ON_CPU])
    assert done.exit_code == 2
    assert "softmax(f32[8,16]) on cpu" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("fusionlint: ") for line in lines)
    assert any("no_such_function" in line for line in lines)


def test_what_fails_alike_again_is_said_once(rules: list[Rule]) -> None:
    spec = f"{SOURCE}:no_such_function(f32[8])"
    done = CliRunner().invoke(main, ["explain", spec, spec, "no colon", *ON_CPU])
    assert done.exit_code == 2
    assert [line.count("no_such_function") > 0 for line in done.stderr.splitlines()] == [True, False]


def test_json_holds_reports_and_errors(rules: list[Rule]) -> None:
    specs = [f"{SOURCE}:softmax(f32[8,16])", "no colon", f"{SOURCE}:no_such(f32[8])"]
    done = CliRunner().invoke(main, ["explain", *specs, *ON_CPU, "--output-format", "json"])
    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert [report["target"] for report in told["reports"]] == ["cpu"]
    assert [one["message"] for one in told["failures"]] == told["errors"]
    assert [(one["entry"], one["target"], one["kind"]) for one in told["failures"]] == [
        ("no colon", "", ""),
        (f"{SOURCE}:no_such(f32[8])", "cpu", "absent"),
    ]


def test_stages_are_printed_where_asked_for(rules: list[Rule]) -> None:
    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:softmax(f32[8,16])", "--stages", *ON_CPU])
    assert "HLO before" in done.stdout


def test_an_unknown_target_is_exit_2() -> None:
    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:softmax(f32[8,16])", "--target", "h1000"])
    assert done.exit_code == 2
    assert "h1000" in done.stderr


ANNOTATED = """\
from __future__ import annotations

from jax import Array
from jaxtyping import Float


def scale(x: Float[Array, "batch n"], by: float = 2.0):
    return x * by


def plain(x: Array):
    return x
"""


@pytest.fixture
def annotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxtyping")
    (tmp_path / "code.py").write_text(ANNOTATED)
    monkeypatch.chdir(tmp_path)


def test_annotations_and_their_dims_stand_for_arguments(annotated: None, rules: list[Rule]) -> None:
    done = CliRunner().invoke(main, ["explain", "code.py:scale", "--dim", "batch=32", "--dim", "n=5", *ON_CPU])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("code.py:scale(f32[32,5]) on cpu (jax ")


def test_a_dim_without_a_size_and_an_annotation_without_a_shape_are_one_line_each_and_exit_2(annotated: None) -> None:
    done = CliRunner().invoke(main, ["explain", "code.py:scale", "code.py:plain", "--dim", "n=5", *ON_CPU])
    assert done.exit_code == 2
    first, second = done.stderr.splitlines()
    assert first.startswith('fusionlint: scale needs a size for batch (x: "batch n"): say --dim batch=8')
    assert second.startswith(
        "fusionlint: plain(x) needs arguments, and the annotation of `x: Array` says no shape: say its arguments, as "
        "in `code.py:plain(x=f32[8,128])`; or put "
    )
    assert second.endswith("; or record a run: `fusionlint run --record r.json train.py`, then `--recorded r.json`")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("code.py:scale", "--dim", "batch"), "cannot read the dim `batch`: write batch=32"),
        (("code.py:scale(f32[2,2])", "--dim", "batch=3"), "--dim is for the annotations of a SPEC without arguments"),
        (("code.py:scale", "--dim", "n=3", "--dim", "n=4"), "the dim n has two sizes, 3 and 4"),
    ],
)
def test_a_dim_that_cannot_be_meant_is_one_line_and_exit_2(
    annotated: None, arguments: tuple[str, ...], says: str
) -> None:
    done = CliRunner().invoke(main, ["explain", *arguments, *ON_CPU])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fusionlint: {says}")


def test_the_functions_that_are_shown_without_arguments_are_explained_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jaxtyping")
    found = re.search(
        r"<!-- explain: (\S+) -->\n```python\n(.*?)```\n\n```\n\$ fusionlint (.*?)\n(.*?)```", SHOWN, re.S
    )
    assert found is not None
    (tmp_path / found[1]).write_text(found[2])
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, shlex.split(found[3]))
    assert done.stderr == ""
    titles = [line.partition(" (")[0] for line in found[4].splitlines() if line != "..."]
    assert titles == re.findall(r"^env\.py:.* on cpu(?= \()", done.stdout, re.M)
    assert len(titles) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what processes there are")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_explain_ends_its_compiler_too(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("def inf(x):\n    open('begun', 'w').close()\n    while True: pass\n")
    (tmp_path / "tmp").mkdir()
    # Under nohup, as in many a log of CI, signals are ignored by all that is begun there.
    listening = (
        f"import os, signal, sys; signal.signal({number.value}, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    explain = [sys.executable, "-m", "fusionlint", "explain", "endless.py:inf(f32[3])", "--target", "cpu"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with (
        subprocess.Popen(
            [sys.executable, "-c", listening, *explain], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
        ) as process,
        ExitStack() as at_end,
    ):
        at_end.callback(process.kill)
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        workers = [
            child
            for thread in Path(f"/proc/{process.pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
        process.send_signal(number)
        assert process.wait(timeout=20) == 128 + number
    time.sleep(0.5)
    stats = [Path(f"/proc/{one}/stat") for one in workers]
    # What is dead and not yet counted by the first process of a container is a Z.
    left = [stat for stat in stats if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"]
    assert workers
    assert left == []
