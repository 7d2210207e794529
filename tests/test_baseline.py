"""`check --baseline FILE` leaves out what the file lists, and says what it lists for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import CALL, HAZARD, RULE, run

KNOWN = "known.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


@pytest.fixture
def known(folder: Path) -> Path:
    assert run("check", "--baseline", KNOWN, "--write-baseline").exit_code == 0
    return folder


def entries(folder: Path) -> list[dict[str, str]]:
    return json.loads((folder / KNOWN).read_text())["findings"]


def test_it_lists_rule_path_and_the_lines_text_and_no_numbers(folder: Path) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "a.py").write_text(HAZARD)
    result = run("check", "--baseline", KNOWN, "--write-baseline")
    assert (result.stdout, result.stderr) == ("", f"Wrote 2 findings to {KNOWN}.\n")
    entry = {"rule": RULE, "code": f"return {CALL}"}
    assert entries(folder) == [{"path": "b/a.py", **entry}, {"path": "env.py", **entry}]
    text = (folder / KNOWN).read_text()
    assert sum(RULE in line for line in text.splitlines()) == 2
    run("check", "--baseline", KNOWN, "--write-baseline")
    assert (folder / KNOWN).read_text() == text


def test_known_findings_are_dropped_and_counted_wherever_they_move(known: Path) -> None:
    (known / "env.py").write_text("# moved\n\n" + HAZARD.replace("    return", "    if n:\n        return"))
    result = run("check", "--baseline", KNOWN)
    assert result.stdout == "No new hazards found in 1 file. 1 known from the baseline.\n"
    assert (result.stderr, result.exit_code) == ("", 0)


def test_one_more_of_the_same_line_is_new(known: Path) -> None:
    (known / "env.py").write_text(HAZARD + HAZARD)
    result = run("check", "--baseline", KNOWN, "--output-format", "concise")
    assert result.stdout.startswith("env.py:12:12: ")
    assert "Found 1 hazard in 1 file" in result.stdout
    assert "1 known from the baseline." in result.stdout
    assert result.exit_code == 1


def test_what_no_longer_occurs_is_said_in_one_line_and_can_be_taken_out(known: Path) -> None:
    (known / "env.py").write_text("x = 1\n")
    result = run("check", "--baseline", KNOWN)
    assert result.stderr == f"{KNOWN} lists 1 finding that no longer occurs: --write-baseline takes them out\n"
    assert result.exit_code == 0
    run("check", "--baseline", KNOWN, "--write-baseline")
    assert entries(known) == []
    assert run("check", "--baseline", KNOWN).stderr == ""


@pytest.mark.parametrize("args", [("other.py",), ("--select", "loop-over-jit"), ("--target", "h100")])
def test_a_run_that_sees_a_part_says_nothing_of_the_rest_and_keeps_it(known: Path, args: tuple[str, ...]) -> None:
    (known / "other.py").write_text("x = 1\n")
    (known / "env.py").write_text("x = 1\n")
    command = ("check", "--baseline", KNOWN, *args)
    assert run(*command).stderr == ""
    run(*command, "--write-baseline")
    assert len(entries(known)) == 1


def test_entries_of_a_file_that_is_gone_or_does_not_parse(known: Path) -> None:
    (known / "env.py").write_text("def f(:\n")
    assert "no longer" not in run("check", "--baseline", KNOWN).stderr
    (known / "env.py").unlink()
    assert "lists 1 finding that no longer occurs" in run("check", "--baseline", KNOWN).stderr


def test_fix_leaves_known_findings_alone(known: Path) -> None:
    new = "\n\ndef more(s):\n    return jnp.zeros((8, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])\n"
    (known / "env.py").write_text(HAZARD + new)
    result = run("check", "--baseline", KNOWN, "--fix", "--unsafe-fixes")
    assert "Fixed 1 hazard in 1 file." in result.stdout
    assert (known / "env.py").read_text().startswith(HAZARD)
    assert "jnp.stack" in (known / "env.py").read_text()
    assert result.exit_code == 0


def test_json_sarif_and_statistics_know_it_too(known: Path) -> None:
    (known / "env.py").write_text(HAZARD + HAZARD)
    document = json.loads(run("check", "--baseline", KNOWN, "--output-format", "json").stdout)
    assert document["baseline"] == {"path": KNOWN, "known": 1, "gone": 0}
    assert [f["line"] for f in document["findings"]] == [12]
    log = json.loads(run("check", "--baseline", KNOWN, "--output-format", "sarif").stdout)
    assert len(log["runs"][0]["results"]) == 1
    assert "    1 columns-by-at-set" in run("check", "--baseline", KNOWN, "--statistics").stdout


def test_the_configuration_names_it_from_its_own_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.fusionlint]\nbaseline = '{KNOWN}'\n")
    assert run("check", "--write-baseline").exit_code == 0
    assert entries(folder)[0]["path"] == "env.py"
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert run("check", "../env.py").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no baseline known.json; `fusionlint check --baseline known.json --write-baseline` writes it"),
        ("{", "known.json is not a baseline that fusionlint wrote"),
        ("[]", "known.json is not a baseline that fusionlint wrote"),
        ('{"version": 2, "targets": [], "findings": []}', "a newer fusionlint wrote it"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_one_line_and_exit_two(folder: Path, text: str | None, message: str) -> None:
    if text is not None:
        (folder / KNOWN).write_text(text)
    result = run("check", "--baseline", KNOWN)
    assert message in result.stderr
    assert (len(result.stderr.splitlines()), result.stdout, result.exit_code) == (1, "", 2)


def test_writing_without_a_file_says_how_to_name_one(folder: Path) -> None:
    result = run("check", "--write-baseline")
    assert (result.stderr.count("\n"), result.exit_code) == (1, 2)
    assert "--baseline FILE" in result.stderr


def test_one_that_may_not_be_written_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, _: bytes) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refused)
    done = run("check", ".", "--no-cache", "--baseline", "known.json", "--write-baseline")
    assert (done.stderr, done.exit_code) == ("fusionlint: known.json: permission denied\n", 2)
