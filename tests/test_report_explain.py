"""report_text(): a small report, character by character, and what it says in the odd cases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fusionlint.explained import ExplainedBarrier, Report, Totals
from fusionlint.hlo.barriers import Barrier
from fusionlint.hlo.kernels import Kernel, Loop
from fusionlint.hlo.parse import Frame
from fusionlint.hlo.times import Price
from fusionlint.hlo.verdicts import Verdict
from fusionlint.report.explain_text import report_text
from fusionlint.report.units import size
from fusionlint.stages import Removed, Stages

SOURCE = """import jax.numpy as jnp

def step(x, v):
    new = jnp.stack([x, v], axis=1)
\treturn new
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "env.py"
    path.write_text(SOURCE)
    return str(path)


def barrier(frame: Frame | None, number: int = 1, size: int = 64000) -> Barrier:
    stack = (frame, Frame("env.py", 120, function="rollout")) if frame else ()
    return Barrier(
        value=f"fusion.{number}",
        computation="body",
        writer=f"fusion.{number}",
        readers=("copy.1",),
        bytes=size,
        crossings=1000,
        per_iteration=False,
        launches=1000,
        cause="concatenate",
        detail="",
        opcodes=("concatenate",),
        verdict=Verdict("concatenate.1", "tuple.1", "Concatenate fusion is inefficient."),
        stack=stack,
    )


def frame(path: str) -> Frame:
    return Frame(path, 4, 11, 4, 36, "step")


def explained(at: Frame, verdict: Verdict, number: int = 1) -> ExplainedBarrier:
    return ExplainedBarrier(replace(barrier(at, number), verdict=verdict), "", "")


def report(*barriers: ExplainedBarrier) -> Report:
    return Report(
        entry="env.py:rollout(f32[2048,4])",
        target="h100",
        versions={"jax": "0.10.2", "jaxlib": "0.10.2"},
        compile_seconds=0.94,
        totals=Totals(4006, 0, 131_072_000, 0),
        kernels=(),
        loops=(Loop("while", "main", 1000, None, None, 4, 1),),
        barriers=barriers,
        stages=Stages(
            {"sin": 12},
            {"sine": 12, "add": 1},
            {"sine": 12},
            {"sine": 1},
            {"loop": 3, "copy": 1},
            Removed(1, 2, 3, 4, 5, 6),
        ),
    )


@pytest.mark.parametrize(
    ("of_gradient", "said"),
    [
        ((False, False), "env.py:4:11 in step, from"),
        ((True, True), "env.py:4:11 in the gradient of step, from"),
        ((False, True), "env.py:4:11 in step and its gradient, from"),
    ],
)
def test_what_jax_made_of_a_line_for_its_gradient_is_said_to_be_that(
    file: str, of_gradient: tuple[bool, bool], said: str
) -> None:
    """An embedding's lookup was a scatter, at a line without any, that should better be a gather."""
    verdict = Verdict("scatter.1", "multiply.1", "do not fuse into the output of scatter")
    found = [
        replace(barrier(frame(file), number), cause="scatter", verdict=verdict, of_gradient=one)
        for number, one in enumerate(of_gradient)
    ]
    text = report_text(report(*(ExplainedBarrier(one, "", "") for one in found)))
    assert f"1. scatter (x2)  {said}" in text
    assert ("instead: " in text) is not all(of_gradient)


def test_what_xla_weighed_is_said_to_as_many_places_as_tell_it_apart(file: str) -> None:
    weighed = [Verdict("a", "b", "", us_fused=fused, us_unfused=1.0) for fused in (1.02, 1.004, 1.0, 2.3)]
    texts = [report_text(report(explained(frame(file), one))) for one in weighed]
    said = [line.strip() for text in texts for line in text.splitlines() if "cost model" in line]
    assert said == [
        "XLA: cost model, fused 1.02 us, apart 1.00 us",
        "XLA: cost model, fused 1.004 us, apart 1.000 us",
        "XLA: cost model, fused 1.0 us, apart 1.0 us",
        "XLA: cost model, fused 2.3 us, apart 1.0 us",
    ]


def test_of_all_that_xla_weighed_at_a_line_the_dearest_is_told(file: str) -> None:
    weighed = [Verdict("a", "b", "", us_fused=fused, us_unfused=1.0) for fused in (1.02, 1.004, 2.3)]
    text = report_text(report(*(explained(frame(file), one, number) for number, one in enumerate(weighed))))
    assert "XLA: cost model, fused 1.02 us, apart 1.00 us, and so of 2 more\n" in text


def test_words_of_xla_are_said_once_with_all_that_they_mean(file: str) -> None:
    words = "the consumer is not fusible"
    two = [Verdict("a", "b", words, consumers=(read,)) for read in ("tuple", "sort")]
    text = report_text(report(*(explained(frame(file), one, number) for number, one in enumerate(two))))
    assert text.count(f"XLA: {words}\n") == 1
    assert text.count("that is: ") == 2
    mismatch = Verdict("a", "b", "DUS and DS index mismatch")
    one = explained(frame(file), mismatch)
    its_gradient = ExplainedBarrier(replace(one.barrier, of_gradient=True), "", "")
    text = report_text(report(one, its_gradient))
    assert text.count("that is: ") == text.count("instead: ") == 1


def test_nobody_is_told_to_write_reductions_otherwise_that_xla_makes(file: str) -> None:
    twice = explained(frame(file), Verdict("a", "b", "both the producer and the consumer contain a reduce")).barrier
    said = [
        report_text(report(ExplainedBarrier(replace(twice, cause="reduce feeding reduce", detail=detail), "", "")))
        for detail in ("XLA's two steps of one", "a matrix product as a sum", "")
    ]
    assert ["instead: make both reductions" in text for text in said] == [False, False, True]
    assert "that is: a large reduction (a sum, a maximum) is made in two steps" in said[0]


def test_the_text_of_an_instruction_is_no_part_of_the_reason(file: str) -> None:
    reason = "Fusion can not be tiled with SymbolicTileAnalysis: no tile for (d0)[s0] -> (s0 / 64)"
    verdict = Verdict("a", "b", f'{reason} for HLO %add.1 = f32[8]{{0}} add(%b, %c), metadata={{op_name="jit(f)/add"}}')
    text = report_text(report(ExplainedBarrier(replace(barrier(frame(file)), verdict=verdict), "", "")))
    assert f"   XLA: {reason}\n        that is: fused, the kernel could not be cut into the tiles" in text


def test_the_whole_report(file: str) -> None:
    explained = ExplainedBarrier(barrier(frame(file)), "columns-of-a-stack", "keep the variables apart in the carry")
    assert (
        report_text(report(explained))
        == """\
env.py:rollout(f32[2048,4]) on h100 (jax 0.10.2, jaxlib 0.10.2)
1000 steps x 4 launches + 6 = 4006 launches, 131 MB; compiled in 0.9 s
kernels: 3 loop, 1 copy

1. concatenate  env.py:4:11 in step, from rollout:120                           1000 launches, 64.0 MB
      4 |     new = jnp.stack([x, v], axis=1)
        |           ^^^^^^^^^^^^^^^^^^^^^^^^^
   XLA: Concatenate fusion is inefficient.
        that is: on a CPU a concatenate along the last axis is a kernel of its own
   columns-of-a-stack: keep the variables apart in the carry
"""
    )


def test_barriers_of_one_cause_at_one_line_are_one(file: str) -> None:
    three = [ExplainedBarrier(barrier(frame(file), number), "", "") for number in (1, 2, 3)]
    text = report_text(report(*three))
    assert "1. concatenate (x3)  env.py:4:11" in text
    assert "3000 launches, 192 MB" in text
    assert text.count("XLA:") == 1  # the same reason three times


def test_what_one_rule_explains_at_one_line_is_one_whatever_its_cause(file: str) -> None:
    one = barrier(frame(file))
    others = [replace(barrier(frame(file), number), cause="loop carry", detail="in") for number in (2, 3)]
    text = report_text(report(*(ExplainedBarrier(each, "rule-name", "write it apart") for each in (one, *others))))
    assert "1. concatenate and loop carry (in) (x3)  env.py:4:11" in text
    assert "3000 launches, 192 MB" in text
    assert text.count("rule-name: write it apart") == 1
    assert "2. " not in text


def test_what_a_rule_explains_of_a_call_it_explains_of_all_that_has_that_cause_there(file: str) -> None:
    ours = (frame(file), Frame("env.py", 120, function="rollout"))
    theirs = (frame(file), Frame("env.py", 130, function="evaluate"))
    dear, cheap = (replace(barrier(None, number), stack=ours, bytes=size) for number, size in ((1, 64000), (2, 8)))
    carried = replace(barrier(None, 3), stack=ours, cause="loop carry")
    elsewhere = replace(barrier(None, 4), stack=theirs)
    unexplained = (ExplainedBarrier(one, "", "") for one in (carried, elsewhere))
    text = report_text(
        report(ExplainedBarrier(dear, "", ""), ExplainedBarrier(cheap, "a-rule", "write it apart"), *unexplained)
    )
    blocks = text.split("\n\n")[1:]
    assert [("(x2)" in block, "a-rule: write it apart" in block) for block in blocks] == [
        (True, True),
        (False, False),
        (False, False),
    ]


def test_what_is_advised_at_two_lines_is_said_in_full_at_the_first(file: str) -> None:
    here = barrier(frame(file))
    there = replace(barrier(replace(frame(file), line=2), 2), bytes=8)
    text = report_text(report(*(ExplainedBarrier(each, "rule-name", "write it apart") for each in (here, there))))
    assert re.findall("rule-name: .*", text) == ["rule-name: write it apart", "rule-name: as in 1"]


def test_a_line_that_several_callers_reach_names_each_of_them_once(file: str) -> None:
    calls = [Frame("env.py", line, function="rollout") for line in (7, 9, 9, 8)]
    stacks = [(frame(file), call) for call in calls]
    found = [ExplainedBarrier(replace(barrier(None, i), stack=stack), "", "") for i, stack in enumerate(stacks)]
    assert " in step, from rollout:7, rollout:9 and rollout:8  " in report_text(report(*found))
    assert " in step, from rollout:7 and rollout:9  " in report_text(report(*found[:2]))


@pytest.mark.parametrize(
    ("many", "said"), [(4, "rollout:3 and rollout:4  "), (5, "rollout:3 and 2 more  "), (30, "rollout:3 and 27 more  ")]
)
def test_of_a_line_that_many_callers_reach_three_are_named(file: str, many: int, said: str) -> None:
    stacks = [(frame(file), Frame("env.py", 10 * line, function="rollout")) for line in range(1, many + 1)]
    found = [ExplainedBarrier(replace(barrier(None, i), stack=stack), "", "") for i, stack in enumerate(stacks)]
    text = report_text(report(*found))
    assert said.replace(":3", ":30").replace(":4", ":40") in text


@pytest.mark.parametrize(
    "packages", ["/usr/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages", ".venv/site-packages"]
)
def test_a_line_of_an_installed_package_is_named_from_the_package_on(file: str, packages: str) -> None:
    place = Frame(f"{packages}/gymnax/environment.py", 76, 31, function="step")
    assert "1. concatenate  gymnax/environment.py:76:31 in step" in report_text(
        report(ExplainedBarrier(barrier(place), "", ""))
    )


def test_a_line_that_a_library_reaches_by_itself_names_the_users_call(file: str) -> None:
    """Which call of the library is meant is seen at the user's line alone."""
    inside, above = (Frame(f"/venv/site-packages/diffrax/{name}.py", 7, 1, function=name) for name in ("term", "solve"))
    own = Frame(file, 3, 1, function="fit")

    def heading(*stack: Frame) -> str:
        return report_text(report(ExplainedBarrier(replace(barrier(None), stack=stack), "", "")))

    assert " in term, from solve:7, called at env.py:3  " in heading(inside, above, own)
    assert " in term, called at env.py:3  " in heading(inside, own, above)
    assert " in term, from solve:7  " in heading(inside, above)
    assert " in fit, from solve:7  " in heading(own, above)
    # Of the user's own line the user's call, not the library's line in between.
    train = Frame(file, 5, 1, function="train")
    assert " in fit, from train:5  " in heading(own, inside, above, train)
    elsewhere = Frame("train.py", 9, 1, function="main")
    assert " in fit, from main at train.py:9  " in heading(own, inside, elsewhere)


def test_what_launches_nothing_takes_no_time() -> None:
    nothing = replace(report(), totals=Totals(0, 0, 0, 0, 0.0, 0.0), loops=())
    assert "\n0 launches, 0 B; compiled in 0.9 s\n" in report_text(nothing)


def test_what_takes_next_to_no_time_is_not_about_under_it() -> None:
    quick = replace(report(), totals=Totals(1, 0, 64, 0, 0.002, 0.0, ("bytes over bandwidth",)), loops=())
    assert "\n1 launch, 64 B, under 0.01 us by bytes over bandwidth; compiled" in report_text(quick)


@pytest.mark.parametrize(
    ("once", "again", "says"),
    [
        (1, 0, "1 of the launches is a scalar op: the scalar core runs it between kernels"),
        (3, 0, "3 of the launches are scalar ops: the scalar core runs them between kernels"),
        (0, 1, "1 of the launches per iteration is a scalar op: the scalar core runs it between kernels"),
        (1, 1, "1 of the launches, and 1 of those per iteration, are scalar ops: the scalar core runs them between"),
    ],
)
def test_one_scalar_op_is_one(once: int, again: int, says: str) -> None:
    totals = Totals(5, 5, 64, 64, 2.0, 2.0, ("XLA's model",), scalar_ops=once, scalar_ops_per_iteration=again)
    assert f"\n{says}" in report_text(replace(report(), totals=totals, loops=()))


def test_two_values_of_one_kernel_are_one_launch(file: str) -> None:
    one = barrier(frame(file))
    two = replace(one, value="get-tuple-element.7")
    text = report_text(report(ExplainedBarrier(one, "", ""), ExplainedBarrier(two, "", "")))
    assert "1000 launches, 128 MB" in text


def test_a_barrier_is_named_in_one_line(file: str) -> None:
    one = ExplainedBarrier(barrier(frame(file)), "columns-of-a-stack", "keep the variables apart")
    assert repr(one) == "<ExplainedBarrier concatenate, env.py:4:11 in step: 1000 launches, 64.0 MB>"


def test_of_the_branches_of_a_conditional_the_dearest_counts(file: str) -> None:
    found = [replace(barrier(frame(file), i), branches=(("cond", branch),)) for i, branch in enumerate((0, 1, 1))]
    text = report_text(report(*(ExplainedBarrier(one, "", "", Price(20.0, 5.0)) for one in found)))
    assert "1. concatenate (x3)" in text
    assert "2000 launches, 128 MB" in text
    priced = replace(report(), totals=Totals(1, 0, 1, 0, 80.0))
    barriers = tuple(ExplainedBarrier(one, "", "", Price(20.0, 5.0)) for one in found)
    assert "50 us of 80 us" in report_text(replace(priced, barriers=barriers))


def test_a_barrier_takes_no_longer_than_the_program_does(file: str) -> None:
    """By bandwidth its value alone may, where XLA's model knows of a cache."""
    priced = replace(
        report(ExplainedBarrier(barrier(frame(file)), "", "", Price(28.0, 0.0))), totals=Totals(1, 0, 1, 0, 26.0)
    )
    assert "26 us of 26 us" in report_text(priced)


def test_what_is_counted_per_iteration_is_told_apart_from_what_is_counted_once(file: str) -> None:
    once = barrier(frame(file))
    again = replace(barrier(frame(file), 2, 1000), per_iteration=True, crossings=1, launches=1)
    text = report_text(report(ExplainedBarrier(once, "", ""), ExplainedBarrier(again, "", "")))
    assert "1000 launches, 64.0 MB\n" in text
    assert "1 launch, 1.0 kB per iteration\n" in text


def test_only_the_ten_dearest_are_shown_unless_all_are_asked_for(file: str) -> None:
    twelve = [ExplainedBarrier(barrier(Frame(file, line, 1), line, 1000 * line), "", "") for line in range(1, 13)]
    text = report_text(report(*twelve))
    assert "1. concatenate  env.py:12:1" in text
    assert "10. concatenate  env.py:3:1" in text
    assert "11. " not in text
    assert text.endswith("… and 2 more; --all shows them\n")
    assert "12. concatenate  env.py:1:1" in report_text(report(*twelve), everything=True)


def test_each_of_several_loops_has_its_own_steps() -> None:
    """A rollout's 704 launches stood in the rest of "4 steps x 267 launches + 776"."""
    known = Loop("while", "main", 4, None, None, 267, 1)
    loops = (Loop("w", "main", 2, None, None, 5, 2), known, Loop("v", "main", 32, None, None, 22, 1))
    inner = Loop("u", "body", 4, "while", None, 63, 0)
    both = replace(report(), loops=(*loops, inner), totals=Totals(1844, 0, 64, 0))
    assert "\n4 steps x 267 launches + 32 steps x 22 + 2 steps x 5 + 62 = 1844 launches, 64 B;" in report_text(both)
    twins = replace(both, loops=(known, known, *loops, inner), totals=Totals(3978, 0, 64, 0))
    assert "\n3 x 4 steps x 267 launches + 32 steps x 22 + 2 steps x 5 + 60 = 3978 launches" in report_text(twins)
    in_branches = replace(both, totals=Totals(1100, 0, 64, 0))
    assert "\n4 steps x 267 launches + 32 = 1100 launches" in report_text(in_branches)


def test_no_one_loop_is_said_to_launch_what_several_do() -> None:
    loops = tuple(Loop(name, "main", None, None, None, launches, 0) for name, launches in (("v", 16), ("w", 190)))
    several = replace(report(), loops=loops, totals=Totals(45, 206, 64, 32))
    said = "45 launches and 206 launches in an iteration of each of 2 loops of unknown length, 64 B and 32 B"
    assert said in report_text(several)


def test_a_kernel_that_takes_much_of_the_whole_is_named_where_it_is() -> None:
    """No barrier says so: a slow kernel need not write what others read."""
    at = (Frame("/venv/site-packages/flax/norm.py", 5, 1, function="normalize"), Frame("train.py", 7, function="step"))
    one = Kernel("fusion.1", "main", "input", ("reduce",), 1, None, False, 4, 4, at, microseconds=260.0)
    others = [replace(one, name=f"fusion.{number}", microseconds=10.0) for number in range(2, 12)]
    totals = Totals(11, 0, 88, 0, microseconds=360.0, timed_by=("XLA's model",))
    text = report_text(replace(report(), kernels=(*others, one), totals=totals))
    said = "260 us of 360 us are one kernel, fusion.1: flax/norm.py:5 in normalize, called at train.py:7\n"
    assert text.count("are one kernel") == text.count(said) == 1
    even = replace(report(), kernels=(one, one, one), totals=replace(totals, microseconds=780.0))
    assert "are one kernel" not in report_text(even)


def test_loops_whose_steps_are_cuda_graphs_of_one_length_are_one_line() -> None:
    one = Kernel("fusion", "body", "loop", ("add",), 10, "while.1", False, 4, 4, (), graph=0)
    other = replace(one, loop="while.2", graph=1)
    said = "2 launches of every step go as one CUDA graph\n"
    assert f"\n2 times {said}" in report_text(replace(report(), kernels=(one, one, other, other)))
    assert f"\n{said}" in report_text(replace(report(), kernels=(one, one)))


def test_steps_of_several_lengths_that_are_too_short_for_a_cuda_graph_are_one_line() -> None:
    every = [
        Kernel(f"{length}.{number}", "main", "loop", ("add",), 10, f"while.{length}", False, 4, 4, ())
        for length in (4, 3)
        for number in range(length)
    ]
    around = tuple(Loop(f"while.{length}", "main", 10, None, None, length, 0) for length in (4, 3))
    text = report_text(
        replace(report(), kernels=tuple(every), loops=around, totals=Totals(70, 0, 0, 0, host_launches=70))
    )
    assert "\n3 and 4 launches of every step go one by one: " in text


def test_many_cuda_graphs_are_one_line() -> None:
    one = Kernel("fusion", "main", "loop", ("add",), 1, None, False, 4, 4, (), graph=0)
    inside = replace(one, loop="while.1", launches=10, graph=1)
    every = (one, *[inside] * 3, *[replace(one, graph=2)] * 5)
    text = report_text(replace(report(), kernels=every, totals=Totals(36, 0, 0, 0, host_launches=12)))
    assert (
        "\n3 CUDA graphs, of 1 to 5 launches each, 1 of them in the steps of loops\nthe host launches 12 times\n"
        in text
    )


def test_a_caret_stands_under_its_text_behind_a_tab(file: str) -> None:
    text = report_text(report(ExplainedBarrier(barrier(Frame(file, 5, 9, 5, 12)), "", "")))
    assert "      5 | \treturn new\n        | \t       ^^^\n" in text


def test_columns_count_the_bytes_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "law.py"
    path.write_text('größe = "🙂"; z = sort(x)\n', encoding="utf-8")
    text = report_text(report(ExplainedBarrier(barrier(Frame(str(path), 1, 23, 1, 30)), "", "")))
    assert f'      1 | größe = "🙂"; z = sort(x)\n        | {" " * 17}^^^^^^^\n' in text


def test_without_a_column_the_whole_line_is_marked(file: str) -> None:
    text = report_text(report(ExplainedBarrier(barrier(Frame(file, 1)), "", "")))
    assert "      1 | import jax.numpy as jnp\n        | ^^^^^^^^^^^^^^^^^^^^^^^\n" in text


def test_all_that_is_told_of_a_line_at_once_is_underlined(file: str) -> None:
    """Of three reductions on a line the first alone was."""
    spans = ((19, 22), (5, 8), (16, 23), (19, 22))
    every = [barrier(Frame(file, 4, start, 4, end, "step"), number) for number, (start, end) in enumerate(spans)]
    text = report_text(report(*(ExplainedBarrier(one, "", "") for one in every)))
    line = Path(file).read_text().splitlines()[3]
    assert f"      4 | {line}\n        |     ^^^        ^^^^^^^\n" in text
    assert "concatenate (x4)" in text


def test_a_file_that_is_not_there_has_no_excerpt(file: str) -> None:
    text = report_text(report(ExplainedBarrier(barrier(Frame("/nowhere/x.py", 4, 1)), "", "")))
    assert "/nowhere/x.py:4:1" in text
    assert "|" not in text


def test_a_barrier_without_a_line_names_its_instruction() -> None:
    assert "no source line known (%fusion.1)" in report_text(report(ExplainedBarrier(barrier(None), "", "")))


def test_a_reason_that_is_not_in_the_catalogue_is_shown_as_it_is() -> None:
    odd = replace(barrier(None), verdict=Verdict("p", None, "a reason of 2031"))
    text = report_text(report(ExplainedBarrier(odd, "", "")))
    assert "XLA: a reason of 2031\n" in text
    assert "that is" not in text


def test_the_cost_models_microseconds_are_shown() -> None:
    odd = replace(barrier(None), verdict=Verdict("p", None, "", 4.2, 4.1))
    assert "XLA: cost model, fused 4.2 us, apart 4.1 us\n" in report_text(report(ExplainedBarrier(odd, "", "")))


def test_cpu_counts_come_with_a_warning_and_others_without() -> None:
    on_cpu = replace(report(), target="cpu")
    warning = "these are CPU counts: no guide to a GPU or TPU; name one with"
    assert f"\n{warning} --target\n" in report_text(on_cpu)
    assert f'\n{warning} target="h100"\n' in str(on_cpu)
    assert f"\n{warning} target=&quot;h100&quot;\n" in on_cpu._repr_html_()
    assert "CPU counts" not in report_text(report())


def test_a_report_without_barriers_says_so() -> None:
    assert "no value crosses memory between two kernels" in report_text(report())


def test_an_unknown_trip_count_is_said() -> None:
    unknown = replace(report(), totals=Totals(6, 4, 1000, 200), loops=(Loop("while", "main", None, None, None, 4, 1),))
    assert "6 launches and 4 launches per iteration of a loop of unknown length, 1.0 kB and 200 B per iteration" in (
        report_text(unknown)
    )


def test_stages_are_an_aligned_table() -> None:
    text = report_text(report(), with_stages=True)
    assert (
        """
jaxpr      StableHLO  HLO before  HLO after  kernels
12 in all  13 in all  12 in all   1 in all   4 in all
12 sin     12 sine    12 sine     1 sine     3 loop
            1 add                            1 copy
"""
        in text
    )
    assert "  2 repeat another operation" in text
    assert "  fusion saved 6 launches" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (12, "12 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (65_536, "65.5 kB"),
        (131_072_000, "131 MB"),
        (999_950, "1.0 MB"),
    ],
)
def test_sizes_are_in_powers_of_1000(count: int, text: str) -> None:
    assert size(count) == text
