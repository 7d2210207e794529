"""explain_page(): which line went into which kernel, as one page of HTML that needs nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusionlint.cli import main
from fusionlint.explained import ExplainedBarrier, Report, Totals
from fusionlint.hlo.barriers import Barrier
from fusionlint.hlo.kernels import Kernel, Loop
from fusionlint.hlo.parse import Frame
from fusionlint.hlo.verdicts import Verdict
from fusionlint.report.explain_page import explain_page
from fusionlint.report.fusion_map import Span, fusion_map
from fusionlint.stages import Removed, Stages

SOURCE = """import jax.numpy as jnp

def push(x):
    return x < 1 & 2

def step(x, v):
    y = push(x)
    new = jnp.stack([y, v], axis=1)
    return new * 2
"""
LOOP = Loop("while", "main", 10, None, Frame("env.py", 9), 2, 1)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "env.py"
    path.write_text(SOURCE)
    return str(path)


def kernel(name: str, kind: str, microseconds: float, loop: str | None = None) -> Kernel:
    launches = 10 if loop else 1
    return Kernel(name, "main", kind, ("add",), launches, loop, False, 32, 32, (), microseconds=microseconds)


def stacked(path: str) -> Barrier:
    frame = Frame(path, 8, 11, 8, 36, "step")
    verdict = Verdict("stack", "tuple", "Concatenate fusion is inefficient.")
    return Barrier(
        "stack", "main", "second", ("third",), 64, 10, False, 10, "concatenate", "", ("concatenate",), verdict, (frame,)
    )


def report(path: str, *kernels: Kernel, barriers: tuple[Barrier, ...] = ()) -> Report:
    """`push` and `step` went into the first kernel, the stack into the second; the third is a copy without a line."""
    return Report(
        entry="env.py:step(f32[8] & <f>)",
        target="h100",
        versions={"jax": "0.10.2"},
        compile_seconds=0.5,
        totals=Totals(30, 0, 1920, 0, 30.0, None, ("XLA's model",)),
        kernels=kernels,
        loops=(LOOP,),
        barriers=tuple(ExplainedBarrier(one, "columns-of-a-stack", "keep the parts apart") for one in barriers),
        stages=Stages({}, {}, {}, {}, {"loop": 3}, Removed(0, 0, 0, 0, 0, 0)),
        lines_of_kernels={"first": {path: ((4, 4), (7, 7))}, "second": {path: ((8, 8),)}},
        written_in={"first": {path: ((4, 4),)}, "second": {path: ((8, 8),)}},
    )


def small(path: str) -> Report:
    kernels = (kernel("first", "loop", 1.0), kernel("second", "input", 2.0, "while"), kernel("third", "copy", 1.0))
    return report(path, *kernels, barriers=(stacked(path),))


def body(page: str) -> ET.Element:
    """What stands between the tags is well-formed, or this raises."""
    return ET.fromstring(page[page.index("<body>") : page.index("<script>")] + "</body>")


def rows_of(page: str) -> dict[str, ET.Element]:
    """The rows with code, by the line's number, and in each cell of a kernel its name, as the place says it."""
    names: list[str] = []
    rows = {}
    for row in body(page).iter("tr"):
        if row.get("class") == "bars":
            names = [cell.get("data-kernel", "") for cell in row[1:-1]]
        if row[-1].get("class") == "code":
            rows[row[0].text or ""] = row
            for name, cell in zip(names, row[1:-1], strict=True):
                cell.set("kernel", name)
    return rows


def marked(row: ET.Element) -> dict[str, str]:
    """The kernels with a mark in a row, and the mark's classes."""
    cells = ((cell.get("kernel"), cell.find("i")) for cell in row)
    return {name: mark.get("class", "") for name, mark in cells if name and mark is not None}


def test_a_line_stands_in_the_columns_of_the_kernels_that_it_went_into(file: str) -> None:
    rows = rows_of(explain_page([small(file)]))
    assert marked(rows["4"]) == {"first": "written loop-fusion"}
    assert marked(rows["7"]) == {"first": "called loop-fusion"}
    assert marked(rows["8"]) == {"second": "written out input-fusion"}
    assert marked(rows["9"]) == {}
    assert [*rows["8"][-1].itertext()] == ["    new = ", "jnp.stack([y, v], axis=1)"]


def test_what_a_barrier_is_about_is_underlined_behind_letters_of_several_bytes(file: str) -> None:
    Path(file).write_text(SOURCE.replace("    new =", "    größe ="), encoding="utf-8")
    frame = Frame(file, 8, 15, 8, 40, "step")  # as Python counts
    barrier = ExplainedBarrier(replace(stacked(file), stack=(frame,)), "", "")
    row = rows_of(explain_page([replace(small(file), barriers=(barrier,))]))["8"]
    assert [*row[-1].itertext()] == ["    größe = ", "jnp.stack([y, v], axis=1)"]


def test_a_kernel_without_a_line_stands_where_the_value_is_made_that_it_moves(file: str) -> None:
    copied = replace(stacked(file), writer="third", readers=("first",), cause="copy")
    page = explain_page([replace(small(file), barriers=(ExplainedBarrier(copied, "", ""),))])
    assert marked(rows_of(page)["8"]) == {"second": "written input-fusion", "third": "called out copy"}


def test_what_is_said_of_a_barrier_stands_below_its_line(file: str) -> None:
    rows = [*body(explain_page([small(file)])).iter("tr")]
    place = next(i for i, row in enumerate(rows) if row[0].text == "8")
    assert rows[place].get("class") == "barrier"
    details = rows[place + 1].find(".//details")
    assert details is not None
    assert (details.get("data-writers"), details.get("data-readers")) == ("second", "third")
    text = "\n".join(details.itertext())
    assert "1. concatenate" in text
    assert "XLA: Concatenate fusion is inefficient." in text
    assert "columns-of-a-stack: keep the parts apart" in text


def test_a_barrier_of_a_lines_gradient_says_so_below_the_line(file: str) -> None:
    of_gradient = replace(stacked(file), of_gradient=True)
    page = explain_page([replace(small(file), barriers=(ExplainedBarrier(of_gradient, "", ""),))])
    assert "in the gradient of step" in "\n".join(body(page).itertext())
    assert "gradient" not in "\n".join(body(explain_page([small(file)])).itertext())


def test_a_barrier_without_a_line_is_said_below_the_map(file: str) -> None:
    nowhere = replace(stacked(file), stack=())
    section = body(explain_page([replace(small(file), barriers=(ExplainedBarrier(nowhere, "", ""),))])).find("section")
    assert section is not None
    assert (section[-2].tag, section[-2].text) == ("h2", "no source line known (%stack)")
    assert section[-1].tag == "details"


def test_loops_stand_above_the_columns_of_what_they_hold() -> None:
    inner = replace(LOOP, name="inner", parent="while", trip_count=None, frame=None)
    kernels = (
        kernel("first", "loop", 1.0),
        kernel("second", "loop", 1.0, "while"),
        kernel("third", "copy", 1, "inner"),
    )
    found = fusion_map(replace(report("env.py", *kernels), loops=(LOOP, inner)))
    assert found.spans == (Span(1, 2, 0, LOOP), Span(2, 2, 1, inner))


def turns_of(page: str) -> list[tuple[str | None, ...]]:
    found = (cell for cell in body(page).iter("th") if "turns" in cell.get("class", ""))
    return [("".join(one.itertext()), one.get("class"), one.get("title"), one.get("colspan")) for one in found]


def test_a_loops_turns_are_said_with_its_line(file: str) -> None:
    few = replace(small(file), loops=(replace(LOOP, trip_count=7),))
    assert turns_of(explain_page([few])) == [("7×", "turns", "7 times, line 9", "1")]


def test_turns_that_are_longer_than_their_columns_stand_upright(file: str) -> None:
    assert turns_of(explain_page([small(file)])) == [("10×", "turns upright", "10 times, line 9", "1")]
    kernels = (kernel("first", "loop", 1.0, "while"), kernel("second", "loop", 1.0, "while"))
    both = explain_page([report(file, *kernels)])
    assert turns_of(both) == [("10×", "turns", "10 times, line 9", "2")]


def test_a_column_names_its_kernel_once(file: str) -> None:
    assert explain_page([report(file, *small(file).kernels)]).count("second") == 2  # its name, and what is told of it


def test_of_many_kernels_the_dearest_have_columns_in_the_order_of_their_launches(file: str) -> None:
    kernels = [kernel(f"k{i}", "loop", float(i % 7)) for i in range(20)]
    found = fusion_map(report(file, *kernels), most=4)
    assert [column.number for column in found.columns] == [6, 7, 13, 14]
    assert found.left_out == 16
    assert sum(column.share for column in found.columns) == pytest.approx((5 + 6 + 5 + 6) / (2 * 21 + 15))


def test_where_nothing_is_known_about_the_time_bytes_count(file: str) -> None:
    untimed = [replace(kernel(name, "loop", 0), microseconds=None) for name in ("first", "second")]
    shares = [column.share for column in fusion_map(report(file, untimed[0], replace(untimed[1], launches=3))).columns]
    assert shares == [0.25, 0.75]


def said_of_columns(page: str) -> str:
    legend, bars = body(page).find(".//p[@class='legend']"), body(page).find(".//tr[@class='bars']")
    assert legend is not None
    assert bars is not None
    return "\n".join(("".join(legend.itertext()), *(cell.get("title", "") for cell in bars)))


def test_what_the_height_of_a_column_means_is_said(file: str) -> None:
    untimed = [replace(one, microseconds=None) for one in small(file).kernels]
    timed, moved = map(said_of_columns, (explain_page([small(file)]), explain_page([report(file, *untimed)])))
    assert "as high as it takes long;" in timed
    assert "91 % of the time" in timed
    assert "as high as it moves bytes;" in moved
    assert "83 % of the bytes" in moved


def test_of_a_loop_of_unknown_length_one_iteration_counts(file: str) -> None:
    first, again, *_ = small(file).kernels
    page = explain_page([report(file, first, replace(again, launches=1, per_iteration=True))])
    assert "as high as it takes long in one iteration of a loop of unknown length;" in said_of_columns(page)


def test_the_users_own_files_come_before_those_of_libraries(file: str, tmp_path: Path) -> None:
    theirs = str(tmp_path / "site-packages" / "optax" / "update.py")
    lines = {"first": {theirs: ((1, 1),), file: ((4, 4),)}, "second": {theirs: ((1, 1),)}}
    found = fusion_map(replace(small(file), written_in=lines, lines_of_kernels=lines))
    assert [(one.path, one.installed) for one in found.files] == [(file, False), (theirs, True)]


def test_of_a_file_that_is_not_there_the_lines_are_empty() -> None:
    page = explain_page([small("/gone/env.py")])
    (name,) = body(page).iterfind(".//tr[@class='file']/th")
    assert name.text == "/gone/env.py (its text is not here)"
    rows = rows_of(page)
    assert marked(rows["4"]) == {"first": "written loop-fusion"}
    assert rows["4"][-1].text is None


def test_a_barrier_at_the_end_of_a_file_that_is_not_there_is_said(file: str) -> None:
    copied = replace(stacked("/gone/env.py"), writer="third", stack=(Frame("/gone/env.py", 10),))
    page = explain_page([replace(small("/gone/env.py"), barriers=(ExplainedBarrier(copied, "", ""),))])
    assert marked(rows_of(page)["10"]) == {"third": "called out copy"}
    assert body(page).find(".//details") is not None


def test_the_page_needs_nothing_else_and_everything_is_escaped(file: str) -> None:
    page = explain_page([small(file)], ["a <b> failed"], text="ran & <compiled>")
    assert not re.search(r"https?:|src=|@import|url\(", page)
    text = "\n".join(body(page).itertext())
    for said in ("env.py:step(f32[8] & <f>) on h100", "return x < 1 & 2", "a <b> failed", "ran & <compiled>"):
        assert said in text


def test_the_page_is_the_same_in_every_encoding_and_holds_what_is_no_text(file: str) -> None:
    Path(file).write_text(SOURCE.replace("new", "größe"), encoding="utf-8")
    page = explain_page([replace(small(file), entry="a\x1b[1m\x00\udcff.py:step")], ["\x0c failed"])
    assert page.isascii()
    assert "größe = " in "".join(rows_of(page)["8"][-1].itertext())
    assert "a\ufffd[1m\ufffd\ufffd.py:step on h100" in "\n".join(body(page).itertext())


def test_the_title_says_what_is_explained(file: str) -> None:
    v5e = replace(small(file), target="v5e")
    assert "<title>fusionlint explain env.py:step(f32[8] &amp; &lt;f&gt;)</title>" in explain_page([small(file), v5e])


def test_several_reports_have_a_table_of_their_totals(file: str) -> None:
    found = body(explain_page([small(file), replace(small(file), target="v5e")]))
    table = found.find("table[@class='totals']")
    assert table is not None
    assert [[*row[1].itertext()] for row in table[1:]] == [["h100"], ["v5e"]]
    assert [link.get("href") for link in table.iter("a")] == ["#r0", "#r1"]
    assert [one.get("id") for one in found.iter("section")] == ["r0", "r1"]


def test_the_table_of_totals_has_those_per_iteration_too(file: str) -> None:
    again = replace(small(file), totals=Totals(30, 4, 1920, 512, 30.0, 2.5, ("XLA's model",)))
    bytes_alone = replace(small(file), totals=Totals(30, 4, 1920, 512))
    table = body(explain_page([again, bytes_alone])).find("table[@class='totals']")
    assert table is not None
    counts = ["30 + 4 per iteration", "1.9 kB + 512 B per iteration"]
    assert [cell.text for cell in table[1][2:5]] == [*counts, "30 us + 2.5 us per iteration"]
    assert [cell.text or "" for cell in table[2][2:5]] == [*counts, ""]


def test_a_program_that_launches_nothing_has_no_map() -> None:
    found = body(explain_page([replace(report("env.py"), totals=Totals(0, 0, 0, 0))]))
    assert found.find(".//table") is None
    assert "0 launches, 0 B; compiled in 0.5 s" in "\n".join(found.itertext())


PROGRAM = """
import jax
import jax.numpy as jnp

@jax.jit
def step(x):
    return jnp.sort(x) * 2

if __name__ == "__main__":
    step(jnp.ones(8))
"""


def test_explain_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text(PROGRAM)
    done = CliRunner().invoke(
        main, ["explain", "fit.py:step(f32[8])", "fit.py:gone(f32[8])", "--target", "cpu", "--output-format", "html"]
    )
    assert done.exit_code == 2
    assert "sort" in rows_of(done.stdout)["7"].find(".//u").text  # type: ignore[union-attr]
    assert "gone" in body(done.stdout).find("p[@class='error']").text  # type: ignore[operator, union-attr]


@pytest.mark.compilers  # a program without JAX_PLATFORMS meets those that are installed
def test_run_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text(PROGRAM)
    done = CliRunner().invoke(main, ["run", "--output-format", "html", "--output", "told.html", "fit.py"])
    assert done.exit_code == 0, done.output
    page = Path("told.html").read_text()
    assert "fit.py compiled 1 function 1 time" in (body(page)[0].text or "")
    assert "7" in rows_of(page)
