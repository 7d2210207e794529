"""`check --evidence FILE` goes by what XLA did: it confirms findings, and drops what was fused away."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import compilers
import pytest
from commands import CALL, HAZARD, RULE, run

from fusionlint.compiling.targets import get, missing
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.lines import lines

TARGETS = ("cpu", "h100", "v5e")
LINE = 6
COLUMN = 12

Report = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


def frame(path: Path, line: int = LINE, column: int | None = None, end_column: int | None = None) -> Report:
    return {"path": str(path), "line": line, "column": column, "end_line": line, "end_column": end_column}


def barrier(*stack: Report, rule: str | None = None, **more: Any) -> Report:
    told = {"cause": "in-place update", "detail": "", "bytes": 64, "crossings": 10, "launches": 10}
    told |= {"per_iteration": False, "reason": "the consumer is not fusible", "rule": rule, "stack": list(stack)}
    return {**told, "writer": "a", "readers": ["b"], **more}


def kernel(path: Path, *at: int, name: str = "c", inside: tuple[int, ...] = (LINE,)) -> Report:
    stack = [frame(path, line) for line in at]
    return {"name": name, "stack": stack, "kind": "loop", "lines": {str(path): [[n, n] for n in inside]}}


def report(path: Path, *barriers: Report, kernels: tuple[Report, ...] = (), **more: Any) -> Report:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    told: Report = {"entry": "env.py:swap(f32[4,2])", "target": "h100", "lines": {str(path): [[5, LINE]]}}
    return told | {"sha256": {str(path): digest}, "barriers": list(barriers), "kernels": list(kernels)} | more


def fused(path: Path, **more: Any) -> Report:
    """A report of one kernel whose last step is on another line."""
    return report(path, kernels=(kernel(path, 5, inside=(5, LINE)),), **more)


def write(*reports: Report, name: str = "evidence.json") -> str:
    Path(name).write_text(json.dumps({"version": 1, "reports": reports, "errors": []}))
    return name


def found(*args: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(run("check", "--output-format", "json", *args).stdout)["findings"]
    return findings


def test_a_crossing_at_its_lines_confirms_a_finding_with_xlas_words(folder: Path) -> None:
    file = write(report(folder / "env.py", barrier(frame(folder / "env.py"), rule=RULE)))
    result = run("check", "--evidence", file)
    assert (
        "  = XLA on h100: in-place update: the consumer is not fusible; 10 launches, 640 B, in env.py:swap(f32[4,2])\n"
        in (result.stdout)
    )
    assert "Evidence from 1 report: 1 finding confirmed, 0 refuted." in result.stdout
    assert (result.exit_code, result.stderr) == (1, "")


@pytest.mark.parametrize("output_format", ["sarif", "github"])
def test_other_formats_say_it_in_the_message(folder: Path, output_format: str) -> None:
    file = write(report(folder / "env.py", barrier(frame(folder / "env.py"))))
    assert "XLA on h100: in-place update" in run("check", "--evidence", file, "--output-format", output_format).stdout


def test_json_has_each_confirmation_and_the_counts(folder: Path) -> None:
    path = folder / "env.py"
    file = write(report(path, barrier(frame(path), rule="other"), barrier(frame(path), rule=RULE, writer="b")))
    document = json.loads(run("check", "--evidence", file, "--output-format", "json").stdout)
    (finding,) = document["findings"]
    (told,) = finding["confirmed"]
    assert (told["rule"], told["line"], told["launches"], told["bytes"]) == (RULE, LINE, 20, 1280)
    assert document["evidence"] == {"reports": 1, "confirmed": 1, "refuted": 0}


def test_of_the_branches_of_a_conditional_the_dearest_counts(folder: Path) -> None:
    path = folder / "env.py"
    inside = [
        barrier(frame(path), rule=RULE, writer=name, branches=[["cond", number]]) for number, name in enumerate("xyz")
    ]
    file = write(report(path, barrier(frame(path), rule=RULE), *inside))
    (told,) = found("--evidence", file)[0]["confirmed"]
    assert (told["launches"], told["bytes"]) == (10 + 10, 640 + 640)


def test_a_crossing_anywhere_on_the_way_to_the_line_confirms(folder: Path) -> None:
    path = folder / "env.py"
    stack = (frame(folder / "lib.py", 90), frame(path))
    (finding,) = found("--evidence", write(report(path, barrier(*stack))))
    assert finding["confirmed"]


def test_what_only_crosses_in_an_argument_says_nothing(folder: Path) -> None:
    path = folder / "env.py"
    inner = frame(path, LINE, COLUMN + len("jnp.zeros("), COLUMN + len("jnp.zeros((n, 2)"))
    (finding,) = found("--evidence", write(report(path, barrier(inner), kernels=(kernel(path, 5),))))
    assert not finding["confirmed"]
    assert "h100" in finding["targets"]


def test_what_was_fused_away_loses_the_target_and_its_numbers(folder: Path) -> None:
    (finding,) = found("--evidence", write(fused(folder / "env.py")))
    assert finding["refuted"] == ["h100"]
    assert "h100" not in finding["targets"]
    assert "h100" not in {cell["target"] for cell in finding["evidence"]}


def test_a_finding_that_no_target_is_left_of_is_dropped_and_counted(folder: Path) -> None:
    files = [write(fused(folder / "env.py", target=name), name=f"{name}.json") for name in TARGETS]
    result = run("check", *(f"--evidence={file}" for file in files))
    assert result.stdout == (
        "No hazards found in 1 file. Evidence from 3 reports: 0 findings confirmed, 1 refuted (dropped).\n"
    )
    assert result.exit_code == 0
    assert found("--target", "h100", "--evidence", files[1]) == []
    assert found("--target", "h100", "--evidence", files[0]) != []


def test_a_target_counts_as_the_one_that_was_measured(folder: Path) -> None:
    (finding,) = found("--evidence", write(fused(folder / "env.py", target="a100")))
    assert finding["refuted"] == ["h100"]


def test_one_report_that_confirms_or_does_not_know_is_enough_to_keep(folder: Path) -> None:
    path = folder / "env.py"
    for other in (report(path, barrier(frame(path))), report(path)):
        (finding,) = found("--evidence", write(fused(path), other))
        assert "h100" in finding["targets"]


@pytest.mark.parametrize("lines", [[[1, 5]], [[7, 9]], []])
def test_what_was_not_compiled_is_left_as_it_is(folder: Path, lines: list[list[int]]) -> None:
    path = folder / "env.py"
    assert found("--evidence", write(fused(path, lines={str(path): lines}))) == found()


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param([], id="the lines are lost"),
        pytest.param([(5,), (5,)], id="the work is in two kernels"),
        pytest.param([(LINE,)], id="the last step is here, and others read it"),
    ],
)
def test_what_may_have_been_fused_is_left_as_it_is(folder: Path, kernels: list[tuple[int, ...]]) -> None:
    path = folder / "env.py"
    crossing = barrier(frame(path, 2))
    made = tuple(kernel(path, *at, name="a") for at in kernels)
    assert found("--evidence", write(report(path, crossing, kernels=made))) == found()


def test_a_kernel_that_lost_its_lines_may_be_the_findings(folder: Path) -> None:
    path = folder / "env.py"
    lost = {"name": "a", "kind": "sort", "stack": [], "lines": {}}
    file = write(report(path, barrier(frame(path, 2)), kernels=(kernel(path, 5), lost)))
    assert found("--evidence", file) == found()


def test_a_kernel_of_its_own_that_exchanges_nothing_refutes(folder: Path) -> None:
    path = folder / "env.py"
    (finding,) = found("--evidence", write(report(path, kernels=(kernel(path, LINE),))))
    assert finding["refuted"] == ["h100"]


def test_only_harm_to_fusion_is_refuted(folder: Path) -> None:
    path = folder / "env.py"
    path.write_text(
        "import jax\n\n\ndef f(x):\n    return jax.jit(lambda y: y + 1)(x)\n\n\nfor i in range(9):\n    f(i)\n"
    )
    (before,) = found("--select", "jit-per-call")
    told = [fused(path, target=name, lines={str(path): [[1, 9]]}) for name in TARGETS]
    told += [report(path, barrier(frame(path, before["line"])), lines={str(path): [[1, 9]]})]
    assert found("--select", "jit-per-call", "--evidence", write(*told)) == [before]


def test_what_changed_since_is_stale_and_one_line_says_so(folder: Path) -> None:
    file = write(fused(folder / "env.py"))
    (folder / "env.py").write_text(HAZARD + "\n")
    result = run("check", "--evidence", file, "--target", "h100")
    assert result.stderr == "env.py: warning: is not what was compiled: evidence from another text of it is not used\n"
    assert "Found 1 hazard" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no evidence"),
        ("[1]", "is no evidence"),
        ('{"version": 1, "findings": []}', "is no evidence"),
        ('{"version": 1, "reports": [{"lines": {"a": [[1]]}}]}', "is no evidence"),
        ('{"version": 1, "reports": [{"entry": "f"}]}', "is from an older fusionlint"),
        ('{"version": 2, "reports": []}', "is of version 2"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_evidence_is_one_line_and_exit_two(folder: Path, text: str | None, message: str) -> None:
    if text is not None:
        (folder / "e.json").write_text(text)
    result = run("check", "--evidence", "e.json")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (result.stdout, result.exit_code) == ("", 2)


def test_what_is_refuted_is_not_fixed_and_stays_away_after_other_fixes(folder: Path) -> None:
    path = folder / "env.py"
    both = HAZARD + "\n\ndef more(s):\n    n = s.shape[0]\n    out = " + CALL + "\n    return out\n"
    path.write_text(both)
    file = write(*(fused(path, target=name) for name in TARGETS))
    result = run("check", "--evidence", file, "--fix", "--unsafe-fixes")
    assert "Fixed 1 hazard in 1 file." in result.stdout
    assert "No hazards found in 1 file. Evidence from 3 reports: 0 findings confirmed, 1 refuted" in result.stdout
    assert result.stderr == ""
    assert path.read_text().startswith(HAZARD)


def test_a_baseline_entry_that_is_refuted_is_not_called_gone(folder: Path) -> None:
    assert run("check", "--baseline", "known.json", "--write-baseline").exit_code == 0
    file = write(*(fused(folder / "env.py", target=name) for name in TARGETS))
    result = run("check", "--baseline", "known.json", "--evidence", file)
    assert (result.stderr, result.exit_code) == ("", 0)


def test_lines_are_those_of_any_frame(folder: Path) -> None:
    text = (Path(__file__).parent / "hlo" / "scan_cpu_jax0.10.2.txt").read_text()
    module = hlo.parse(text)
    steps = [step for part in module.computations.values() for step in part.instructions.values()]
    wanted = {(one.path, one.line) for step in steps for one in step.stack}
    assert wanted
    assert wanted == {(path, n) for path, pairs in lines(module).items() for a, b in pairs for n in range(a, b + 1)}


@pytest.mark.parametrize("target", compilers.each("cpu", "h100"))
def test_explained_and_checked(folder: Path, target: str) -> None:
    """Both columns are returned, each by a kernel; of the one column that is used XLA makes one kernel."""
    if absent := missing(get(target)):
        pytest.skip(absent)
    path = folder / "env.py"
    path.write_text(EXAMPLE)
    specs = ["env.py:swap(f32[64,2])", "env.py:first(f32[64,2])"]
    told = run("explain", *specs, "--target", target, "--output-format", "json")
    (folder / "e.json").write_text(told.stdout)
    before = {finding["line"]: finding for finding in found()}
    after = {finding["line"]: finding for finding in found("--evidence", "e.json")}
    assert {*before} == {7, 12}
    assert [one["target"] for one in after[7]["confirmed"]] == [target]
    assert after[12]["refuted"] == [target]
    result = run("check", "--target", target, "--evidence", "e.json")
    assert "Evidence from 2 reports: 1 finding confirmed, 1 refuted (dropped)." in result.stdout


EXAMPLE = f"""\
import jax.numpy as jnp


def swap(s):
    n = s.shape[0]
    # A kernel for each column.
    return {CALL}


def first(s):
    n = s.shape[0]
    swapped = {CALL}
    return swapped[:, 0] * 2.0
"""
