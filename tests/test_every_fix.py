"""Every fix, alone, in every page and in real projects: the file still parses, keeps each byte outside the edits,
loses the finding, gains none, and (where a page says how to call it) computes the same.

`FUSIONLINT_CORPUS=FOLDER[:FOLDER...]` names further folders whose projects are tried too.
"""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import libcst as cst
import measuring
import pytest
from projects import Checked

from fusionlint.compiling import counting
from fusionlint.finding import Edit, Finding
from fusionlint.page import Block
from fusionlint.rule import all_rules, page
from fusionlint.source.check import check_files, world_of
from fusionlint.source.files import python_files
from fusionlint.source.fix import apply, split_lines
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import World, join

EVERYTHING = Scope(tuple(rule.name for rule in all_rules()))


@dataclass(frozen=True)
class Case:
    """One finding with a fix, and the text that it stands in."""

    path: str
    text: str
    finding: Finding
    before: tuple[Finding, ...]
    world: World

    @property
    def edits(self) -> tuple[Edit, ...]:
        assert self.finding.suggestion is not None
        return self.finding.suggestion.edits

    @property
    def fixed(self) -> str:
        return apply(self.text, self.edits)


def cases_in(found: tuple[Finding, ...], path: str, text: str, world: World) -> Iterator[Case]:
    for finding in found:
        if finding.suggestion and finding.suggestion.edits:
            yield Case(path, text, finding, found, world)


def assert_the_file_is_whole(case: Case) -> None:
    ast.parse(case.fixed)
    assert cst.parse_module(case.fixed).code == case.fixed
    assert pieces_around(case) == pieces_of_the_fixed(case)


def pieces_around(case: Case) -> list[str]:
    """What stands before, between and after the edits, cut out line by line: not as `apply` finds it."""
    lines = split_lines(case.text)
    pieces, line, column = [], 1, 1
    for edit in sorted(case.edits, key=lambda e: e.location):
        where = edit.location
        pieces.append(cut(lines, (line, column), (where.line, where.column)))
        line, column = where.end_line, where.end_column
    return [*pieces, cut(lines, (line, column), (len(lines) + 1, 1))]


def cut(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    whole = [text for number, text in enumerate(lines, 1) if start[0] < number < end[0]]
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] - 1 : end[1] - 1]
    first = lines[start[0] - 1][start[1] - 1 :] if start[0] <= len(lines) else ""
    last = lines[end[0] - 1][: end[1] - 1] if end[0] <= len(lines) else ""
    return first + "".join(whole) + last


def pieces_of_the_fixed(case: Case) -> list[str]:
    """The same pieces of the fixed text: what is left where each edit's new text is taken out in turn."""
    pieces, rest = [], case.fixed
    around = pieces_around(case)
    for piece, edit in zip(around, sorted(case.edits, key=lambda e: e.location), strict=False):
        assert rest.startswith(piece + edit.text)
        pieces.append(rest[: len(piece)])
        rest = rest[len(piece) + len(edit.text) :]
    return [*pieces, rest]


def assert_only_its_finding_goes(case: Case) -> None:
    after = check_text(case.fixed.encode(), case.path, EVERYTHING, case.world)
    before, left = Counter(f.rule for f in case.before), Counter(f.rule for f in after)
    assert left[case.finding.rule] < before[case.finding.rule]
    assert not left - before


@cache
def cases_of(name: str) -> list[tuple[Block, Case]]:
    """The fixes of a page, each with the block that it stands in: found when a test asks, for each process that runs
    some of the tests collects all of them."""
    world, cases = join({}), []
    for block in (pair.bad for pair in page(name).pairs):
        found = check_text(block.code.encode(), "example.py", EVERYTHING, world)
        cases += [(block, case) for case in cases_in(found, "example.py", block.code, world)]
    return cases


of_every_page = pytest.mark.parametrize("name", EVERYTHING.rules)


@of_every_page
def test_a_page_with_one_fix_made_is_whole_and_without_its_finding(name: str) -> None:
    cases = cases_of(name)
    if not cases:
        pytest.skip("no fix is made on this page")
    for _, case in cases:
        assert_the_file_is_whole(case)
        assert_only_its_finding_goes(case)


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """By page, how what each fixed block computes differs from what the block did, None where it does not. Of what a
    page does not say how to call nothing is known."""
    folder = tmp_path_factory.mktemp("fixed")
    items = [item for item in request.session.items if "differences" in getattr(item, "fixturenames", ())]
    names = [item.callspec.params["name"] for item in items]
    chosen = [(name, block, case) for name in names for block, case in cases_of(name) if block.spec]
    tasks = []
    for i, (name, block, case) in enumerate(chosen):
        bad, fixed = folder / f"bad_{i}.py", folder / f"fixed_{i}.py"
        bad.write_text(block.code)
        fixed.write_text(case.fixed)
        alike = next(pair.good.role for pair in page(name).pairs if pair.bad is block) != "good"
        tasks.append(counting.agreeing_job(bad, fixed, measuring.call_of(block), in_distribution=alike))
    found: dict[str, list[object]] = defaultdict(list)
    for (name, *_), said in zip(chosen, counting.agree_many(tasks), strict=True):
        found[name].append(said)
    return dict(found)


@of_every_page
def test_a_page_with_one_fix_made_computes_the_same(name: str, differences: dict[str, list[object]]) -> None:
    if name not in differences:
        pytest.skip("no fix is made on this page where it says how to call what is fixed")
    assert [said for said in differences[name] if said is not None] == []


def test_a_project_with_one_fix_made_is_whole_and_without_its_finding(checked: Checked) -> None:
    said = json.loads(checked.done.stdout)["findings"]
    if not any(finding["suggestion"] and finding["suggestion"]["edits"] for finding in said):
        return  # what another process was told is not found again: it takes half a minute for some
    # One process: jax, which other tests import, warns of forks.
    files = python_files([checked.folder], ())
    result, world = check_files(files, EVERYTHING, jobs=1), world_of(files)
    for path in sorted({f.location.path for f in result.findings}):
        found = tuple(f for f in result.findings if f.location.path == path)
        data = Path(path).read_bytes()
        if cst.parse_module(data).bytes != data or not data.isascii():
            continue  # test_fix.py has files with marks, form feeds and other encodings
        for case in cases_in(found, path, data.decode(), world):
            assert_the_file_is_whole(case)
            assert_only_its_finding_goes(case)
