"""`fusionlint explain` as a user runs it: what is printed where, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

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
    rules.append(Rule("fusionlint.rules.some_rule", harm="fusion"))

    @rules[0].barrier
    def sensor(barrier: Barrier, module: hlo.Module) -> str | None:
        return "write it apart" if barrier.cause == "concatenate" else None

    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:rollout(f32[64,2])", "--all", *ON_CPU])
    assert done.exit_code == 1
    assert "   some-rule: write it apart\n" in done.stdout


def test_what_fails_is_one_line_and_exit_2_and_the_others_still_come(rules: list[Rule]) -> None:
    specs = [f"{SOURCE}:no_such_function(f32[8])", f"{SOURCE}:softmax(f32[8,16])", "no colon"]
    done = CliRunner().invoke(main, ["explain", *specs, *ON_CPU])
    assert done.exit_code == 2
    assert "softmax(f32[8,16]) on cpu" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("fusionlint: ") for line in lines)
    assert any("no_such_function" in line for line in lines)


def test_json_holds_reports_and_errors(rules: list[Rule]) -> None:
    specs = [f"{SOURCE}:softmax(f32[8,16])", "no colon"]
    done = CliRunner().invoke(main, ["explain", *specs, *ON_CPU, "--output-format", "json"])
    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert [report["target"] for report in told["reports"]] == ["cpu"]
    assert len(told["errors"]) == 1


def test_stages_are_printed_where_asked_for(rules: list[Rule]) -> None:
    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:softmax(f32[8,16])", "--stages", *ON_CPU])
    assert "HLO before" in done.stdout


def test_an_unknown_target_is_exit_2() -> None:
    done = CliRunner().invoke(main, ["explain", f"{SOURCE}:softmax(f32[8,16])", "--target", "h1000"])
    assert done.exit_code == 2
    assert "h1000" in done.stderr
