"""`fusionlint targets`, the default target, progress, and --verbose, as a user meets them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner

import fusionlint.rule
from fusionlint.cli import main
from fusionlint.compiling import attached, targets
from fusionlint.compiling.targets import TARGETS, get
from fusionlint.report.progress import Progress
from fusionlint.report.targets_text import HEAD, targets_text

pytestmark = pytest.mark.compilers

CODE = """\
import sys


def good(x):
    return x * 2


def wrong(x):
    print("the user's own words", file=sys.stderr)
    return x @ x @ x[0, 0]
"""
HAZARD = """\
import jax.numpy as jnp


def pack(x, v):
    return jnp.zeros((x.shape[0], 2)).at[:, 0].set(x).at[:, 1].set(v)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.py").write_text(CODE)
    monkeypatch.setattr(attached, "attached", dict)
    return tmp_path


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    """Pretend that everything is installed but these distributions."""
    monkeypatch.setattr(targets, "_version", lambda name: None if name in absent else "0.10.2")


def test_targets_are_an_aligned_table_with_a_row_each() -> None:
    done = CliRunner().invoke(main, ["targets"])
    assert done.exit_code == 0
    table, notes = done.stdout.split("\n\n")
    head, *rows = table.splitlines()
    assert [row.split()[0] for row in rows] == [target.name for target in TARGETS]
    assert max(map(len, [head, *rows, *notes.splitlines()])) < 120
    assert [row.split()[-1] for row in rows[1:7]] == ["(2)"] * 6
    assert f"(2) {get('h100').differs}\n" in notes
    starts = [head.index(title) for title in HEAD]
    for row in rows:
        assert all(row[start - 1] == " " and row[start] != " " for start in starts[1:])
    assert "3352 GB/s" in rows[2]


def test_a_target_whose_compiler_is_not_installed_shows_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "libtpu")
    rows = {row.split()[0]: row for row in targets_text(TARGETS).splitlines() if row}
    assert "  pip install 'fusionlint[tpu]'  819 GB/s" in rows["v5e"]
    assert "  jax-cuda12-plugin 0.10.2" in rows["h100"]


def test_an_attached_device_is_shown_as_itself() -> None:
    found = get("h200")._replace(attached=True)
    table, notes = targets_text(TARGETS, [found]).split("\n\n")
    marks = {row.split()[0]: row.split()[-1] for row in table.splitlines()}
    assert f"{marks['h200']} it is here, and compiles itself\n" in notes
    assert f"{marks['h100']} {get('h100').differs}\n" in notes


def test_without_any_accelerators_compiler_the_report_is_for_the_cpu_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("jax")
    without(monkeypatch, "jax-cuda12-plugin", "jax-cuda13-plugin")
    monkeypatch.setattr(fusionlint.rule, "all_rules", list)
    done = CliRunner().invoke(main, ["explain", "some.py:good(f32[4])"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("some.py:good(f32[4]) on cpu ")
    assert done.stdout.count("these are CPU counts: no guide to a GPU or TPU") == 1


def test_the_configured_target_is_the_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text("[tool.fusionlint]\ntarget = ['v6e']\n")
    without(monkeypatch, "libtpu")
    done = CliRunner().invoke(main, ["explain", "some.py:good(f32[4])"])
    assert done.exit_code == 2
    assert done.stderr == "fusionlint: the compiler for v6e is not installed: pip install 'fusionlint[tpu]'\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "gpu"], "jax finds no GPU here"),
        (["--executor", "spark://here"], "write dask://host:port"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["explain", "some.py:good(f32[4])", *arguments])
    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_a_worker_wrote_is_shown_where_it_fails_and_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(fusionlint.rule, "all_rules", list)
    command = ["explain", "some.py:good(f32[4,4])", "some.py:wrong(f32[4,4])", "--target", "cpu"]
    short, whole = (CliRunner().invoke(main, [*command, *more]) for more in ([], ["--verbose"]))
    assert (short.exit_code, whole.exit_code) == (2, 2)
    assert len(short.stderr.splitlines()) == 1
    assert whole.stderr.startswith(short.stderr)
    assert "the user's own words" in whole.stderr
    assert short.stdout.startswith("some.py:good(f32[4,4]) on cpu ")


@pytest.mark.parametrize("name", [*(target.name for target in TARGETS if target.platform == "cuda"), "gpu"])
def test_check_knows_every_gpu_by_the_measurements_of_one(folder: Path, name: str) -> None:
    (folder / "env.py").write_text(HAZARD)
    done = CliRunner().invoke(main, ["check", "env.py", "--target", name])
    assert done.exit_code == 1
    assert "h100" in done.stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_is_written_over() -> None:
    stream = Terminal()
    progress = Progress(2, stream)
    progress.show()
    progress.done()
    progress.clear()
    progress.done()
    clear = "\r\x1b[K"
    assert stream.getvalue() == f"{clear}compiling 1 of 2 ...{clear}compiling 2 of 2 ...{clear}{clear}"


def test_progress_says_nothing_where_nobody_watches() -> None:
    stream = io.StringIO()
    for progress in (Progress(2, stream), Progress(0, Terminal())):
        progress.show()
        progress.done()
        progress.clear()
    assert stream.getvalue() == ""
