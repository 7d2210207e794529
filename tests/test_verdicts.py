"""hlo.verdicts: XLA:CPU's log -> the last refusal that stood, under names of the program.

tests/hlo/joined_cpu_jax0.10.2.log is what the compilation of that text logged, its lines about programs.joined:
TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=instruction_fusion=3,cpu_instruction_fusion=3 python tests/hlo/collect.py 2> LOG
"""

from pathlib import Path

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import kernels
from fusionlint.hlo.verdicts import Verdict, cpu_log, in_final_names, is_cpu_log

HLO = Path(__file__).parent / "hlo"
LOG = (HLO / "joined_cpu_jax0.10.2.log").read_text(encoding="utf-8")
JOINED = hlo.parse((HLO / "joined_cpu_jax0.10.2.txt").read_text(encoding="utf-8"))
HEAD = "I1121 07:00:16.059925   17384 instruction_fusion.cc:1] "


def refused(producer: str, reason: str) -> str:
    return f'{HEAD}not fusing operand %{producer} = f32[8]{{0}} sine(%x), metadata={{op_name="s"}} because {reason}\n'


def considering(consumer: str) -> str:
    return f"{HEAD}Considering for fusion: operand 0 of %{consumer} = f32[8]{{0}} negate(%a)\n"


def fused(producer: str, consumer: str, created: str = "") -> str:
    line = f"{HEAD}Fusing %{producer} = f32[8]{{0}} sine(%x) into %{consumer} = f32[8]{{0}} negate(%a)\n"
    made = f"{HEAD}       created new fusion: %{created} = f32[8]{{0}} fusion(%x), kind=kLoop, calls=%f\n"
    return line + (made if created else "")


def reasons(text: str) -> dict[str, tuple[str | None, str]]:
    return {name: (verdict.consumer, verdict.reason) for name, verdict in cpu_log(text).items()}


def test_a_refusal_has_producer_consumer_and_xlas_own_words():
    assert cpu_log(considering("b") + refused("a", "Producer is not loop-fusible.")) == {
        "a": Verdict("a", "b", "Producer is not loop-fusible", described="f32[8] sine s")
    }


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("Not fusing: insufficient non-constant nodes.", "insufficient non-constant nodes"),
        ("the moon is full", "the moon is full"),
        (
            "Bailing because producer can be output-fused into some operand.",
            "Bailing because producer can be output-fused into some operand",
        ),
    ],
)
def test_a_reason_is_kept_whole_known_or_not(printed, reason):
    assert reasons(considering("b") + refused("a", printed)) == {"a": ("b", reason)}


def test_the_last_verdict_about_a_producer_counts():
    text = considering("b") + refused("a", "one") + considering("c") + refused("a", "two")
    assert reasons(text) == {"a": ("c", "two")}
    assert reasons(text + considering("b") + refused("a", "three")) == {"a": ("b", "three")}


def test_a_producer_that_was_fused_after_all_was_not_refused():
    assert reasons(considering("b") + refused("a", "one") + considering("b") + fused("a", "b", "f")) == {}


def test_a_refusal_stands_where_another_consumer_took_the_producer():
    text = considering("b") + refused("a", "one") + considering("c") + fused("a", "c")
    assert reasons(text) == {"a": ("b", "one")}


def test_a_consumer_that_becomes_a_fusion_is_still_the_same():
    text = considering("b") + refused("a", "one") + fused("k", "b", "k_b_fusion") + considering("k_b_fusion")
    assert reasons(text + fused("a", "k_b_fusion")) == {}
    assert reasons(text + refused("a", "two")) == {"a": ("b", "two")}


def test_a_producer_that_became_a_fusion_is_found_by_both_names():
    text = considering("tuple") + refused("b", "one") + considering("b") + fused("a", "b", "a_b_fusion")
    assert reasons(text) == {"b": ("tuple", "one"), "a_b_fusion": ("tuple", "one")}


@pytest.mark.parametrize("text", ["", "2026-11-21 07:00:46: W something else\n", considering("b"), fused("a", "b")])
def test_other_lines_say_nothing(text):
    assert cpu_log(text) == {}


def test_the_saved_log_says_why_each_kernel_stands_alone():
    found = in_final_names(JOINED, cpu_log(LOG))
    assert {kernel.name: found[kernel.name].reason for kernel in kernels(JOINED)} == {
        "wrapped_sine": "not found a fusible case",
        "cosine_concatenate_fusion": "Code duplication too high",
        "wrapped_reduce-window": "Producer is not loop-fusible",
        "broadcast_multiply_fusion": "not found a fusible case",
        "slice_concatenate_fusion": "not found a fusible case",
        "reduce_add_fusion": "operand can not be duplicated",
    }


def test_in_the_saved_log_what_was_fused_away_has_no_verdict():
    found = cpu_log(LOG)
    assert not {"cos.1", "slice.0", "slice.1", "mul.2", "reduce", "reduce.1"} & found.keys()
    assert found["concatenate.3"].consumer == "mul.3"


def test_a_renamed_instruction_is_found_by_what_it_is():
    """XLA:CPU 0.8 and later wrap what was left alone, under a new name."""
    logged = cpu_log(LOG)
    assert "wrapped_sine" not in logged
    assert in_final_names(JOINED, logged)["wrapped_sine"] is logged["sin.1"]


def test_a_renamed_instruction_is_not_guessed_where_verdicts_disagree():
    sine = cpu_log(LOG)["sin.1"]
    other = Verdict("sin.9", None, "another reason", described=sine.described)
    assert "wrapped_sine" not in in_final_names(JOINED, {"sin.1": sine, "sin.9": other})
    assert "wrapped_sine" in in_final_names(JOINED, {"sin.1": sine, "sin.9": sine})


def test_a_log_in_which_nothing_is_considered_twice_is_known_by_what_is_left_alone() -> None:
    """Of a product of small floats nothing but its arguments was asked about, and the words were said to be unknown."""
    assert is_cpu_log(refused("a", "Don't fuse instructions from custom fusions/calls"))
    assert is_cpu_log(considering("b"))
    assert not is_cpu_log(f"{HEAD}Operand (%x = f32[8]{{0}} parameter(0)) is not fusible\n")
