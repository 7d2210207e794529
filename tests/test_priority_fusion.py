"""XLA:GPU's reasons: read from its log, joined in its snapshot, carried to the final program."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import compiled

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.explained import Report, explain
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.priority_fusion import gpu_verdicts, last_verdicts, right_snapshot
from fusionlint.report.explain_text import report_text

pytestmark = pytest.mark.compilers

DUMPS = Path(__file__).parent / "dumps"


def step(kind: str, producer: str, **fields: str) -> str:
    lines = [f'    producer_name: "{producer}"', *(f"    {name}: {value}" for name, value in fields.items())]
    return "fusion_steps {\n  " + kind + " {\n" + "\n".join(lines) + "\n  }\n}\n"


def ineligible(producer: str, reason: str) -> str:
    return step("producer_ineligible", producer, reason=f'"{reason}"')


def update(producer: str, fused: str, apart: str) -> str:
    return step("update_priority", producer, consumer_names='"c"', us_fused=fused, us_unfused=apart)


def test_only_the_last_verdict_about_a_producer_counts() -> None:
    found = last_verdicts(ineligible("a", "first") + update("a", "1", "2") + ineligible("a", "last"))
    assert {name: verdict.reason for name, verdict in found.items()} == {"a": "last"}


def test_a_producer_that_was_fused_last_is_not_judged() -> None:
    assert last_verdicts(ineligible("a", "no") + step("fusion", "a", fusion_name='"f"', consumer_name='"c"')) == {}


@pytest.mark.parametrize(("fused", "apart", "refused"), [("4.2", "4.1", True), ("4.1", "4.1", True), ("1", "2", False)])
def test_the_cost_model_refuses_where_fusing_is_not_faster(fused: str, apart: str, refused: bool) -> None:
    found = last_verdicts(update("a", fused, apart))
    assert bool(found) == refused
    for verdict in found.values():
        assert (verdict.us_fused, verdict.us_unfused, verdict.reason) == (float(fused), float(apart), "")


def test_a_time_that_is_not_printed_is_nothing() -> None:
    """Text protos leave zeros out."""
    log = step("update_priority", "a", consumer_names='"c"', us_fused="3")
    assert last_verdicts(log)["a"].us_unfused == 0


def test_reasons_keep_their_quotes() -> None:
    assert last_verdicts(ineligible("a", r"can\'t fuse \"b\""))["a"].reason == 'can\'t fuse "b"'


def test_words_that_nobody_knows_are_handed_on() -> None:
    assert last_verdicts(ineligible("a", "wholly new words"))["a"].reason == "wholly new words"


def saved(name: str) -> Report:
    return explain(Artifacts(DUMPS / name, name, "h100"))


def said(report: Report) -> dict[str, tuple[str, tuple[str, ...]]]:
    verdicts = ((e.barrier.value, e.barrier.verdict) for e in report.barriers)
    return {value: (verdict.reason, verdict.consumers) for value, verdict in verdicts if verdict}


def test_verdicts_reach_the_kernels_under_their_final_names() -> None:
    assert said(saved("scan")) == {
        "loop_multiply_fusion": ("the consumer is not fusible", ("tuple",)),
        "loop_add_fusion": ("the consumer is not fusible", ("tuple",)),
        "loop_add_fusion.1": ("the consumer is not fusible", ("tuple",)),
        "get-tuple-element.28": ("the consumer is not fusible", ("tuple",)),
        "input_reduce_fusion": ("fusion into output of a reduce fusion would create a loop fusion", ("fusion",)),
        # What the log says of the bitcast that reads it.
        "get-tuple-element": ("fusion into output of a reduce fusion would create a loop fusion", ("fusion",)),
    }


def test_a_refusal_by_the_cost_model_has_both_its_times() -> None:
    verdicts = {e.barrier.value: e.barrier.verdict for e in saved("branch").barriers}
    refused = verdicts["loop_reduce_window_fusion"]
    assert refused
    assert (refused.us_fused, refused.us_unfused) == (6.52825, 1.324)
    assert "XLA: cost model, fused 6.5 us, apart 1.3 us" in report_text(saved("branch"))


def test_a_consumer_that_is_not_fusible_is_read_with_its_opcode() -> None:
    text = report_text(saved("branch"))
    assert "that is: the value goes out whole: carried by a loop, into or out of a branch, or returned" in text
    assert (
        "that is: what reads it is no loop over elements: a sort, a dot, Triton, or one of the two results of an argmax"
        in text
    )


BODY = """f.{n} {{
  p.{n} = f32[8]{{0}} parameter(0)
  ROOT r.{n} = f32[8]{{0}} sine(p.{n}), metadata={{op_name="x"}}
}}

"""
MAIN = """ENTRY main {{
  x = f32[8]{{0}} parameter(0)
{lines}  ROOT t = (f32[8]{{0}}) tuple({last})
}}
"""


def program(*names: str) -> hlo.Module:
    """Kernels of these names, one after another, all alike."""
    bodies = "".join(BODY.format(n=n) for n in range(len(names)))
    sources = ["x", *names]
    lines = "".join(
        f"  {name} = f32[8]{{0}} fusion({sources[n]}), kind=kLoop, calls=f.{n}\n" for n, name in enumerate(names)
    )
    return hlo.parse("HloModule m\n\n" + bodies + MAIN.format(lines=lines, last=names[-1]))


def test_what_an_optimization_barrier_holds_goes_nowhere_else() -> None:
    """It was said to be carried by a loop, into or out of a branch, or returned."""
    report = explain(compiled("h100")["held"])
    consumers = {one.barrier.verdict.consumers for one in report.barriers if one.barrier.verdict}
    assert consumers == {("opt-barrier",)}
    assert "that is: an optimization barrier holds it" in report_text(report)


def test_kernels_that_are_alike_are_told_apart_by_their_order() -> None:
    snapshot = program("a", "b")
    log = ineligible("a", "one") + ineligible("b", "two")
    found = gpu_verdicts(log, snapshot, snapshot, program("k1", "k2"))
    assert {name: verdict.reason for name, verdict in found.items()} == {"k1": "one", "k2": "two"}


def test_kernels_that_cannot_be_told_apart_get_no_verdict() -> None:
    snapshot = program("a", "b", "c", "d")
    log = ineligible("b", "one") + ineligible("c", "two") + ineligible("d", "two")
    assert gpu_verdicts(log, snapshot, snapshot, program("k1", "k2", "k3")) == {}


def test_kernels_that_are_alike_and_judged_alike_need_no_order() -> None:
    snapshot = program("a", "b", "c")
    log = "".join(ineligible(name, "same") for name in "abc")
    found = gpu_verdicts(log, snapshot, snapshot, program("k1", "k2"))
    assert {name: verdict.reason for name, verdict in found.items()} == {"k1": "same", "k2": "same"}


def test_of_several_runs_of_the_pass_the_one_that_the_log_names_is_read() -> None:
    log = ineligible("a", "no") + ineligible("b", "no")
    texts = ["  a = f32[] add(x, y)\n", "  a = f32[] add(x, y)\n  b = f32[] add(x, y)\n", "  c = f32[] add(x, y)\n"]
    assert right_snapshot(log, texts) == 1
    assert right_snapshot(log, []) is None
    assert right_snapshot(log, ["", ""]) == 1


def test_nearly_all_barriers_on_h100_have_xlas_own_reason() -> None:
    """Of those that priority fusion saw: copies are made after it."""
    barriers = [
        explained.barrier
        for artifacts in compiled("h100").values()
        for explained in explain(artifacts).barriers
        if explained.barrier.cause != "copy"
    ]
    judged = [barrier for barrier in barriers if barrier.verdict]
    assert len(judged) > 0.85 * len(barriers)
