"""The kernels of a program for a GPU are what XLA says it launches: saved dumps, and everything that compiles here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from launching import FUNCTIONS, NAMES, VARIANTS, compiled

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.explained import Report, explain
from fusionlint.hlo.kernels import Kernel, Loop
from fusionlint.hlo.thunks import Thunk, as_launched, host_launches, launches, one_by_one, read_thunks

pytestmark = pytest.mark.compilers

DUMPS = Path(__file__).parent / "dumps"


def saved(name: str) -> Artifacts:
    return Artifacts(DUMPS / name, name, "h100")


def thunks_of(artifacts: Artifacts) -> tuple[Thunk, ...]:
    sequence = artifacts.dumped("*.thunk_sequence_after_thunk_passes.txt") or artifacts.dumped("*.thunk_sequence.txt")
    assert sequence
    return read_thunks(sequence, artifacts.dumped("*.thunk_metadata.txt"))


def by_xla(artifacts: Artifacts, report: Report) -> list[tuple[object, ...]]:
    """Every launch by XLA's account: the instruction, its innermost loop, its branches, its CUDA graph."""
    loops = {loop.name for loop in report.loops}
    return [
        (
            thunk.instruction,
            next((name for name, _ in reversed(thunk.inside) if name in loops), None),
            tuple(name for name, _ in thunk.inside if name not in loops),
            thunk.graph,
            thunk.kind == "kCopy",
        )
        for thunk in launches(thunks_of(artifacts), report.loops)
    ]


def by_us(report: Report, every: tuple[Kernel, ...]) -> list[tuple[object, ...]]:
    return [
        (kernel.name, kernel.loop, tuple(name for name, _ in kernel.branches), kernel.graph, kernel.kind == "copy")
        for kernel in every
    ]


@pytest.mark.parametrize("name", ["scan", "branch"])
def test_a_saved_dump_launches_what_its_thunks_say(name: str) -> None:
    report = explain(saved(name))
    expected = by_xla(saved(name), report)
    # A slice copied inside a fusion is that fusion's own launch.
    assert [launch[:4] for launch in by_us(report, report.kernels)] == [launch[:4] for launch in expected]


@pytest.mark.parametrize("name", NAMES)
def test_kernels_equal_the_thunk_sequence_on_h100(name: str) -> None:
    artifacts = compiled("h100")[name]
    report = explain(artifacts)
    assert [launch[:4] for launch in by_us(report, report.kernels)] == [
        launch[:4] for launch in by_xla(artifacts, report)
    ]


def test_an_unlike_kernel_list_is_told_apart_from_the_thunks() -> None:
    """The comparison above can fail: without the copy before the sort, it does."""
    report = explain(saved("branch"))
    kernels = tuple(kernel for kernel in report.kernels if kernel.kind != "copy")
    assert by_us(report, kernels) != by_us(report, report.kernels)
    assert len(by_us(report, kernels)) == len(by_xla(saved("branch"), report)) - 1


def test_a_sort_that_may_not_overwrite_its_operand_copies_it_first() -> None:
    report = explain(saved("branch"))
    copy, sort = [kernel for kernel in report.kernels if kernel.name == "fusion"]
    assert copy.kind == "copy"
    assert "sort" in sort.opcodes
    assert copy.bytes_read == copy.bytes_written == sort.bytes_written
    assert copy.branches == sort.branches


def test_a_fusion_that_a_copy_is_launched_for_is_that_copy_and_no_other() -> None:
    """It was told twice: as the copy, and as the fusion behind it."""
    every = explain(compiled("h100")["first_row"]).kernels
    assert [(kernel.kind, kernel.launches) for kernel in every if kernel.name.startswith("wrapped_slice")] == [
        ("copy", 1)
    ]


def test_copies_before_sorts_count_in_their_loop() -> None:
    report = explain(compiled("h100")["sorts_in_a_loop"])
    (loop,) = report.loops
    inside = sum(kernel.launches for kernel in report.kernels if kernel.loop == loop.name)
    assert loop.launches_per_iteration * 30 == inside
    assert report.totals.launches == sum(kernel.launches for kernel in report.kernels)


def test_the_condition_of_a_loop_runs_only_where_its_length_is_unknown() -> None:
    until = compiled("h100")["until"]
    parts = [thunk.inside[-1][1] for thunk in launches(thunks_of(until), explain(until).loops) if thunk.inside]
    assert parts.count("condition") == 2
    scan = saved("scan")
    assert {thunk.inside[-1][1] for thunk in launches(thunks_of(scan), explain(scan).loops) if thunk.inside} == {"body"}
    assert any(thunk.inside and thunk.inside[-1][1] == "condition" for thunk in thunks_of(scan))


def test_what_a_cuda_graph_holds_is_known() -> None:
    report = explain(saved("scan"))
    graphs = [kernel.graph for kernel in report.kernels]
    assert graphs == [0] * 5 + [None] * 7


def test_two_cuda_graphs_are_two_though_xla_numbers_both_alike() -> None:
    sequence = (
        "000: kCommandBuffer [source       | next=003 (1)] \n"
        "    001: kCustomKernel [source       | sink        ] a grid: [1, 1, 1]\n"
        "    002: kCustomKernel [source       | sink        ] b grid: [1, 1, 1]\n"
        "003: kGemm          [prev=000 (1) | next=000 (1)] \n"
        "000: kCommandBuffer [prev=003 (1) | sink        ] \n"
        "    004: kCustomKernel [source       | sink        ] c grid: [1, 1, 1]\n"
    )
    assert [(thunk.number, thunk.graph) for thunk in launches(read_thunks(sequence, ""), ())] == [
        (1, 0),
        (2, 0),
        (3, None),
        (4, 1),
    ]


def test_a_slice_fusion_is_one_launch_with_what_it_wraps() -> None:
    thunks = thunks_of(saved("scan"))
    wrapped = [thunk for thunk in thunks if thunk.wrapped]
    assert len(wrapped) == 2
    assert not any(thunk in wrapped for thunk in launches(thunks, ()))


def test_the_first_thunk_of_a_sequence_stands_on_the_sequences_own_line() -> None:
    sequence = (
        "005: kSequential   [source | sink]   003: kCopy            [source       | next=004 (1)] kCopy\n"
        "  004: kTriangularSolve [prev=003 (1) | sink        ] (no description)\n"
        "006: kCustomKernel [prev=005 (1) | sink        ] f grid: [1, 1, 1]\n"
    )
    thunks = read_thunks(sequence, "")
    assert [(thunk.number, thunk.kind) for thunk in launches(thunks, ())] == [
        (3, "kCopy"),
        (4, "kTriangularSolve"),
        (6, "kCustomKernel"),
    ]


def test_without_thunks_the_kernels_stay_as_they_are() -> None:
    every = tuple(replace(kernel, graph=None) for kernel in explain(saved("scan")).kernels)
    assert as_launched(every, ()) == every


def test_functions_and_variants_are_all_compiled() -> None:
    assert set(compiled("h100")) == set(FUNCTIONS) | set(VARIANTS)


def test_the_host_launches_a_graph_once_for_all_that_is_in_it() -> None:
    def kernel(name: str, launches: int, graph: int | None) -> Kernel:
        return Kernel(name, "main", "loop", ("add",), launches, None, False, 0, 0, (), graph=graph)

    every = [kernel("a", 1, 3), kernel("b", 1, 3), kernel("c", 1, None), kernel("d", 10, 7), kernel("e", 10, 7)]
    assert host_launches(every) == 1 + 1 + 10


@pytest.mark.parametrize(
    ("kinds", "graph", "expected"),
    [
        (("loop", "copy"), None, [2]),
        (("loop", "input", "loop", "copy"), None, [4]),
        (("loop",), None, []),  # one launch is one
        (("loop",) * 5, None, []),  # enough for a graph: something keeps them from it
        (("loop", "loop"), 3, []),
        (("loop", "library call"), None, []),
    ],
)
def test_a_step_is_launched_one_by_one_where_it_is_too_short_for_a_graph(
    kinds: tuple[str, ...], graph: int | None, expected: list[int]
) -> None:
    outer, inner = (
        Loop(name, "main", 10, parent, None, 1, 0) for name, parent in (("outer", None), ("inner", "outer"))
    )
    every = [
        Kernel(str(number), "main", kind, ("add",), 100, "inner", False, 0, 0, (), graph=graph)
        for number, kind in enumerate(kinds)
    ]
    # What the outer loop does besides is not its step alone.
    every += [Kernel(name, "main", "loop", ("add",), 10, "outer", False, 0, 0, ()) for name in ("a", "b")]
    assert [*one_by_one(every, [outer, inner])] == expected
