"""What comments and per-file-ignores silence, and which comments silence nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import CALL, HAZARD, RULE, run

from fusionlint.source.ignores import ignores
from fusionlint.source.per_file import PerFile

OTHER = "sort-for-max"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(HAZARD)
    return tmp_path


def commented(comment: str) -> str:
    return f"{HAZARD.rstrip()}  {comment}\n"


@pytest.mark.parametrize(
    ("comment", "right"),
    [
        ("ignore sort-for-max", "ignore[sort-for-max]"),
        ("ignore: chained-at-set", "ignore[chained-at-set]"),
        ("ignore(chained-at-set)", "ignore[chained-at-set]"),
        ("ignore[chained-at-set", "ignore[chained-at-set]"),
        ("ignore-file: all", "ignore-file[rule-name]"),
    ],
)
def test_rules_that_are_named_without_brackets_are_a_line_on_stderr(folder: Path, comment: str, right: str) -> None:
    (folder / "env.py").write_text(f"x = 1  # fusionlint: {comment}\n")
    word = comment.partition("-file")[0][:6] + ("-file" if "-file" in comment else "")
    assert run("check").stderr == (
        f"env.py:1: warning: `# fusionlint: {word}` without brackets silences every rule; "
        f"to name some: `# fusionlint: {right}`\n"
    )


@pytest.mark.parametrize("comment", ["ignore", "ignore  # noqa", "ignore because it is small", "ignore-file"])
def test_a_comment_for_all_rules_may_say_why(folder: Path, comment: str) -> None:
    (folder / "env.py").write_text(f"x = 1  # fusionlint: {comment}\n")
    assert run("check").stderr == ""


@pytest.mark.parametrize(
    ("comment", "exit_code"),
    [
        ("# fusionlint: ignore-file", 0),
        (f"# fusionlint: ignore-file[{RULE}]", 0),
        (f"# fusionlint: ignore-file[{OTHER}]", 1),
        (f"#fusionlint:ignore-file [{OTHER}, {RULE}]", 0),
        (f"# fusionlint: ignore[{RULE}]", 1),
        ("# fusionlint: ignore-files", 1),
    ],
)
def test_a_comment_anywhere_can_silence_a_whole_file(folder: Path, comment: str, exit_code: int) -> None:
    (folder / "env.py").write_text(f"{comment}\n{HAZARD}")
    assert run("check").exit_code == exit_code
    (folder / "env.py").write_text(f"{HAZARD}\n\n{comment}\n")
    assert run("check").exit_code == exit_code


WRAPPED = """\
import jax.numpy as jnp


def swap(s):  # 4
    n = s.shape[0]
    return (  # 6
        # 7
        jnp.zeros((n, 2))  # 8
        .at[:, 0]  # 9
        .set(s[:, 1])
        .at[:, 1]
        .set(s[:, 0])  # 12
        * 1
    )  # 14
"""


@pytest.mark.parametrize("line", [6, 8, 14])
def test_the_first_or_last_line_of_a_statement_or_the_line_of_the_finding_takes_the_comment(
    folder: Path, line: int
) -> None:
    (folder / "env.py").write_text(WRAPPED.replace(f"# {line}\n", f"# fusionlint: ignore[{RULE}]\n"))
    assert run("check", "--warn-unused-ignores").exit_code == 0


@pytest.mark.parametrize("rules", ["", f"[{RULE}]"])
@pytest.mark.parametrize("line", [7, 9])
def test_in_the_middle_of_a_statement_a_comment_is_unused_and_told_where_to_go(
    folder: Path, line: int, rules: str
) -> None:
    (folder / "env.py").write_text(WRAPPED.replace(f"# {line}\n", f"# fusionlint: ignore{rules}\n"))
    shown = run("check", "--warn-unused-ignores", "--output-format", "concise").stdout.splitlines()[:2]
    finding, told = sorted(shown, key=lambda row: "unused-ignore" in row)
    assert finding.startswith(f"env.py:8:9: {RULE}: ")
    assert told.startswith(f"env.py:{line}:")
    assert f"it is in the middle of a statement; {RULE} is found on line 8 of it" in told


def test_a_comment_on_the_line_of_one_finding_is_not_meant_for_another_of_the_statement(folder: Path) -> None:
    both = f"    return (\n        {CALL},  # fusionlint: ignore[{RULE}]\n        {CALL},\n    )\n"
    (folder / "env.py").write_text(HAZARD.replace(f"    return {CALL}\n", both))
    shown = run("check", "--warn-unused-ignores", "--output-format", "concise").stdout.splitlines()
    assert [row.partition(" ")[0] for row in shown[:-1]] == ["env.py:8:9:"]


def test_a_comment_at_the_head_of_a_function_is_not_for_its_body(folder: Path) -> None:
    (folder / "env.py").write_text(WRAPPED.replace("# 4\n", f"# fusionlint: ignore[{RULE}]\n"))
    assert run("check", "--warn-unused-ignores").stdout.count("env.py:") == 2


def test_a_string_is_no_comment() -> None:
    assert ignores(b'x = "# fusionlint: ignore"\ny = """\n# fusionlint: ignore\n"""\n', "a.py") == ()
    (one,) = ignores("\ufeffx = 'é'  # fusionlint: ignore[a, b]\n".encode(), "a.py")
    assert (one.names, one.location.column, one.location.end_column) == (("a", "b"), 10, 36)


def test_a_name_that_no_rule_has_is_a_line_on_stderr(folder: Path) -> None:
    (folder / "env.py").write_text(commented("# fusionlint: ignore[columns-by-atset]"))
    result = run("check")
    assert result.stderr == (
        "env.py:6: warning: `# fusionlint: ignore[columns-by-atset]`: "
        "there is no rule 'columns-by-atset'; did you mean 'columns-by-at-set'?\n"
    )
    (folder / "env.py").write_text("x = 1  # fusionlint: ignore[]\n")
    result = run("check")
    assert (result.stderr, result.exit_code) == ("env.py:1: warning: `# fusionlint: ignore[]` names no rule\n", 0)


@pytest.mark.parametrize("names", ["columns-by-atset", "", "columns-by-atset, sort-for-max"])
def test_what_a_finding_says_of_a_comment_is_no_warning_besides(folder: Path, names: str) -> None:
    (folder / "env.py").write_text(f"x = 1  # fusionlint: ignore[{names}]\n")
    assert "warning" in run("check").stderr
    result = run("check", "--warn-unused-ignores")
    assert (result.stdout.count("unused-ignore: "), result.stderr) == (1, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # fusionlint: ignore\n", "x = 1\n"),
        ("x = 1  # fusionlint: ignore", "x = 1"),
        ("x = 1\n# fusionlint: ignore-file\ny = 2\n", "x = 1\ny = 2\n"),
        (f"x = 1  # fusionlint: ignore[{OTHER}]  # noqa\r\n", "x = 1  # noqa\r\n"),
        (f"x = 1  # noqa # fusionlint: ignore[{OTHER}]\n", "x = 1  # noqa\n"),
        (f"x = 1  # fusionlint: ignore[{OTHER}] small\n", "x = 1  # small\n"),
        (commented(f"# fusionlint: ignore[{OTHER},{RULE}]"), commented(f"# fusionlint: ignore[{RULE}]")),
        (commented(f"# fusionlint: ignore[{RULE}, what]"), commented(f"# fusionlint: ignore[{RULE}]")),
        (f"# fusionlint: ignore-file[{RULE}, {OTHER}]\n{HAZARD}", f"# fusionlint: ignore-file[{RULE}]\n{HAZARD}"),
    ],
)
def test_a_comment_that_silences_nothing_is_found_and_taken_out(folder: Path, before: str, after: str) -> None:
    (folder / "env.py").write_bytes(before.encode())
    assert run("check").exit_code == 0
    result = run("check", "--warn-unused-ignores", "--output-format", "concise")
    assert "unused-ignore: `# fusionlint: ignore" in result.stdout
    assert result.stdout.splitlines()[-1] == "Found 1 unused ignore comment in 1 file, 1 of them fixable with --fix."
    assert result.exit_code == 1
    assert "Fixed 1 finding in 1 file." in run("check", "--warn-unused-ignores", "--fix").stdout
    assert (folder / "env.py").read_bytes().decode() == after


@pytest.mark.parametrize("comment", ["# fusionlint: ignore", f"# fusionlint: ignore[{RULE}]"])
def test_a_comment_that_silences_something_is_none(folder: Path, comment: str) -> None:
    (folder / "env.py").write_text(commented(comment))
    assert run("check", "--warn-unused-ignores").exit_code == 0
    (folder / "env.py").write_text(f"{comment.replace('ignore', 'ignore-file')}\n{HAZARD}")
    assert run("check", "--warn-unused-ignores").exit_code == 0


@pytest.mark.parametrize("comment", ["# fusionlint: ignore", f"# fusionlint: ignore[{RULE}]"])
@pytest.mark.parametrize("args", [("--select", OTHER), ("--ignore", RULE)])
def test_nothing_is_said_of_rules_that_did_not_run(folder: Path, comment: str, args: tuple[str, ...]) -> None:
    (folder / "env.py").write_text(commented(comment))
    assert run("check", "--warn-unused-ignores", *args).exit_code == 0


def test_a_hazard_on_another_target_is_still_silenced(folder: Path) -> None:
    """lax-map-for-vmap and others have pairs that are harm on some targets alone."""
    (folder / "env.py").write_text(commented("# fusionlint: ignore"))
    for target in ("cpu", "h100", "v5e"):
        assert run("check", "--warn-unused-ignores", "--target", target).exit_code == 0


def test_the_configuration_asks_for_it(folder: Path) -> None:
    (folder / "env.py").write_text("x = 1  # fusionlint: ignore\n")
    (folder / "pyproject.toml").write_text("[tool.fusionlint]\nwarn-unused-ignores = true\n")
    assert run("check").exit_code == 1


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (f'"examples/**" = ["{RULE}"]', ["env.py"]),
        (f'"examples/" = "{RULE}"', ["env.py"]),
        ('"*.py" = ["all"]', []),
        (f'"!examples/" = ["{RULE}"]', ["examples/env.py"]),
        (f'"examples/**" = ["{OTHER}"]', ["env.py", "examples/env.py"]),
        (f'"/env.py" = ["{RULE}"]', ["examples/env.py"]),
    ],
)
def test_rules_are_ignored_by_file(folder: Path, table: str, found: list[str]) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.fusionlint.per-file-ignores]\n{table}\n")
    (folder / "examples").mkdir()
    (folder / "examples" / "env.py").write_text(HAZARD)
    lines = run("check", "--output-format", "concise").stdout.splitlines()[:-1]
    assert [line.partition(":")[0] for line in lines] == found


def test_patterns_are_meant_from_the_configurations_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text(f'[tool.fusionlint.per-file-ignores]\n"examples/**" = ["{RULE}"]\n')
    (folder / "examples").mkdir()
    (folder / "env.py").rename(folder / "examples" / "env.py")
    monkeypatch.chdir(folder / "examples")
    assert run("check").exit_code == 0
    assert PerFile(str(folder), (("*", (RULE,)),)).silent("/elsewhere/env.py") == frozenset()


def test_a_rule_that_a_file_is_not_checked_for_makes_no_comment_idle(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f'[tool.fusionlint.per-file-ignores]\n"env.py" = ["{RULE}"]\n')
    (folder / "env.py").write_text(commented(f"# fusionlint: ignore[{RULE}]"))
    assert run("check", "--warn-unused-ignores").exit_code == 0


def test_a_name_in_per_file_ignores_that_no_rule_has_is_an_error(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.fusionlint.per-file-ignores]\n"env.py" = ["columns-by-atset"]\n')
    result = run("check")
    assert result.exit_code == 2
    assert "there is no rule 'columns-by-atset'; did you mean 'columns-by-at-set'?" in result.stderr
