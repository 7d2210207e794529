"""explain(): real functions, compiled on the CPU by one worker, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_many
from fusionlint.compiling.targets import get
from fusionlint.explained import ExplainedBarrier, Report, explain
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier
from fusionlint.report.explain_json import report_json
from fusionlint.report.explain_text import report_text
from fusionlint.rule import Rule

pytest.importorskip("jax")

SOURCE = Path(__file__).parent / "data" / "explained.py"
ARGUMENTS = {
    "softmax": "f32[64,512]",
    "returned": "f32[4096]",
    "solve": "f32[8,8], f32[8,8]",
    "sort_then_fft": "f32[64,512]",
    "branch": "pred[], f32[512]",
    "add_at": "f32[512], i32[64], f32[64]",
    "called_back": "f32[512]",
    "noise": "f32[64,64], key",
    "rollout": "f32[256,2]",
    "until": "f32[512]",
    "handed_on": "f32[512]",
    "filled": "f32[8]",
    "summed": "f32[512]",
    "stages": "f32[512]",
}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artifacts]:
    entries = [parse_spec(f"{SOURCE}:{name}({arguments})") for name, arguments in ARGUMENTS.items()]
    results = compile_many(entries, get("cpu"), 300, tmp_path_factory.mktemp("explained"))
    found = {}
    for name, result in zip(ARGUMENTS, results, strict=True):
        assert isinstance(result, Artifacts), result
        found[name] = result
    return found


@pytest.fixture(scope="module")
def reports(artifacts: dict[str, Artifacts]) -> dict[str, Report]:
    return {name: explain(each) for name, each in artifacts.items()}


def line_of(comment: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def lines_by_cause(report: Report) -> set[tuple[str, int]]:
    return {(e.barrier.cause, e.barrier.stack[0].line) for e in report.barriers if e.barrier.stack}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("returned", "returned and consumed"),
        pytest.param("sort_then_fft", "library call", marks=pytest.mark.any_jax),
        ("add_at", "scatter"),
        pytest.param("called_back", "callback", marks=pytest.mark.any_jax),
        pytest.param("rollout", "concatenate", marks=pytest.mark.any_jax),
    ],
)
def test_each_cause_stands_at_its_own_line(reports: dict[str, Report], name: str, cause: str) -> None:
    assert (cause, line_of(cause)) in lines_by_cause(reports[name])


def test_library_calls_name_the_library(reports: dict[str, Report]) -> None:
    details = {e.barrier.detail for e in reports["solve"].barriers if e.barrier.cause == "library call"}
    assert any("lapack" in detail for detail in details)


def test_random_bits_are_named(reports: dict[str, Report]) -> None:
    assert any(cause == "random bits" for cause, _ in lines_by_cause(reports["noise"]))


def test_every_barrier_of_every_function_has_a_line_in_the_users_file(reports: dict[str, Report]) -> None:
    for name, report in reports.items():
        for explained in report.barriers:
            assert explained.barrier.stack, (name, explained.barrier)
            assert explained.barrier.stack[0].path == str(SOURCE)


def test_the_totals_are_those_of_the_kernels(reports: dict[str, Report]) -> None:
    report = reports["rollout"]
    (loop,) = report.loops
    assert loop.trip_count == 100
    inside = sum(kernel.launches for kernel in report.kernels if kernel.loop == loop.name)
    outside = sum(kernel.launches for kernel in report.kernels if kernel.loop is None)
    assert report.totals.launches == inside + outside
    assert report.totals.launches_per_iteration == 0


def test_an_unknown_trip_count_is_counted_per_iteration(reports: dict[str, Report]) -> None:
    report = reports["until"]
    assert report.totals.launches_per_iteration > 0
    assert "per iteration" in report_text(report)


def test_barriers_come_dearest_first(reports: dict[str, Report]) -> None:
    for report in reports.values():
        costs = [e.barrier.bytes * e.barrier.crossings for e in report.barriers]
        assert costs == sorted(costs, reverse=True)


def test_xlas_reason_is_given_in_its_own_words(artifacts: dict[str, Artifacts], reports: dict[str, Report]) -> None:
    verdicts = [e.barrier.verdict for report in reports.values() for e in report.barriers if e.barrier.verdict]
    assert verdicts
    logs = "".join(each.log for each in artifacts.values())
    assert all(verdict.reason in logs for verdict in verdicts)


def rule_about_concatenates(name: str) -> Rule:
    """With the page of the rule `name`, and a sensor of its own."""
    rule = Rule(f"fusionlint.rules.{name}", harm="fusion")

    @rule.barrier
    def sensor(barrier: Barrier, module: hlo.Module) -> str | None:
        return "write it apart" if barrier.cause == "concatenate" else None

    return rule


def test_a_rules_barrier_sensor_explains_its_barriers(artifacts: dict[str, Artifacts]) -> None:
    report = explain(artifacts["rollout"], [rule_about_concatenates("key_split_in_scan")])
    told = {(e.rule, e.advice) for e in report.barriers if e.barrier.cause == "concatenate"}
    assert told == {("key-split-in-scan", "write it apart")}
    assert all(e.rule == "" for e in report.barriers if e.barrier.cause != "concatenate")


def test_a_rule_whose_page_shows_no_harm_on_the_target_gives_no_advice(artifacts: dict[str, Artifacts]) -> None:
    rule = rule_about_concatenates("columns_of_a_stack")
    assert "cpu" not in rule.page.targets
    report = explain(artifacts["rollout"], [rule])
    assert not any(e.rule or e.advice for e in report.barriers)


def test_stages_count_every_form_of_the_program(reports: dict[str, Report]) -> None:
    stages = reports["stages"].stages
    assert stages.jaxpr == {"sin": 2, "add": 2, "mul": 1, "tanh": 1, "cos": 1}
    assert stages.stablehlo["sine"] == 2
    assert stages.before["sine"] == 2
    assert stages.after["sine"] == 1
    assert stages.kernels == {"loop": 1}


def test_what_xla_rewrote_without_a_line_is_at_that_of_the_only_such_work(reports: dict[str, Report]) -> None:
    """A cumulative sum becomes several sums over windows, and none of them says where it was written."""
    stacks = [e.barrier.stack for e in reports["summed"].barriers]
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "cumsum(x) * 2.0" in text)
    assert stacks
    assert {stack[0].line for stack in stacks} == {line}


def test_of_two_works_that_xla_rewrote_nobody_knows_which_it_was(tmp_path: Path) -> None:
    (twice,) = compile_many([parse_spec(f"{SOURCE}:summed_twice(f32[512])")], get("cpu"), 300, tmp_path)
    assert isinstance(twice, Artifacts)
    found = explain(twice).barriers
    assert found
    assert not any(e.barrier.stack for e in found)


def test_a_function_that_hands_its_argument_on_has_no_lines_to_miss(reports: dict[str, Report]) -> None:
    assert reports["handed_on"].launches == 1
    assert not reports["handed_on"].lines
    assert reports["handed_on"].notes == ()
    assert reports["filled"].launches == 3
    assert reports["filled"].notes == ()  # jax gives constants no line


def test_json_has_the_documented_fields(reports: dict[str, Report]) -> None:
    told = json.loads(report_json(list(reports.values()), ["one error"]))
    assert told["version"] == 1
    assert told["errors"] == ["one error"]
    for report in told["reports"]:
        assert {"entry", "target", "versions", "compile_seconds", "launches", "bytes", "microseconds"} <= set(report)
        assert {"jax", "jaxlib"} <= set(report["versions"])
        for kernel in report["kernels"]:
            fields = {"name", "kind", "opcodes", "launches", "bytes", "microseconds", "location", "loop"}
            assert fields <= set(kernel)
        for loop in report["loops"]:
            assert {"location", "trip_count", "launches_per_iteration", "copies_per_iteration"} <= set(loop)
        for barrier in report["barriers"]:
            assert {"cause", "bytes", "location", "stack", "writer", "readers", "reason"} <= set(barrier)
            assert {"us_fused", "us_unfused", "rule", "advice"} <= set(barrier)


def test_a_report_of_every_function_can_be_printed(reports: dict[str, Report]) -> None:
    for report in reports.values():
        text = report_text(report, everything=True, with_stages=True)
        assert report.entry in text
        assert "jaxlib" in text


def test_a_barrier_without_a_rule_has_none(reports: dict[str, Report]) -> None:
    assert all(isinstance(e, ExplainedBarrier) and not e.rule for e in reports["softmax"].barriers)
