"""`check --output-format github` prints commands that a workflow's runner turns into annotations."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from commands import CALL, HAZARD, RULE, run

from fusionlint.finding import Finding, Location, Suggestion
from fusionlint.report.github import finding_command

_COMMAND = re.compile(r"::(notice|warning|error) ([^:]*)::(.+)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


def test_every_line_is_a_command(folder: Path) -> None:
    (folder / "bad.py").write_text("def f(:\n")
    (folder / "idle.py").write_text("x = 1  # fusionlint: ignore[nothing-like-it]\n")
    result = run("check", "--output-format", "github")
    found, error, warning = result.stdout.splitlines()
    assert found.startswith(
        f"::notice file=env.py,line=6,endLine=6,col=12,endColumn={12 + len(CALL)},title={RULE}::2 columns are written"
    )
    assert error.startswith("::error file=bad.py,line=1,title=fusionlint::does not parse")
    assert warning.startswith("::warning file=idle.py,line=1,title=fusionlint::")
    assert all(_COMMAND.fullmatch(line) for line in (found, error, warning))
    assert result.exit_code == 1


def test_a_comment_is_annotated_once(folder: Path) -> None:
    (folder / "env.py").write_text("x = 1  # fusionlint: ignore[nothing-like-it]\n")
    (line,) = run("check", "--output-format", "github", "--warn-unused-ignores").stdout.splitlines()
    assert "title=unused-ignore" in line


def test_what_would_end_a_command_or_a_property_is_escaped() -> None:
    where = Location("/x/50%, a:b.py", 1, 2, 3, 4)
    finding = Finding("r", where, "100% of\r\nit: a, b", Suggestion("c::d"))
    place = "file=/x/50%25%2C a%3Ab.py,line=1,endLine=3,title=r"
    assert finding_command(finding, Path("/y")) == f"::warning {place}::100%25 of%0D%0Ait: a, b%0Awrite: c::d"


def test_paths_start_at_the_repositorys_top(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    (folder / "src").mkdir()
    (folder / "env.py").rename(folder / "src" / "env.py")
    monkeypatch.chdir(folder / "src")
    assert run("check", "--output-format", "github").stdout.startswith("::notice file=src/env.py,")


def test_what_is_seen_to_be_traced_is_a_warning(folder: Path) -> None:
    (folder / "env.py").write_text(f"import jax\n{HAZARD}\n\nstep = jax.jit(swap)\n")
    assert run("check", "--output-format", "github").stdout.startswith("::warning file=env.py,")
