"""What `diff` makes of two reports: which functions changed, which barriers, and what of it is a regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from diffs import LINE, barrier, document, ran, report, run_document, side

from fusionlint.diff.barriers import BarrierChange
from fusionlint.diff.compare import Diff, compare
from fusionlint.diff.side import DiffError, Side, on, side_from

OTHER = "out = jnp.sin(x)"


def changes(before: dict[str, Any], after: dict[str, Any], **more: Any) -> tuple[BarrierChange, ...]:
    """Of one program whose barriers are these."""
    entry = "env.py:rollout(f32[8])"
    (function,) = compare(side(report(entry, *before["barriers"])), side(report(entry, *after["barriers"]))).functions
    return function.programs[0].barriers


def barriers(*told: dict[str, Any]) -> dict[str, Any]:
    return {"barriers": told}


def words(diff: Diff) -> dict[str, str]:
    return {one.name: one.word for one in diff.functions}


def ran_side(*functions: dict[str, Any], **more: Any) -> Side:
    return side_from("run.json", run_document(*functions, **more))


# What a side is


def test_paths_are_told_from_the_top_of_the_project_wherever_its_checkout_lies() -> None:
    told = report("src/env.py:rollout(f32[8])", barrier())
    here = side_from("a", document(told))
    moved = report("env.py:rollout(f32[8])", barrier(location={"path": "/ci/x/env.py", "line": 15, "function": "f"}))
    there = side_from("b", document(moved, folder="/ci/x/src", top="/ci/x"))
    assert here.functions[0].name == there.functions[0].name == "src/env.py:rollout"
    assert here.functions[0].programs[0].barriers[0].path == there.functions[0].programs[0].barriers[0].path == "env.py"


def test_what_is_installed_is_told_from_where_packages_are() -> None:
    at = {"path": "/repo/.venv/lib/python3.11/site-packages/flax/core/lift.py", "line": 3, "function": "f"}
    (function,) = side(report("m:f(f32[2])", barrier(location=at))).functions
    assert function.programs[0].barriers[0].path == "flax/core/lift.py"


@pytest.mark.parametrize(
    ("entry", "name", "arguments"),
    [
        ("env.py:A.step(f32[8,4], n=(1, 2))", "env.py:A.step", "(f32[8,4], n=(1, 2))"),
        ("pkg.mod:step(key)", "pkg.mod:step", "(key)"),
        ("/repo/a (copy)/env.py:step(f32[8])", "a (copy)/env.py:step", "(f32[8])"),
        ("env.py:main.<lambda>(x: f32[8])", "env.py:main.<lambda>", "(x: f32[8])"),
        ("step(x: f32[8])", "step", "(x: f32[8])"),
        ("go.py:scan(body_a)(args: f32[8])", "go.py:scan(body_a)", "(args: f32[8])"),
        ("go.py:scan(<lambda>)(args: f32[8])", "go.py:scan(<lambda>)", "(args: f32[8])"),
        ("go.py:SVI.update(fit.model)()", "go.py:SVI.update(fit.model)", "()"),
        ("go.py:solve(map(field))(y: f32[8])", "go.py:solve(map(field))", "(y: f32[8])"),
        ("go.py:act(x: f32[8], self=((Net), a PyTreeDe...)", "go.py:act", "(x: f32[8], self=((Net), a PyTreeDe...)"),
        ("go.py:act(mode=')(')", "go.py:act", "(mode=')(')"),
        ("jit_step from dump/module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt", "jit_step", ""),
    ],
)
def test_a_function_has_the_name_of_its_entry_without_the_arguments(entry: str, name: str, arguments: str) -> None:
    (function,) = side(report(entry)).functions
    assert (function.name, function.programs[0].arguments.text) == (name, arguments)


def test_what_a_librarys_function_was_given_tells_its_programs_apart() -> None:
    """Each keeps its own compilations and reports."""
    names = [f"go.py:scan({body})" for body in ("body_a", "body_b", "<lambda>")]
    one = ran_side(*(ran(f"{name}(args: f32[8])") for name in names), reports=(report(f"{names[0]}(args: f32[8])"),))
    assert [(each.name, each.compilations, len(each.programs)) for each in one.functions] == [
        (names[0], 1, 1),
        (names[1], 1, 0),
        (names[2], 1, 0),
    ]


def test_barriers_of_one_cause_at_one_line_are_one_and_a_kernel_is_launched_once() -> None:
    both = [barrier(reason="a"), barrier(reason="b"), barrier(reason="a", writer="fusion.2", rule="r", advice="do")]
    (one,) = side(report("m:f()", *both)).functions[0].programs[0].barriers
    assert (one.count, one.launches, one.bytes, one.rule) == (3, 2000, 96_000, "r")
    assert sorted(one.reasons) == ["a", "b"]


def test_of_the_branches_of_a_conditional_the_dearest_counts() -> None:
    """As in the report itself: they were added up, and a branch that came was a barrier that grew."""
    writers = [("a", 1), ("b", 0), ("c", 0)]
    inside = [barrier(writer=name, launches=2, bytes=8, crossings=2, branches=[["c.1", n]]) for name, n in writers]
    outside = barrier(writer="d", launches=1, bytes=1, crossings=1)
    (one,) = side(report("m:f()", *inside, outside)).functions[0].programs[0].barriers
    assert (one.count, one.launches, one.bytes) == (4, 4 + 1, 32 + 1)


def test_of_a_run_compilations_are_counted_and_eager_operations() -> None:
    told = ran_side(ran(times=3), reports=(report("env.py:rollout(x: f32[8])"),), eager=7)
    (function,) = told.functions
    assert (function.compilations, len(function.again), len(function.programs), told.eager) == (3, 2, 1, 7)
    assert "python" not in told.ran_with


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"version": 1},
        {"version": 1, "reports": [{"entry": "f"}], "errors": []},
        document(report("m:f()", launches="many")),
    ],
)
def test_what_is_no_report_is_said_in_one_line(told: dict[str, Any]) -> None:
    with pytest.raises(DiffError, match=r"^x\.json is neither a report .* nor a recording \(`run --record`\)$"):
        side_from("x.json", told)


def test_a_report_of_a_newer_fusionlint_is_said_to_be_one() -> None:
    with pytest.raises(DiffError, match=r"^x\.json is of version 2: a newer fusionlint wrote it$"):
        side_from("x.json", {"version": 2})


def test_targets_that_are_asked_for_are_kept_and_have_to_be_there() -> None:
    both = side(report(), report(target="v5e"))
    assert [one.target for one in on(both, ["v5e"]).functions[0].programs] == ["v5e"]
    assert on(both, []) == both
    with pytest.raises(DiffError, match=r"a\.json has no report for cpu: it has h100, v5e"):
        on(both, ["cpu"])


# Numbers


@pytest.mark.parametrize("name", ["launches", "bytes", "microseconds"])
def test_whatever_rises_is_a_regression_and_what_falls_is_none(name: str) -> None:
    few, many = side(report(**{name: 100})), side(report(**{name: 110}))
    assert compare(few, many).worse
    assert words(compare(few, many)) == {"env.py:rollout": "worse"}
    assert words(compare(many, few)) == {"env.py:rollout": "better"}
    assert not compare(many, few).worse
    assert words(compare(few, few)) == {"env.py:rollout": "same"}


def test_the_tolerance_is_in_percent_and_counts_for_each_number() -> None:
    before, after = side(report(launches=100, bytes=100)), side(report(launches=110, bytes=90))
    assert words(compare(before, after, 9.9)) == {"env.py:rollout": "worse"}
    assert words(compare(before, after, 10)) == {"env.py:rollout": "within tolerance"}
    assert not compare(before, after, 10).worse


def test_what_rises_from_nothing_is_over_any_tolerance() -> None:
    before, after = side(report(launches_per_iteration=0)), side(report(launches_per_iteration=1))
    assert compare(before, after, 1000).worse


def test_rounding_is_no_regression() -> None:
    assert not compare(side(report(microseconds=0.3)), side(report(microseconds=0.1 + 0.2))).worse


def test_microseconds_that_one_side_does_not_know_are_not_compared() -> None:
    diff = compare(side(report(microseconds=None)), side(report()))
    assert [one.name for one in diff.functions[0].programs[0].quantities] == ["launches", "bytes"]


def test_totals_do_not_compare_where_a_loop_is_of_unknown_length_on_one_side_only() -> None:
    unknown, known = side(report(launches=3, launches_per_iteration=4)), side(report(launches=4003))
    diff = compare(unknown, known)
    assert not diff.worse
    assert "known on one side only" in diff.functions[0].programs[0].notes[0]
    assert compare(known, unknown).worse


def test_other_means_of_timing_and_other_arguments_are_noted() -> None:
    before = side(report("m:f(f32[8])"))
    after = side(report("m:f(f32[16])", timed_by=["bytes over bandwidth", "XLA's model"]))
    assert compare(before, after).functions[0].programs[0].notes == (
        "its arguments were (f32[8]), and are (f32[16])",
        "timed by XLA's model before, by bytes over bandwidth after",
    )


@pytest.mark.parametrize(
    ("launches", "host", "noted"),
    [
        ((7004, 4003), (1004, 4003), ("the host launches 4003 times instead of 1004: less goes as a CUDA graph",)),
        ((7004, 2010), (1004, 1001), ()),
        ((4003, 7004), (4003, 4004), ()),  # that it got worse is said
        ((7004, 4003), (None, 4003), ()),  # written by an older version, or read from a dump
    ],
)
def test_fewer_launches_of_which_the_host_makes_more_are_noted(
    launches: tuple[int, int], host: tuple[int | None, int | None], noted: tuple[str, ...]
) -> None:
    """examples/cartpole: a step of c, with four launches, takes longer on an H200 than one of b, with seven."""
    sides = [side(report(launches=a, host_launches=b)) for a, b in zip(launches, host, strict=True)]
    assert compare(*sides).functions[0].programs[0].notes == noted


# Functions


def test_functions_are_matched_by_name_and_new_and_gone_ones_are_no_regression() -> None:
    diff = compare(side(report("m:a()"), report("m:b()")), side(report("m:b()"), report("m:c()")))
    assert words(diff) == {"m:a": "gone", "m:b": "same", "m:c": "new"}
    assert not diff.worse
    assert diff.compared


def test_what_got_worse_comes_first() -> None:
    diff = compare(side(report("m:a()"), report("m:b()")), side(report("m:a()"), report("m:b()", launches=9)))
    assert [*words(diff)] == ["m:b", "m:a"]


def test_of_several_signatures_those_of_equal_arguments_are_compared() -> None:
    small, large = report("m:f(f32[2])", launches=1), report("m:f(f32[8])", launches=9)
    (function,) = compare(side(small, large), side(large, small, report("m:f(f32[4])"))).functions
    assert [one.word for one in function.programs] == ["same", "same", "new"]


@pytest.mark.parametrize(
    ("of_a_run", "of_a_spec"),
    [
        ("(x: f32[64], n=5)", "(f32[64], 5)"),
        ("(x: f32[64], n=5)", "(x=f32[64], n=5)"),
        ("(x: f32[64], n=5)", "(5, f32[64])"),
        ("(state: f32[8, 2] donated, k: key, mode='a, b')", "(f32[8,2], key, mode='a, b')"),
        ("(params: 2 arrays, x: f32[8])", "({w: f32[4,8], b: f32[4]}, f32[8])"),
        ("(params: f32[4], keys: 2 arrays donated)", "((f32[4],), [key, key[2]])"),
        ("(params: 2 arrays)", "({'w': f32[4], key: key})"),
        ("(f: f32[], shape=(1, 2))", "(f32[], (1, 2))"),
        ("(x: f32[64@data,32@(a,b)], n=5)", "(5, f32[64@data, 32@(a,b)])"),
        ("()", "()"),
    ],
)
def test_arguments_are_the_same_however_a_run_and_a_spec_say_them(of_a_run: str, of_a_spec: str) -> None:
    for before, after in ((of_a_run, of_a_spec), (of_a_spec, of_a_run)):
        (function,) = compare(side(report(f"m:f{before}")), side(report(f"m:f{after}"))).functions
        assert function.programs[0].notes == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(x: f32[64], n=5)", "(f32[64], 6)"),
        ("(x: f32[64])", "(f32[64], 5)"),
        ("(x: f32[2], y: f32[4])", "(f32[4], f32[2])"),
        ("(params: 2 arrays)", "({w: f32[4]})"),
        ("(x: f32[64], mode='a')", "(f32[64], 'b')"),
        ("(x: f32[64@data])", "(f32[64])"),
    ],
)
def test_arguments_that_differ_are_not_the_same(before: str, after: str) -> None:
    (function,) = compare(side(report(f"m:f{before}")), side(report(f"m:f{after}"))).functions
    assert function.programs[0].notes == (f"its arguments were {before}, and are {after}",)


def test_what_a_run_leaves_unsaid_of_its_arguments_its_spec_says() -> None:
    """A default is not in the SPEC, and of many arguments not all are in the entry."""
    entry = "env.py:rollout(a: f32[1], b: f32[2], c: f32[3], d: f32[4], e: f32[5], and 2 more)"
    spec = "(f32[1], f32[2], f32[3], f32[4], f32[5], f32[6])"
    run = ran_side(
        {"name": "rollout", "compilations": [{"entry": entry, "why": [], "spec": spec}]}, reports=(report(entry),)
    )
    (function,) = compare(run, side(report(f"env.py:rollout{spec}"))).functions
    assert function.programs[0].notes == ()


def test_signatures_are_paired_by_what_they_mean_then_by_what_is_most_alike() -> None:
    """A run's names, and another order, do not make one signature worse and the other better."""
    small, large = "(x: f32[64])", "(x: f32[4,128])"
    run = side(report(f"m:f{large}", launches=9), report(f"m:f{small}", launches=1))
    specs = side(report("m:f(f32[64])", launches=1), report("m:f(f32[4,128])", launches=9))
    for before, after in ((run, specs), (specs, run)):
        (function,) = compare(before, after).functions
        assert [(one.word, one.notes) for one in function.programs] == [("same", ()), ("same", ())]
    trees = [f"({{w: f32[{size}], b: f32[2]}})" for size in (2, 4)]
    entry = "m:f(params: 2 arrays)"
    told = {"name": "f", "compilations": [{"entry": entry, "why": [], "spec": trees[0].replace("w", "'w'")}]}
    asked = side(report(f"m:f{trees[1]}", launches=4), report(f"m:f{trees[0]}", launches=2))
    (function,) = compare(ran_side(told, reports=(report(entry, launches=2),)), asked).functions
    assert [one.word for one in function.programs] == ["same", "new"]
    # Of two signatures that a run tells in the same words, it is not known which has the report.
    told["compilations"] = [{"entry": entry, "why": [], "spec": spec} for spec in trees]
    (function,) = compare(ran_side(told, reports=(report(entry, launches=4),)), asked).functions
    assert (function.programs[0].word, function.programs[0].notes) == ("same", ())
    before = side(report("m:f(f32[8], 1)", launches=1), report("m:f(f32[8], 2)", launches=2))
    after = side(report("m:f(i32[4], 2)", launches=2), report("m:f(f32[8], 1)", launches=1), report("m:f(i32[9], 7)"))
    (function,) = compare(before, after).functions
    assert [one.word for one in function.programs] == ["same", "same", "new"]
    assert function.programs[1].notes == ("its arguments were (f32[8], 2), and are (i32[4], 2)",)


def test_what_could_not_be_compiled_is_not_called_gone_and_its_error_is_what_was_lost() -> None:
    before, after = side(report("m:a()"), report("m:b()")), side(report("m:a()"), errors=["m:b does not compile"])
    assert words(compare(before, after)) == {"m:a": "same", "m:b": "no report after"}
    assert compare(before, after).lost == ("m:b does not compile",)
    assert words(compare(after, before)) == {"m:a": "same", "m:b": "no report before"}
    assert compare(after, before).lost == ()


def test_what_is_not_there_any_more_is_gone_whatever_it_was_called_and_whatever_else_failed() -> None:
    def failed(**kinds: str) -> Side:
        told = [{"entry": f"pkg.env:{name}(f32[8])", "kind": kind} for name, kind in kinds.items()]
        return side(report("m:a()"), errors=[*kinds], failures=told)

    before = side(report("m:a()"), report("src/pkg/env.py:b(x: f32[8])"), report("pkg.env:c(f32[8])"))
    after = failed(b="absent", c="trace")
    told = {"m:a": "same", "src/pkg/env.py:b": "gone", "pkg.env:c": "no report after"}
    assert words(compare(before, after)) == told
    assert compare(before, after).lost == ("b", "c")
    assert compare(before, failed(b="absent", c="absent")).lost == ()
    two = replace(side(report("m:f(f32[8])"), failures=[{"entry": "m:f(f32[4])", "kind": "trace"}]), is_asked=True)
    (function,) = compare(side(report("m:f(f32[8])"), report("m:f(f32[4])")), two).functions
    assert [one.word for one in function.programs] == ["same", "no report after"]
    assert words(compare(before, failed(b="absent", c="")))["pkg.env:c"] == "no report after"
    assert words(compare(after, before)) == {"m:a": "same", "src/pkg/env.py:b": "new", "pkg.env:c": "no report before"}


def test_what_one_side_was_not_asked_for_is_left_out_and_neither_gone_nor_new() -> None:
    """A revision has its SPECs alone, `explain` what it was asked for, and a run without --all one signature."""
    run = ran_side(
        ran(), ran("env.py:other()"), reports=(report("env.py:rollout(x: f32[8])"), report("env.py:other()"))
    )
    explained = side(report("env.py:rollout(f32[8])"))
    for before, after in ((run, explained), (explained, run)):
        diff = compare(before, after)
        assert words(diff) == {"env.py:rollout": "same", "env.py:other": "left out"}
        assert [one.changed for one in diff.functions] == [False, False]
    two, one = side(report("m:a()"), report("m:b()")), replace(side(report("m:a()")), is_asked=True)
    assert words(compare(two, one)) == words(compare(one, two)) == {"m:a": "same", "m:b": "left out"}
    assert set(words(compare(two, replace(one, failed={"m:b": "trace"}))).values()) == {"same", "no report after"}


def test_a_signature_that_a_run_compiled_and_did_not_explain_is_left_out() -> None:
    small, large = "env.py:rollout(x: f32[4])", "env.py:rollout(x: f32[8])"
    compilations = [{"entry": entry, "why": []} for entry in (small, large)]
    both = {"name": "rollout", "compilations": compilations}
    of_a_library = {"name": "fit", "compilations": [{"entry": "lib.py:fit()", "why": []}]}
    everything = ran_side(both, of_a_library, reports=(report(small), report(large), report("lib.py:fit()")))
    largest = ran_side(both, of_a_library, reports=(report(large),))
    for pair in ((everything, largest), (largest, everything)):
        rollout, fit = compare(*pair).functions
        assert [one.word for one in rollout.programs] == ["same", "left out"]
        assert (rollout.word, fit.word) == ("same", "same")
        assert [one.word for one in fit.programs] == ["left out"]
        assert not rollout.changed
        assert not fit.changed
    failed = replace(largest, errors=("no verdict on lib.py:fit",))
    assert words(compare(everything, failed)) == {"env.py:rollout": "same", "lib.py:fit": "no report after"}
    # What the later run did not compile at all is gone.
    (rollout,) = compare(
        ran_side(both, reports=(report(small), report(large))), ran_side(ran(large), reports=(report(large),))
    ).functions
    assert [one.word for one in rollout.programs] == ["same", "gone"]


def test_a_target_that_one_side_lacks_is_no_report() -> None:
    (function,) = compare(side(report(), report(target="v5e")), side(report())).functions
    assert [one.word for one in function.programs] == ["same", "no report after"]


def test_a_function_that_a_run_no_longer_compiles_is_gone_whatever_else_failed() -> None:
    diff = compare(ran_side(ran(), ran("env.py:other()")), ran_side(ran(), errors=["no verdict on env.py:rollout"]))
    assert words(diff) == {"env.py:rollout": "same", "env.py:other": "gone"}


def test_what_a_run_did_not_come_to_is_not_gone_and_its_counts_tell_nothing() -> None:
    """Of a script that crashed, was killed, or was stopped; one that always ends so is as good as any."""
    told = report("env.py:rollout(x: f32[8])")
    whole = ran_side(ran(times=2), ran("env.py:other()"), reports=(told, report("env.py:other()")), eager=5, status=0)
    crashed = ran_side(ran(), reports=(told,), eager=2, status=1)
    after, before = compare(whole, crashed), compare(crashed, whole)
    assert words(after) == {"env.py:rollout": "same", "env.py:other": "no report after"}
    assert (after.early, after.lost, after.eager, after.worse) == ((crashed,), ("exit status 1",), None, False)
    assert words(before) == {"env.py:rollout": "same", "env.py:other": "no report before"}
    assert (before.early, before.lost, before.eager, before.worse) == ((crashed,), (), None, False)
    for status in (0, 1, None):
        both = [replace(side, status=status) for side in (whole, crashed)]
        assert words(compare(*both)) == {"env.py:rollout": "better", "env.py:other": "gone"}
        assert compare(*both).early == ()
    nothing = ran_side(status=1)
    assert words(compare(whole, nothing)) == {"env.py:rollout": "no report after", "env.py:other": "no report after"}
    assert not compare(whole, nothing).compared
    without_reports = replace(whole, functions=ran_side(ran("env.py:late()")).functions)
    assert words(compare(without_reports, nothing)) == {"env.py:late": "no report after"}


def test_more_compilations_are_a_regression_with_the_reasons_that_are_new() -> None:
    diff = compare(ran_side(ran(times=2)), ran_side(ran(times=4)))
    assert diff.worse
    (function,) = diff.functions
    assert function.compilations is not None
    assert (function.compilations.before, function.compilations.after) == (2, 4)
    assert function.again == {"x: f32[8] -> f32[4]": 2}


def test_more_programs_of_eager_operations_are_a_regression() -> None:
    assert compare(ran_side(ran(), eager=3), ran_side(ran(), eager=5)).worse
    assert not compare(ran_side(ran(), eager=5), ran_side(ran(), eager=3)).worse


def test_compilations_are_not_compared_with_what_was_not_run() -> None:
    (function,) = compare(side(report()), ran_side(ran(times=3), reports=(report(),))).functions
    assert (function.compilations, function.word) == (None, "same")


def test_a_function_is_the_same_by_its_module_and_by_its_file_unless_that_is_not_sure() -> None:
    module, file = side(report("pkg.env:A.step(f32[8])")), side(report("src/pkg/env.py:A.step(x: f32[8])"))
    assert words(compare(module, file)) == {"src/pkg/env.py:A.step": "same"}
    assert words(compare(file, module)) == {"pkg.env:A.step": "same"}
    init = side(report("src/pkg/__init__.py:f()"))
    assert words(compare(side(report("pkg:f()")), init)) == {"src/pkg/__init__.py:f": "same"}
    for other in ("my_env.py:A.step()", "pkg/env.py:step()", "pkg/other.py:A.step()"):
        assert set(words(compare(side(report("env:A.step()")), side(report(other)))).values()) == {"gone", "new"}
    two = side(report("a/env.py:f()"), report("b/env.py:f()"))
    assert words(compare(side(report("env:f()")), two)) == {"env:f": "gone", "a/env.py:f": "new", "b/env.py:f": "new"}
    both = side(report("env:f()"), report("a/env.py:f()"))
    assert words(compare(both, side(report("a/env.py:f()")))) == {"env:f": "gone", "a/env.py:f": "same"}


def test_a_function_whose_file_is_elsewhere_is_compared_and_it_is_said() -> None:
    def told(folder: str, *paths: str) -> Side:
        lines = [barrier(location={"path": f"/repo/{path}", "line": 15, "function": "f"}) for path in paths]
        return side(report(f"{folder}fit.py:step(f32[8])", *lines))

    beside = told("", "fit.py", "tools.py", "venv/site-packages/gymnax/env.py")
    fixed = told("fixed/", "fixed/fit.py", "fixed/tools.py", "venv/site-packages/gymnax/env.py")
    for before, after in ((beside, fixed), (fixed, beside)):
        (function,) = compare(before, after).functions
        (program,) = function.programs
        assert (function.name, function.word, program.barriers) == (after.functions[0].name, "same", ())
        assert program.notes == (f"it was {before.functions[0].name}",)
    # What is gone was where it was.
    other = barrier(OTHER, location={"path": "/repo/fixed/fit.py", "line": 15, "function": "f"})
    (function,) = compare(told("", "fit.py"), side(report("fixed/fit.py:step(f32[8])", other))).functions
    shown = [(one.word, one.shown.path) for one in function.programs[0].barriers]
    assert shown == [("appeared", "fixed/fit.py"), ("gone", "fit.py")]
    # Of a file that is still there as well, and of two that it could have been, nothing is said.
    both = side(report("fit.py:step()"), report("fixed/fit.py:step()"))
    assert words(compare(side(report("fit.py:step()")), both)) == {"fit.py:step": "same", "fixed/fit.py:step": "new"}
    two = side(report("a/fit.py:step()"), report("b/fit.py:step()"))
    assert set(words(compare(side(report("fit.py:step()")), two)).values()) == {"gone", "new"}


def test_why_nothing_was_compared_is_one_line_and_what_is_new_is_no_failure() -> None:
    """Where neither side has anything in common with the other, that nothing got worse would mean nothing."""
    a, b = side(report("m:a()"), name="A"), side(report("m:b()"), name="B")
    none = side(errors=["m:a does not compile"], name="N")
    four = side(*(report(f"m:{name}()") for name in "cdef"), name="F")
    assert compare(a, a).uncompared == ""
    assert compare(a, b).uncompared == "nothing was compared: A has m:a, B has m:b"
    assert compare(a, four).uncompared == "nothing was compared: A has m:a, F has m:c, m:d, m:e and 1 more"
    on_v5e = side(report("m:a()", target="v5e"), name="V")
    assert compare(a, on_v5e).uncompared == "nothing was compared: A is of h100, V of v5e"
    assert compare(none, none).uncompared == "nothing was compared: N and N have no report"
    assert compare(a, none).uncompared == "nothing was compared: N has no report"
    assert compare(none, a).uncompared == "nothing to compare with: N has no report, and what A has is new"
    gone = side(name="G", failures=[{"entry": "m:a()", "target": "h100", "kind": "absent", "message": "no a"}])
    assert compare(a, gone).uncompared == "nothing to compare with: what A has is gone, and G has no report"
    assert [compare(*pair).is_gone for pair in ((a, gone), (gone, a), (a, none), (a, b), (gone, gone))] == [True] + [
        False
    ] * 4
    assert [compare(*pair).is_new for pair in ((none, a), (a, none), (a, b), (a, a), (none, none))] == [True] + [
        False
    ] * 4


def test_nothing_in_common_is_nothing_compared() -> None:
    assert not compare(side(report("m:a()")), side(report("m:b()"))).compared
    assert not compare(side(), side()).compared
    assert not compare(side(report()), side(report(target="v5e"))).compared
    assert not compare(side(errors=["m:a does not compile"]), side(report("m:a()"))).compared
    assert compare(ran_side(), ran_side()).compared


def test_versions_that_differ_are_told() -> None:
    older = {"jax": "0.9.2", "jaxlib": "0.9.2"}
    diff = compare(side(report(versions=older)), side(report()))
    assert diff.versions == {"jax": ("0.9.2", "0.10.2"), "jaxlib": ("0.9.2", "0.10.2")}
    assert compare(side(report()), side(report())).versions == {}


# Barriers


def test_a_line_that_only_moved_is_no_change() -> None:
    assert changes(barriers(barrier(line=15)), barriers(barrier(line=90))) == ()


def test_a_line_that_was_edited_is_one_barrier_gone_and_one_that_appeared() -> None:
    appeared, gone = changes(barriers(barrier(OTHER)), barriers(barrier()))
    assert (appeared.word, appeared.shown.text) == ("appeared", LINE)
    assert (gone.word, gone.shown.text) == ("gone", OTHER)


def test_the_same_text_in_another_file_is_another_line() -> None:
    there = barrier(location={"path": "/repo/other.py", "line": 15, "function": "f"})
    assert [one.word for one in changes(barriers(barrier()), barriers(there))] == ["appeared", "gone"]


def test_another_reason_at_the_same_line_is_a_change_with_both() -> None:
    (one,) = changes(barriers(barrier(reason="then")), barriers(barrier(reason="now")))
    assert one.before is not None
    assert one.after is not None
    assert (one.word, one.before.reasons, one.after.reasons) == ("changed", ("then",), ("now",))


def test_another_cause_at_the_same_line_is_a_change_too() -> None:
    (one,) = changes(barriers(barrier(cause="cost model")), barriers(barrier(line=16)))
    assert one.before is not None
    assert (one.word, one.before.cause, one.shown.cause) == ("changed", "cost model", "concatenate")


def test_one_more_at_the_same_line_is_a_change() -> None:
    (one,) = changes(barriers(barrier()), barriers(barrier(), barrier(writer="fusion.2")))
    assert (one.word, one.shown.count) == ("changed", 2)


def test_lines_whose_text_is_not_known_are_matched_by_their_number() -> None:
    for before in (barrier(None), barrier()):
        assert changes(barriers(before), barriers(barrier(None))) == ()
        assert [one.word for one in changes(barriers(before), barriers(barrier(None, 16)))] == ["appeared", "gone"]


def test_a_value_without_a_line_is_known_by_what_it_is_made_of() -> None:
    sort = barrier(None, location=None, opcodes=["sort"])
    copy = barrier(None, location=None, opcodes=["copy"])
    assert changes(barriers(sort), barriers(sort)) == ()
    assert [one.word for one in changes(barriers(sort), barriers(copy))] == ["appeared", "gone"]


def test_bytes_alone_are_a_change_only_where_the_arguments_are_the_same() -> None:
    assert [one.word for one in changes(barriers(barrier()), barriers(barrier(bytes=64)))] == ["changed"]
    before, after = side(report("m:f(f32[8])", barrier())), side(report("m:f(f32[16])", barrier(bytes=64)))
    assert compare(before, after).functions[0].programs[0].barriers == ()
