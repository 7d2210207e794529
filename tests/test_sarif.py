"""`check --output-format sarif` is SARIF 2.1.0 that says the same as the other formats."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from commands import CALL, HAZARD, RULE, run

from fusionlint.checking import Outcome
from fusionlint.finding import Edit, Finding, Location, Suggestion
from fusionlint.report.sarif import RuleText, findings_sarif
from fusionlint.source.fix import apply
from fusionlint.source.scope import speaking, usual

SCHEMA = Path(__file__).parent / "sarif" / "sarif-schema-2.1.0.json"


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")), use_default=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


def sarif(*args: str) -> dict[str, Any]:
    return json.loads(run("check", "--output-format", "sarif", *args).stdout)


def test_all_that_can_be_said_is_valid_by_the_official_schema(folder: Path, validate: Callable[[Any], Any]) -> None:
    (folder / "bad.py").write_text("def f(:\n")
    (folder / "idle.py").write_text("x = 1  # fusionlint: ignore[columns-by-at-sett]\n")
    log = sarif("--warn-unused-ignores")
    validate(log)
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == [RULE, "unused-ignore"]
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({**log, "version": "2.0.0"})


def test_a_clean_run_is_valid_and_says_which_rules_ran(folder: Path, validate: Callable[[Any], Any]) -> None:
    (folder / "env.py").write_text("x = 1\n")
    log = sarif()
    validate(log)
    (ran,) = log["runs"]
    assert ran["results"] == []
    assert [r["id"] for r in ran["tool"]["driver"]["rules"]] == [*speaking(usual(), ())]
    assert ran["tool"]["driver"]["version"] == version("fusionlint")


def test_a_result_names_its_rule_its_place_and_its_fix(folder: Path) -> None:
    (ran,) = sarif()["runs"]
    (result,) = ran["results"]
    rule = ran["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], result["level"]) == (RULE, RULE, "note")
    assert rule["help"]["markdown"].startswith(f"# {RULE}\n")
    assert "helpUri" not in rule
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "env.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 6, "startColumn": 12, "endLine": 6, "endColumn": 12 + len(CALL)}
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    region = replacement["deletedRegion"]
    where = Location("", region["startLine"], region["startColumn"], region["endLine"], region["endColumn"])
    fixed = apply(HAZARD, [Edit(where, replacement["insertedContent"]["text"])])
    run("check", "--fix", "--unsafe-fixes")
    assert fixed == (folder / "env.py").read_text()


def test_a_message_begins_with_what_the_text_says_and_its_braces_are_no_placeholders(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x\n")
    where = Location(str(tmp_path / "a.py"), 1, 1, 1, 2)
    finding = Finding("r", where, "a[0](b) and {0}", Suggestion("{w: 1}"))
    text = findings_sarif(Outcome((finding,), (), (), 1), [RuleText("r", "fusion", "s", "p")], "1", tmp_path)
    message = json.loads(text)["runs"][0]["results"][0]["message"]["text"]
    assert message == "a\\[0](b) and {{0}}\nwrite: {{w: 1}}"


def test_columns_count_characters_also_outside_of_ascii(folder: Path) -> None:
    (folder / "env.py").write_text(HAZARD.replace("return", "é = '𝛼é'; return"), encoding="utf-8")
    (ran,) = sarif()["runs"]
    assert ran["columnKind"] == "unicodeCodePoints"
    region = ran["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region["startColumn"] == 12 + len("é = '𝛼é'; ")


def test_paths_are_given_from_the_repositorys_top_and_escaped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    inner = folder / "a b"
    inner.mkdir()
    # No import can name such a file: it has to do something when it is run.
    (inner / "e#1%.py").write_text((folder / "env.py").read_text() + "\nprint(step)\n")
    (folder / "env.py").unlink()
    monkeypatch.chdir(inner)
    (ran,) = sarif()["runs"]
    place = ran["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/e%231%25.py"
    assert ran["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.as_uri()}/"


def test_a_file_from_elsewhere_has_an_absolute_uri(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    (result,) = sarif("../env.py")["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": (folder / "env.py").as_uri()}


def prints() -> list[str]:
    return [r["partialFingerprints"]["primaryLocationLineHash"] for r in sarif()["runs"][0]["results"]]


def test_fingerprints_stay_where_lines_move_and_differ_between_findings(folder: Path) -> None:
    (folder / "env.py").write_text(HAZARD + HAZARD)
    before = prints()
    assert len(set(before)) == 2
    (folder / "env.py").write_text("# more\n\n" + HAZARD + "\n\n" + HAZARD)
    assert prints() == before
    (folder / "env.py").write_text((HAZARD + HAZARD).replace("s[:, 1]", "2 * s[:, 1]"))
    assert not {*prints()} & {*before}


def test_what_could_not_be_checked_is_a_notification(folder: Path) -> None:
    (folder / "bad.py").write_text("def f(:\n")
    (folder / "idle.py").write_text("x = 1  # fusionlint: ignore[columns-by-at-sett]\n")
    (called,) = sarif()["runs"][0]["invocations"]
    assert called["executionSuccessful"] is True
    error, warning = called["toolExecutionNotifications"]
    assert (error["level"], warning["level"]) == ("error", "warning")
    assert error["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "bad.py"
    assert error["message"]["text"].startswith("does not parse")
    assert "did you mean 'columns-by-at-set'?" in warning["message"]["text"]
