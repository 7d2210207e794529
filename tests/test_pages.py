"""Every page of rules/ is run: its findings, its silence, its fixes, its equality and its numbers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import compilers
import libcst as cst
import measuring
import pytest

from fusionlint.compiling import counting, targets
from fusionlint.explained import explain
from fusionlint.page import Block, Page, pages_folder
from fusionlint.rule import all_rules, page
from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

RULES = tuple(rule.name for rule in all_rules())
EVERYTHING = Scope(RULES)
PAGES = [page(name) for name in RULES]
# Of each rule the pairs of its page that its sensor of compiled programs knows, by their number, and where.
KNOWN = {
    "argmax-then-pick": {0: "gc", 1: "gc"},
    "argsort-then-gather": {0: "c", 2: "c"},
    "arithmetic-by-at": {0: "gtc", 1: "gt", 2: "t", 3: "gc"},
    "at-set-by-mask": {0: "gc", 1: "gc"},
    "blocks-by-at-set": {0: "gtc", 1: "gtc"},
    "boundary-writes": {0: "gtc", 2: "t"},
    "chained-at-set": {0: "gtc", 1: "gtc", 2: "g", 3: "gc"},
    "choice-without-replacement": {0: "gc", 1: "gc"},
    "chosen-at-set": {0: "gc"},
    "columns-by-at-set": {0: "gtc"},
    "complex-fft-of-real": {0: "gc", 1: "gc"},
    "cond-around-a-write": {0: "gt"},
    "cond-for-where": {0: "tc", 1: "tc", 3: "gt", 4: "tc"},
    "cumsum-of-one-hot": {0: "gc"},
    "diag-then-matmul": {0: "gc", 1: "gc"},
    "draws-one-by-one": {0: "gtc", 1: "gtc"},
    "dynamic-program-without-unroll": {0: "g", 1: "g", 2: "g"},
    "factored-in-two-ways": {0: "gtc", 1: "gtc"},
    "factored-twice": {0: "gc", 1: "gc", 2: "gc", 3: "gtc", 4: "gtc"},
    "ffts-one-by-one": {0: "gc"},
    "flip-around-scan": {0: "gc"},
    "fori-loop-without-unroll": {3: "gt"},
    "grid-per-element": {0: "gc", 1: "g"},
    "independent-permutation": {0: "gtc"},
    "insert-by-scatter": {0: "gc", 1: "gc", 2: "gc"},
    "inverse-then-matmul": {1: "gc", 2: "gtc"},
    "lax-map-for-vmap": {0: "gt", 1: "gt", 2: "gt"},
    "log-softmax-then-pick": {0: "gc"},
    "logsumexp-of-two": {0: "gtc", 1: "gtc"},
    "networks-one-by-one": {0: "gt"},
    "nonzero-as-mask": {0: "gc", 3: "gc"},
    "one-hot-by-at-set": {0: "gc", 3: "gc"},
    "one-hot-in-carry": {0: "gc"},
    "one-hot-matmul": {0: "gc", 2: "gc"},
    "pairwise-loop": {0: "gtc"},
    "roll-then-set": {0: "gtc", 1: "tc", 2: "t"},
    "rope-by-copies": {0: "tc"},
    "rows-one-by-one": {0: "tc", 2: "gtc"},
    "scalar-loop": {0: "gtc"},
    "scan-without-unroll": {1: "gt", 2: "gt", 3: "gt"},
    "segments-one-by-one": {0: "gtc", 1: "tc"},
    "select-or-piecewise": {0: "gtc", 1: "gtc"},
    "small-linear-algebra": {0: "gtc", 3: "gtc"},
    "small-matmul": {0: "gc"},
    "solve-for-cholesky": {0: "gtc", 1: "gtc"},
    "triangle-indices-in-trace": {0: "gtc", 1: "gtc"},
    "vmapped-dynamic-slice": {0: "t", 1: "t", 2: "t", 3: "t"},
    "vmapped-roll": {0: "t", 2: "t"},
    "write-before-reduction": {0: "gc"},
    "write-in-fori-loop": {0: "gtc", 4: "gc"},
    "write-on-diagonal": {0: "gc", 2: "gc"},
}
LETTERS = {"g": "h100", "t": "v5e", "c": "cpu"}

of_every_page = pytest.mark.parametrize("name", RULES)


def of_blocks(*roles: str) -> pytest.MarkDecorator:
    found = [(p.name, block) for p in PAGES for block in p.blocks if block.role in roles]
    return pytest.mark.parametrize(("name", "block"), found, ids=[f"{name}:{block.line}" for name, block in found])


def findings(block: Block, rules: Scope = EVERYTHING) -> list[tuple[int, str]]:
    found = check_text(block.code.encode(), "example.py", rules)
    return [(f.location.line, f.rule) for f in found]


def imported(code: str) -> set[str]:
    """The packages that the code's import statements name, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=aliases):
                names.update(alias.name.split(".")[0] for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                names.add(module.split(".")[0])
    return names


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    assert {path.stem for path in pages_folder().glob("*.md")} == set(RULES)


@of_every_page
def test_page_is_short_and_named_like_its_rule(name: str) -> None:
    text = page(name).text
    assert text.startswith(f"# {name}\n")
    assert 30 <= len(text.splitlines()) <= 250


@of_every_page
def test_quiet_examples_outnumber_loud_ones(name: str) -> None:
    roles = [block.role for block in page(name).blocks]
    assert roles.count("bad") >= 1
    assert len(roles) - roles.count("bad") > roles.count("bad")
    assert set(roles) <= {"bad", "good", "good-in-distribution", "quiet"}


@of_blocks("bad")
def test_findings_of_a_bad_block_are_its_error_lines(name: str, block: Block) -> None:
    assert block.errors
    assert findings(block) == [(line, name) for line in block.errors]


@of_blocks("good", "good-in-distribution", "quiet")
def test_good_and_quiet_blocks_are_silent_under_every_rule(name: str, block: Block) -> None:
    cst.parse_module(block.code)
    assert findings(block) == []


@of_blocks("bad")
def test_what_the_fixes_leave_is_silent(name: str, block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(block.code)
    found = check_text(path.read_bytes(), str(path), EVERYTHING)
    fixable = sum(1 for f in found if f.suggestion and f.suggestion.edits)
    world = join({})
    fixed = fix_text(str(path), path.read_bytes(), found, EVERYTHING, world, unsafe=True)
    left = check_text(fixed.after, str(path), EVERYTHING)
    assert len(left) == len(found) - fixable
    assert fixed.count == fixable


@pytest.fixture(scope="session")
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future]]:
    """What is measured and what is compared, both at once: they wait for processes of their own. Only what the selected
    tests ask for is compiled."""
    with ThreadPoolExecutor(2) as pool:
        yield {
            fixture: pool.submit(function, selected(request, fixture), tmp_path_factory.mktemp(fixture))
            for fixture, function in (("measured", measure), ("unlike", compare))
        }


@pytest.fixture(scope="session")
def measured(begun: dict[str, Future]) -> dict:
    return begun["measured"].result()


@pytest.fixture(scope="session")
def unlike(begun: dict[str, Future]) -> dict:
    return begun["unlike"].result()


def selected(request: pytest.FixtureRequest, fixture: str) -> list[dict]:
    """The parameters of the selected tests that use the fixture."""
    return [item.callspec.params for item in request.session.items if fixture in getattr(item, "fixturenames", ())]


def measure(asked: list[dict], folder: Path) -> dict:
    cells = [(given["name"], given["number"], given["target"]) for given in asked]
    return measuring.measure({cell: page(cell[0]).pairs[cell[1]] for cell in cells}, folder)


def compare(asked: list[dict], folder: Path) -> dict:
    """(page, pair) -> how the results of its two forms differ, None where they agree."""
    keys = [(given["name"], given["number"]) for given in asked]
    tasks = []
    for i, (name, number) in enumerate(keys):
        pair = page(name).pairs[number]
        bad = measuring.write_block(pair.bad, folder, f"bad_{i}")
        good = measuring.write_block(pair.good, folder, f"good_{i}")
        same = pair.good.role == "good"
        tasks.append(counting.agreeing_job(bad, good, measuring.call_of(pair.bad), in_distribution=not same))
    return dict(zip(keys, counting.agree_many(tasks), strict=True))


def of_pairs() -> pytest.MarkDecorator:
    found = [(p.name, i) for p in PAGES for i, pair in enumerate(p.pairs) if pair.bad.spec]
    return pytest.mark.parametrize(("name", "number"), found, ids=[f"{name}:{i}" for name, i in found])


def cells() -> Iterator[measuring.Cell]:
    for p in PAGES:
        for i, pair in enumerate(p.pairs):
            if pair.bad.spec:
                yield from ((p.name, i, target) for target in measuring.targets_of(pair))


def known_cells() -> Iterator[measuring.Cell]:
    for name, pairs in KNOWN.items():
        yield from ((name, number, LETTERS[letter]) for number, where in pairs.items() for letter in where)


def of(found: Iterable[measuring.Cell]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("name", "number", "target"),
        [pytest.param(*cell, id=":".join(map(str, cell)), marks=compilers.needed(cell[2])) for cell in found],
    )


@of_pairs()
def test_what_is_measured_imports_nothing_beyond_the_core_install(name: str, number: int) -> None:
    pair = page(name).pairs[number]
    assert imported(pair.bad.code) | imported(pair.good.code) <= {"jax", "numpy", *sys.stdlib_module_names}


@of_pairs()
def test_bad_and_good_compute_the_same(name: str, number: int, unlike: dict) -> None:
    assert unlike[name, number] is None


@of(cells())
def test_table_is_what_the_compiler_says(
    name: str, number: int, target: str, measured: dict, update_pages: bool
) -> None:
    this = page(name)
    pair = this.pairs[number]
    if target != "any" and (absent := targets.missing(targets.get(target))):
        pytest.skip(absent)
    cells = measured[name, number, target]
    assert not isinstance(cells, str), cells
    if update_pages:
        rewrite(name, number, measured)
        return
    said = {m.quantity: (m.bad, m.good) for m in this.measured(pair) if m.target == target}
    assert set(said) == set(cells.counts)
    if this.jax_version == measuring.JAX and not measuring.is_lowered(pair):  # seconds are never the same
        row = cells.row()
        assert row in this.text[slice(*pair.table)]
    else:
        for quantity, (bad, good) in cells.counts.items():
            assert (bad > good) == (said[quantity][0] > said[quantity][1])
            if quantity == "operations" and this.jax_version == measuring.JAX:
                assert (bad, good) == said[quantity]


@pytest.mark.compilers
@of(known_cells())
def test_explain_has_the_pages_advice_of_the_bad_form_and_not_of_the_good(
    name: str, number: int, target: str, measured: dict
) -> None:
    if absent := targets.missing(targets.get(target)):
        pytest.skip(absent)
    cells = measured[name, number, target]
    assert not isinstance(cells, str), cells
    bad, good = (compilers.told(explain(made, all_rules())) for made in cells.made)
    assert name in bad
    assert name not in good


@of_every_page
def test_the_table_shows_harm_somewhere(name: str, update_pages: bool) -> None:
    if update_pages:
        pytest.skip("the pages are being written")
    assert page(name).targets


def rewrite(name: str, number: int, measured: dict) -> None:
    """Puts the measured rows in place of a pair's table; a target without its compiler here keeps its row."""
    path = pages_folder() / f"{name}.md"
    text = path.read_text()
    now = Page(name, text)
    pair = now.pairs[number]
    new = {t: measured[name, number, t] for t in (*measuring.TARGETS, "any") if (name, number, t) in measured}
    rows = [row for row in new.values() if isinstance(row, measuring.Cells)]
    rows += [old_row(now, pair, t) for t in dict.fromkeys(m.target for m in now.measured(pair)) if t not in new]
    start, end = pair.table
    path.write_text(text[:start] + measuring.table(rows) + "\n" + text[end:].lstrip("\n"))


def old_row(now: Page, pair: object, target: str) -> measuring.Cells:
    cells = [m for m in now.measured(pair) if m.target == target]  # type: ignore[arg-type]
    return measuring.Cells(target, {m.quantity: (m.bad, m.good) for m in cells})
