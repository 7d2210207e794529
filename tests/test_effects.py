"""Options that do nothing beside others are said to, and nothing is lost for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import HAZARD, RULE, run
from documents import SHOWN

from fusionlint.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("--unsafe-fixes", "--unsafe-fixes has no effect without --fix or --diff"),
        ("--statistics --output-format json", "--statistics has no effect with --output-format json"),
        ("--statistics --output-format github", "--statistics has no effect with --output-format github"),
        ("--diff --statistics", "--statistics has no effect with --diff"),
        ("--diff --output-format json", "--output-format has no effect with --diff"),
        ("--diff --fix", "--diff only shows the fixes: nothing is written"),
        ("--no-cache --cache-dir kept", "--cache-dir has no effect with --no-cache"),
        (
            "env.py --stdin-filename a.py",
            "--stdin-filename has no effect with PATHS: `check -` reads a text from stdin",
        ),
    ],
)
def test_an_option_without_effect_is_a_line_on_stderr(args: str, told: str) -> None:
    first, *_ = run("check", *args.split()).stderr.splitlines()
    assert first == f"fusionlint: {told}"


@pytest.mark.parametrize(
    "args",
    ["--fix --unsafe-fixes", "--diff --unsafe-fixes", "--statistics", "--statistics --output-format concise", "."],
)
def test_what_has_an_effect_is_not_spoken_of(args: str) -> None:
    assert "no effect" not in run("check", *args.split()).stderr


def test_the_environment_names_the_cache_and_help_and_docs_say_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONLINT_CACHE_DIR", "kept")
    run("check")
    assert {path.name for path in folder.iterdir()} == {"env.py", "kept"}
    assert "FUSIONLINT_CACHE_DIR" in run("check", "--help").stdout
    assert "`FUSIONLINT_CACHE_DIR`" in SHOWN


def test_what_the_environment_says_of_the_cache_is_no_mistake_with_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONLINT_CACHE_DIR", "kept")
    assert run("check", "--no-cache").stderr == ""


@pytest.mark.parametrize("args", ["env.py --diff", "- --fix"])
def test_a_baseline_that_would_not_be_written_is_an_error(args: str) -> None:
    result = run("check", *args.split(), "--baseline", "known.json", "--write-baseline")
    assert result.exit_code == 2
    assert "--write-baseline writes nothing with --" in result.stderr


def test_a_diff_says_which_files_could_not_be_checked(folder: Path) -> None:
    (folder / "env.py").write_text("x = = 1\n")
    result = run("check", "--diff")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert "env.py:1: does not parse: " in result.stderr


def test_a_name_for_stdin_alone_reads_it() -> None:
    result = CliRunner().invoke(main, ["check", "--stdin-filename", "new.py", "--output-format", "concise"], HAZARD)
    assert result.stdout.startswith(f"new.py:6:12: {RULE}: ")
    assert "env.py" not in result.stdout
