"""Microseconds: by XLA's own models where they speak, else by bytes; trip counts multiply."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import compilers
import pytest
from launching import compiled

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.compiling.targets import get
from fusionlint.explained import Report, explain
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import barriers
from fusionlint.hlo.kernels import Kernel, kernels, total
from fusionlint.hlo.times import Rates, price, timed
from fusionlint.hlo.tpu import scalars_apart
from fusionlint.report.explain_json import report_json
from fusionlint.report.explain_text import report_text
from fusionlint.report.units import duration

pytestmark = pytest.mark.compilers

TESTS = Path(__file__).parent
H100 = Rates(bandwidth=3_352_320_000_000, launch_us=1.0, matrix_flops=989e12)
V5E = Rates(bandwidth=819e9, clock_hz=1.5e9)


def saved_dump(name: str) -> Report:
    return explain(Artifacts(TESTS / "dumps" / name, name, "h100"))


def saved(name: str) -> hlo.Module:
    return hlo.parse((TESTS / "hlo" / f"{name}_jax0.10.2.txt").read_text())


def test_a_gpu_kernel_takes_what_xlas_model_says_and_a_launch() -> None:
    """loop_add_fusion in the dump: `"exec_time_us":0.2445`."""
    kernel = next(kernel for kernel in saved_dump("scan").kernels if kernel.name == "loop_add_fusion")
    assert kernel.microseconds == pytest.approx(1.2445)
    assert kernel.timed_by == "XLA's model"


def test_a_copy_takes_its_bytes_and_a_launch() -> None:
    copy = next(kernel for kernel in saved_dump("scan").kernels if kernel.name == "copy.25")
    assert copy.timed_by == "bytes over bandwidth"
    assert copy.microseconds == pytest.approx(1.0 + (copy.bytes_read + copy.bytes_written) / 3_352_320)


def test_a_triton_kernel_is_timed_by_the_model_for_tiles() -> None:
    """The other takes a softmax to make its sums anew for every element: a millisecond for 33 kB."""
    report = explain(compiled("h100")["layers"])
    others = [kernel for kernel in report.kernels if "dot" not in kernel.opcodes]
    assert others
    assert all(kernel.timed_by == "XLA's model" for kernel in others)
    assert max(kernel.microseconds or 0 for kernel in report.kernels) < 10


@pytest.mark.parametrize(("dtype", "flops"), [("bf16", 989e12), ("f16", 989e12), ("f32", 494.5e12)])
def test_a_product_takes_what_the_matrix_units_take_or_its_bytes(dtype: str, flops: float) -> None:
    """XLA's model says 116 ms for the larger one of bf16; 8192 x 8192 x 8192 at 789 TFLOP/s are 1.4."""
    large, small = (
        product(f"{dtype}[8192,8192]", f"{dtype}[8192,8192]"),
        product(f"{dtype}[64,8192]", f"{dtype}[8192,64]"),
    )
    assert {one.timed_by for one in (large, small)} == {"the roofline of products"}
    assert large.microseconds == pytest.approx(1.0 + 2 * 8192**3 / flops * 1e6, rel=0.01)
    assert small.microseconds == pytest.approx(1.0 + (small.bytes_read + small.bytes_written) / 3_352_320)


def test_the_matrix_units_take_no_f64() -> None:
    assert product("f64[512,512]", "f64[512,512]").timed_by != "the roofline of products"


def product(left: str, right: str) -> Kernel:
    call = f"{TESTS / 'data' / 'products.py'}:product({left}, {right})"
    report = explain(compilers.compiled({"f": call}, "h100")["f"])
    (kernel,) = (kernel for kernel in report.kernels if "dot" in kernel.opcodes)
    return kernel


def test_a_tpu_whose_clock_is_not_known_starts_kernels_all_the_same() -> None:
    target = get("v6e")
    module = saved("scan_v5e")
    every = timed(module, scalars_apart(module, kernels(module)), Rates(1638e9, target.launch_us or 0))
    assert {(kernel.microseconds or 0) > 1 for kernel in every if kernel.kind != "scalar"} == {True}
    assert {(kernel.microseconds or 0) > 1 for kernel in every if kernel.kind == "scalar"} == {False}


def test_where_the_text_holds_no_model_bytes_are_counted() -> None:
    module = saved("scan_h100")  # compiled without asking for the model
    every = timed(module, kernels(module), H100)
    assert {kernel.timed_by for kernel in every} == {"bytes over bandwidth"}


def test_a_tpu_kernel_takes_its_estimated_cycles() -> None:
    module = saved("scan_v5e")
    every = timed(module, kernels(module), V5E)
    modelled = [kernel for kernel in every if kernel.timed_by == "XLA's model"]
    assert modelled
    for kernel in modelled:
        config = module.computations[kernel.computation].instructions[kernel.name].attributes["backend_config"]
        assert f'"estimated_cycles":"{round((kernel.microseconds or 0) * 1500)}"' in config


def test_scalar_ops_are_told_apart_from_kernels_on_a_tpu() -> None:
    module = saved("scan_v5e")
    every = scalars_apart(module, kernels(module))
    scalars = [kernel for kernel in every if kernel.kind == "scalar"]
    assert scalars
    for kernel in scalars:
        item = module.computations[kernel.computation].instructions[kernel.name]
        assert not item.shape.dims
        assert "estimated_cycles" not in item.attributes.get("backend_config", "")
    assert [kernel.name for kernel in every] == [kernel.name for kernel in kernels(module)]


def test_the_total_is_the_sum_over_all_launches() -> None:
    report = saved_dump("scan")
    expected = sum(kernel.launches * (kernel.microseconds or 0) for kernel in report.kernels)
    assert report.totals.microseconds == pytest.approx(expected)
    assert any(kernel.launches == 50 for kernel in report.kernels)


def test_of_a_conditional_the_dearest_branch_counts() -> None:
    report = saved_dump("branch")
    sums = {0: 0.0, 1: 0.0}
    outside = 0.0
    for kernel in report.kernels:
        if kernel.branches:
            sums[kernel.branches[0][1]] += kernel.microseconds or 0
        else:
            outside += kernel.microseconds or 0
    assert sums[0] != sums[1]
    assert report.totals.microseconds == pytest.approx(outside + max(sums.values()))


def test_total_adds_up_any_number() -> None:
    every = saved_dump("scan").kernels
    assert total(every, lambda kernel: 0.5) == 0.5 * len(every)


def test_a_barrier_costs_a_write_a_read_and_a_launch() -> None:
    report = saved_dump("scan")
    explained = next(e for e in report.barriers if e.barrier.value == "loop_add_fusion")
    assert explained.price
    assert explained.price.launching == 50  # microseconds: one each
    assert explained.price.moving == pytest.approx(2 * 1024 * 50 / 3_352_320)


def test_no_barrier_costs_more_than_its_program() -> None:
    for name in ("scan", "branch"):
        report = saved_dump(name)
        assert report.totals.microseconds
        for explained in report.barriers:
            assert explained.price
            assert explained.price.launching <= report.totals.microseconds


def test_what_stays_on_a_tpus_chip_moves_for_nothing() -> None:
    module = saved("scan_v5e")
    every = {kernel.name: kernel for kernel in timed(module, kernels(module), V5E)}
    found = barriers(module)
    prices = {barrier.on_chip: price(barrier, every[barrier.writer], V5E).moving for barrier in found}
    assert prices[True] == 0
    off = price(replace(found[0], on_chip=False), every[found[0].writer], V5E)
    assert off.moving > 0


def test_a_copy_into_a_tpus_chip_takes_what_it_reads_and_one_out_of_it_what_it_writes() -> None:
    module = hlo.parse(
        """HloModule m, is_scheduled=true

ENTRY %main (x: f32[819000]) -> f32[819000] {
  %x = f32[819000]{0} parameter(0)
  %in = (f32[819000]{0:S(1)}, f32[819000]{0}, u32[]{:S(2)}) copy-start(%x)
  %there = f32[819000]{0:S(1)} copy-done(%in)
  %moved = f32[819000]{0:S(1)} copy(%there)
  ROOT %out = f32[819000]{0} copy(%moved)
}
"""
    )
    each = {kernel.name: kernel.microseconds for kernel in timed(module, kernels(module), V5E)}
    assert each == {"in": pytest.approx(4), "moved": pytest.approx(8), "out": pytest.approx(4)}


def test_a_scalar_op_saves_no_start_of_a_kernel() -> None:
    module = saved("scan_v5e")
    every = {kernel.name: kernel for kernel in timed(module, scalars_apart(module, kernels(module)), V5E)}
    scalar = next(barrier for barrier in barriers(module) if every[barrier.writer].kind == "scalar")
    assert price(scalar, every[scalar.writer], V5E).launching < 0.01 * scalar.launches


def test_barriers_come_by_their_microseconds() -> None:
    for report in (saved_dump("scan"), saved_dump("branch")):
        costs = [e.price.moving + e.price.launching for e in report.barriers if e.price]
        assert len(costs) == len(report.barriers)
        assert costs == sorted(costs, reverse=True)


def test_the_report_says_how_long_and_who_says_so() -> None:
    text = report_text(saved_dump("scan"))
    assert "about 371 us by XLA's model and bytes over bandwidth" in text
    assert "5 launches go as one CUDA graph" in text


def test_json_has_the_microseconds() -> None:
    (told,) = json.loads(report_json([saved_dump("scan")]))["reports"]
    assert told["microseconds"] == pytest.approx(saved_dump("scan").totals.microseconds)
    assert all(kernel["microseconds"] > 0 for kernel in told["kernels"])
    assert all(barrier["microseconds"] > 0 for barrier in told["barriers"])
    assert {kernel["timed_by"] for kernel in told["kernels"]} == {"XLA's model", "bytes over bandwidth"}


def test_on_a_cpu_there_are_no_microseconds(tmp_path: Path) -> None:
    (tmp_path / "after.hlo.txt").write_text((TESTS / "hlo" / "scan_cpu_jax0.10.2.txt").read_text())
    report = explain(Artifacts(tmp_path, "scan", "cpu"))
    assert report.totals.microseconds is None
    assert {kernel.microseconds for kernel in report.kernels} == {None}
    assert {explained.price for explained in report.barriers} == {None}
    (told,) = json.loads(report_json([report]))["reports"]
    assert told["microseconds"] is None


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(4.21, "4.2 us"), (0.531, "0.53 us"), (131_000, "131 ms"), (1.3e6, "1.3 s"), (1e-5, "under 0.01 us"), (0, "0 us")],
)
def test_durations_have_two_digits_that_count(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dot", "cuBLAS"),
        ("convolve", "cuDNN"),
        ("sort", "CUB"),
        ("fft", "nobody models the time"),
        ("solve", "cusolver"),
    ],
)
def test_what_a_compilation_cannot_know_is_said_where_it_matters(name: str, words: str) -> None:
    report = explain(compiled("h100")[name])
    (note,) = [note for note in report.notes if words in note]
    assert report_text(report).count(note) == 1


def test_nothing_is_said_about_programs_that_are_wholly_known() -> None:
    assert explain(compiled("h100")["nested"]).notes == ()


def test_on_the_device_itself_dots_are_tuned() -> None:
    dot = compiled("h100")["dot"]
    assert explain(replace(dot, attached=True)).notes == ()


def test_that_a_tpu_gives_no_reasons_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "after.hlo.txt").write_text((TESTS / "hlo" / "scan_v5e_jax0.10.2.txt").read_text())
    report = explain(Artifacts(tmp_path, "scan", "v5e"))
    text = report_text(report)
    assert text.count("XLA:TPU gives no reasons") == 1
    assert "XLA: " not in text
    assert report.totals.scalar_ops > 0
    assert f"{report.totals.scalar_ops} of the launches are scalar ops" in text


def test_scalar_ops_of_a_loop_of_unknown_length_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "after.hlo.txt").write_text((TESTS / "hlo" / "unbounded_v5e_jax0.10.2.txt").read_text())
    report = explain(Artifacts(tmp_path, "unbounded", "v5e"))
    again = [one for one in report.kernels if one.kind == "scalar" and one.per_iteration]
    assert report.totals.scalar_ops_per_iteration == len(again) > 0
    assert re.search(
        rf"{len(again)} of (the launches per iteration|those per iteration,) (is a scalar op|are scalar ops):",
        report_text(report),
    )


def test_the_targets_that_count_cycles_have_a_clock() -> None:
    """Peak bf16 operations per second, from the page of each, over 2 x 128 x 128 x the matrix units of its cores."""
    peaks = {"v4": (275e12, 8), "v5e": (197e12, 4), "v5p": (459e12, 8)}
    for name, (peak, units) in peaks.items():
        assert get(name).clock_hz == pytest.approx(peak / (2 * 128 * 128 * units), rel=0.01)
