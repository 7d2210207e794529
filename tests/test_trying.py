"""`fusionlint explain --try-fixes`: what each fix of `check` makes of the function is what applying it makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run

from fusionlint import trying
from fusionlint.compiling.artifacts import Job, read_job, write_job
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.targets import get, missing
from fusionlint.explained import Report, Totals
from fusionlint.finding import Edit, Finding, Location, Suggestion
from fusionlint.report.explain_json import report_json
from fusionlint.report.explain_page import explain_page
from fusionlint.report.trials_text import trials_block
from fusionlint.tasks import explain_all
from fusionlint.trials import Trial, Word

pytest.importorskip("jax")

NEAREST = """\
import jax.numpy as jnp

from near import first


def nearest(points):
    d = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1)
    return first(d), jnp.select([points > 1, points > 0.5], [points * 2, points * 3], points)
"""
NEAR = """\
import jax.numpy as jnp


def first(d):
    i = jnp.argmin(d, axis=1)
    return d[jnp.arange(d.shape[0]), i]
"""
LOOP = """\
import jax
import jax.numpy as jnp


def decayed(xs):
    def step(y, x):
        y = 0.9 * y + jnp.tanh(x)
        return y, y

    return jax.lax.scan(step, jnp.zeros(xs.shape[1]), xs)[1]
"""
SPEC = "env.py:nearest(f32[64,3])"
CPU = ("--target", "cpu")


def written(folder: Path) -> Path:
    (folder / "pyproject.toml").write_text("")
    (folder / "env.py").write_text(NEAREST)
    (folder / "near.py").write_text(NEAR)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A function whose files nothing changes."""
    return Job(parse_spec(str(written(tmp_path_factory.mktemp("project")) / SPEC)))


@pytest.fixture(scope="module")
def report(job: Job) -> Report:
    (report,) = explain_all([(job, get("cpu"))])
    assert isinstance(report, Report)
    return replace(report, trials=trying.tried(trying.fixable(report, get("cpu")), report, job, get("cpu"), 60.0))


def launches(trial: Trial) -> float:
    (cell,) = (cell for cell in trial.measured if cell.quantity == "launches")
    return cell.good


def test_what_a_trial_says_is_what_the_command_that_it_names_makes_of_the_program(folder: Path) -> None:
    said = run("explain", SPEC, "--try-fixes", *CPU).stdout
    assert (folder / "env.py").read_text() + (folder / "near.py").read_text() == NEAREST + NEAR
    assert "   better  near.py:6:12 argmax-then-pick " in said
    assert "           write: jnp.min(d, axis=1)\n" in said
    assert "   better  env.py:8:22 select-or-piecewise " in said
    (together,) = re.findall(r"   better  2 fixes together +(\d+) -> (\d+) launches, ", said)
    (command,) = re.findall(r"   `fusionlint (check .+)` writes what is better\n", said)
    assert said.splitlines()[1].startswith(f"{together[0]} launches, ")
    run(*command.split())
    assert "argmin" not in (folder / "near.py").read_text()
    after = run("explain", SPEC, *CPU).stdout
    assert after.splitlines()[1].startswith(f"{together[1]} launch")
    assert int(together[1]) < int(together[0])
    assert "fixes" not in after


def test_each_fix_is_tried_alone_and_then_those_that_gain_together(report: Report) -> None:
    assert report.trials is not None
    *alone, together = report.trials
    assert [[fix.rule for fix in trial.fixes] for trial in alone] == [["argmax-then-pick"], ["select-or-piecewise"]]
    assert [trial.word for trial in report.trials] == ["better"] * 3
    assert len(together.fixes) == 2
    assert launches(together) < min(map(launches, alone)) < report.launches


def test_a_fix_of_a_function_that_was_not_compiled_is_not_tried(report: Report) -> None:
    assert len(trying.fixable(report, get("cpu"))) == 2
    near = {path: lines for path, lines in report.lines.items() if path.endswith("near.py")}
    assert [one.rule for one in trying.fixable(replace(report, lines=near), get("cpu"))] == ["argmax-then-pick"]


def test_without_a_fix_for_its_lines_a_report_says_so(folder: Path) -> None:
    (folder / "plain.py").write_text("def double(x):\n    return x * 2\n")
    said = run("explain", "plain.py:double(f32[8])", "--try-fixes", *CPU).stdout
    assert said.endswith("\n\nno fix of `fusionlint check` is for these lines\n")


def test_the_page_shows_the_trials_too(report: Report) -> None:
    assert "near.py:6:12 argmax-then-pick" in explain_page([report])
    assert "argmax-then-pick" not in explain_page([replace(report, trials=None, barriers=())])


def test_settings_of_the_project_silence_rules_here_too(report: Report, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.fusionlint]\nignore = ["argmax-then-pick"]\n')
    here = replace(report, lines={str(folder / Path(path).name): lines for path, lines in report.lines.items()})
    assert [one.rule for one in trying.fixable(here, get("cpu"))] == ["select-or-piecewise"]


def test_what_is_compiled_already_has_no_source_to_fix(folder: Path) -> None:
    (folder / "after.hlo.txt").write_text("HloModule jit_f\n")
    done = run("explain", "after.hlo.txt", "--try-fixes", *CPU)
    assert done.exit_code == 2
    assert done.stderr == (
        "fusionlint: --try-fixes is for functions: what is compiled or lowered already has no source to fix\n"
    )


def test_beside_a_function_what_is_compiled_already_says_that_it_has_no_source(folder: Path) -> None:
    (folder / "plain.py").write_text("def double(x):\n    return x * 2\n")
    dump = str(Path(__file__).parent / "hlo" / "elementwise_cpu_jax0.10.2.txt")
    said = run("explain", "plain.py:double(f32[8])", dump, "--try-fixes", *CPU).stdout
    assert said.count("no fix of `fusionlint check` is for these lines") == 1
    assert said.count("were not tried: what is compiled or lowered already has no source to fix") == 1


def test_what_gains_only_together_is_compiled_together(
    report: Report, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of one of the two alone nobody would see a difference; of both, one would.
    totals = {1: report.totals, 2: replace(report.totals, launches=1)}

    def compiled(variants: Sequence[Any], *_: Any) -> list[Trial]:
        return [Trial("cpu", one.fixes, report.totals, totals[len(one.fixes)]) for one in variants]

    monkeypatch.setattr(trying, "_compiled", compiled)
    *alone, together = trying.tried(trying.fixable(report, get("cpu")), report, job, get("cpu"), 60.0)
    assert [trial.word for trial in alone] == ["same", "same"]
    assert together.word == "better"
    assert [*together.fixes] == trying.fixable(report, get("cpu"))


def test_a_fix_that_breaks_the_program_is_told_and_no_reason_to_stop(report: Report, job: Job) -> None:
    path = next(path for path in report.lines if path.endswith("env.py"))
    where = Location(path, 7, 9, 7, 9 + len("jnp.sum"))
    broken = Finding("made-up", where, "it is broken", Suggestion("jnp.smu", (Edit(where, "jnp.smu"),)))
    (trial,) = trying.tried([broken], report, job, get("cpu"), 60.0)
    assert trial.word == "fails"
    assert "has no attribute 'smu'" in trial.error
    assert trial.error in "\n".join(trials_block([trial]))


# `check` beside a report of fixes that were tried.
def checked(report: Report) -> str:
    Path("e.json").write_text(report_json([report]))
    (path,) = (path for path in report.lines if path.endswith("near.py"))
    return run("check", path, "--evidence", "e.json", *CPU).stdout


def with_word(report: Report, *words: Word) -> Report:
    """The report as if its fixes, and all of them together, had gained or lost."""
    after = {"better": 1, "same": report.totals.launches, "worse": 1000}
    trials = zip(report.trials or (), words, strict=True)
    told = (
        replace(trial, after=replace(report.totals, launches=after[word]) if word in after else None)
        for trial, word in trials
    )
    return replace(report, trials=tuple(told))


def test_evidence_of_a_fix_that_gains_confirms_its_finding_with_what_it_gains(folder: Path, report: Report) -> None:
    said = checked(report)
    assert re.search(r"= tried on cpu: (\d+) -> (\d+) launches, .+ -> .+, in .+env\.py:nearest\(f32\[64,3\]\)", said)
    assert "1 finding confirmed, 0 refuted" in said


@pytest.mark.parametrize("word", ["worse", "same"])
def test_evidence_of_a_fix_that_gains_nothing_drops_its_finding(folder: Path, report: Report, word: Word) -> None:
    alone = replace(report, trials=(report.trials or ())[:1])
    assert "0 findings confirmed, 1 refuted (dropped)" in checked(with_word(alone, word))


def test_evidence_of_a_fix_that_gains_beside_others_confirms_it_with_what_all_gain(
    folder: Path, report: Report
) -> None:
    said = checked(with_word(report, "same", "better", "better"))
    assert f"= tried on cpu with the other fixes: {report.launches} -> 1 launches" in said


def test_what_a_fix_broke_is_no_evidence(folder: Path, report: Report) -> None:
    alone = replace(report, trials=(report.trials or ())[:1])
    assert checked(with_word(alone, "fails")) == checked(replace(report, trials=None))


@pytest.mark.compilers
def test_a_fix_that_asks_what_it_runs_on_is_compiled_as_there(folder: Path) -> None:
    target = get("h100")
    if absent := missing(target):
        pytest.skip(absent)
    (folder / "loop.py").write_text(LOOP)
    job = Job(parse_spec(str(folder / "loop.py:decayed(f32[32,64])")))
    (report,) = explain_all([(job, target)])
    assert isinstance(report, Report)
    (trial,) = trying.tried(trying.fixable(report, target), report, job, target, 60.0)
    assert "jax.default_backend()" in (trial.fixes[0].suggestion or Suggestion("")).text
    assert trial.word == "better"
    assert launches(trial) < report.launches / 2


def test_where_the_same_rule_gains_nothing_elsewhere_in_the_file_the_command_goes_by_the_report(report: Report) -> None:
    (one, *_), worse = report.trials or (), replace(report.totals, launches=1000)
    other = replace(one, fixes=(one.fixes[0]._replace(message="another"),), after=worse)
    said = [*trials_block([one, other])][-1]
    assert " --select argmax-then-pick --evidence FILE --target cpu --fix --unsafe-fixes` writes what is better" in said
    assert "--evidence" not in [*trials_block([one])][-1]


def test_what_gains_in_a_library_is_told_and_not_how_to_write_into_it(report: Report) -> None:
    (one, *_) = report.trials or ()
    where = one.fixes[0].location._replace(path="/usr/lib/python3/site-packages/near/near.py")
    *_, last = trials_block([replace(one, fixes=(one.fixes[0]._replace(location=where),))])
    assert last.endswith("write: jnp.min(d, axis=1)")


# What a fix is worth, in a report that says so.
TOTALS = Totals(10, 0, 1000, 0, 20.0, 0.0)
FASTER = replace(TOTALS, launches=4, microseconds=8.0)
SLOWER = replace(TOTALS, launches=4, microseconds=30.0)


@pytest.mark.parametrize(
    ("after", "word"),
    [
        (FASTER, "better"),
        (SLOWER, "worse"),
        (TOTALS, "same"),
        (replace(TOTALS, microseconds=19.9), "same"),
        (None, "fails"),
        (replace(TOTALS, microseconds=25.0, microseconds_per_iteration=-1.0), "better"),
    ],
)
def test_time_decides_where_it_is_known_and_first_what_every_iteration_takes(after: Totals | None, word: str) -> None:
    before = replace(TOTALS, microseconds_per_iteration=1.0) if after and after.microseconds_per_iteration else TOTALS
    assert Trial("h100", (), before, after).word == word


@pytest.mark.parametrize(
    ("more", "word"), [({"launches": 9}, "better"), ({"bytes": 1100}, "worse"), ({"bytes": 999}, "same")]
)
def test_without_times_launches_decide_and_then_bytes(more: dict[str, int], word: str) -> None:
    before = replace(TOTALS, microseconds=None, microseconds_per_iteration=None)
    assert Trial("cpu", (), before, replace(before, **more)).word == word


def test_a_job_keeps_its_texts_on_the_way_to_a_worker() -> None:
    job = Job(parse_spec(SPEC), texts={"/a.py": "x = '\N{GREEK SMALL LETTER PI}'\n"})
    assert read_job(json.loads(json.dumps(write_job(job)))) == job
