"""What is nested too deeply is given up on before libcst, which takes half a minute for it, is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from commands import HAZARD, RULE, run

from fusionlint.source import judging

DEEP = f"return x{' + x[0]' * 2600}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parse: Callable[..., cst.Module] = cst.parse_module

    def parsed(text: str | bytes, *rest: Any) -> cst.Module:
        assert len(text) < len(DEEP)
        return parse(text, *rest)

    monkeypatch.setattr(cst, "parse_module", parsed)
    return tmp_path


def test_a_long_sum_beside_a_fix_is_not_parsed_to_find_out_that_it_is_too_deep(folder: Path) -> None:
    (folder / "env.py").write_text(f"{HAZARD}\n\ndef last(x):\n    {DEEP}\n")
    result = run("check", "--no-cache", "--fix", "--unsafe-fixes")
    assert (result.stderr, result.exit_code) == ("env.py: is nested too deeply to fix\n", 1)


def test_a_long_sum_in_a_function_with_a_hazard_is_not_parsed_either(folder: Path) -> None:
    (folder / "env.py").write_text(HAZARD.replace("    return", f"    if n:\n        {DEEP}\n    return"))
    result = run("check", "--no-cache")
    assert (result.stderr, result.exit_code) == ("env.py: is nested too deeply to check\n", 1)


@pytest.mark.parametrize("rest", [f"return [{'x, ' * 9000}]", 'return "\\d" ' + "+ x" * 900])
def test_what_is_long_and_can_be_walked_is_read(folder: Path, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    path = folder / "env.py"
    path.write_text(HAZARD.replace("    return", f"    if n:\n        {rest}\n    return"))
    assert RULE in run("check", str(path), "--no-cache").stdout


def test_a_rule_that_asks_itself_without_an_end_is_a_mistake_and_no_depth_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*asked: object) -> object:
        return endless(*asked)

    monkeypatch.setattr(judging, "check_source", endless)
    (tmp_path / "env.py").write_text(HAZARD)
    result = run("check", str(tmp_path / "env.py"), "--no-cache", "--jobs", "1")
    assert "by a mistake of fusionlint: RecursionError" in result.stderr
    assert result.exit_code == 1


def test_a_mistake_of_a_rule_names_the_rule_and_how_to_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs the file what all other rules say."""

    def failing(*_: object) -> None:
        raise ValueError("no such column")

    monkeypatch.setattr("fusionlint.rules.columns_by_at_set.is_concrete", failing)
    (tmp_path / "env.py").write_text(HAZARD)
    result = run("check", str(tmp_path / "env.py"), "--no-cache", "--jobs", "1")
    whose = (
        f"by a mistake of the rule {RULE} (--ignore {RULE} leaves it out): ValueError: no such column (test_deep.py:"
    )
    assert whose in result.stderr
    assert run("check", str(tmp_path / "env.py"), "--no-cache", "--jobs", "1", "--ignore", RULE).stderr == ""
