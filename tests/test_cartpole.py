"""examples/cartpole: five variants compute the same returns, and are launched as often as the README there says."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compilers
import pytest
from launching import compiled, spec

from fusionlint.compiling import targets
from fusionlint.explained import ExplainedBarrier, Report, explain
from fusionlint.report.explain_text import report_text
from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "cartpole"
BATCHES = (64, 2048, 65536)
STEPS = 200  # of a rollout here: long enough for every cart to fail

MEASURED_WITH = "0.10.2"
TARGETS = ("h100", "v5e", "cpu")


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples import their neighbour `dynamics`, as scripts do; afterwards all of it is forgotten."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


@dataclass(frozen=True)
class Carts:
    start: Any
    key: Any

    def returns(self, letter: str, **constants: object) -> list[float]:
        """What a variant computes for these carts, with its module's constants set to `constants`."""
        (path,) = EXAMPLES.glob(f"{letter}_*.py")
        module = importlib.import_module(path.stem)
        for name, value in {"STEPS": STEPS, **constants}.items():
            assert hasattr(module, name)
            setattr(module, name, value)
        del sys.modules[path.stem]  # compiled with these constants
        draws = hasattr(module, "JITTER")
        returns: list[float] = module.rollout(*((self.start, self.key) if draws else (self.start,))).tolist()
        return returns


@pytest.fixture
def carts(on_path: None) -> Carts:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax = pytest.importorskip("jax")
    start = jax.random.uniform(jax.random.key(0), (64, 4), minval=-0.05, maxval=0.05)
    return Carts(start, jax.random.key(1))


def test_every_cart_fails_so_that_every_cart_is_reset(carts: Carts) -> None:
    assert max(carts.returns("c")) < STEPS + 1
    assert min(carts.returns("c")) > STEPS / 2


def test_the_python_loop_and_the_scan_return_the_same(carts: Carts) -> None:
    assert carts.returns("a") == carts.returns("b")


def test_without_random_numbers_all_variants_return_the_same(carts: Carts) -> None:
    expected = carts.returns("c")
    assert carts.returns("d") == expected
    assert carts.returns("e") == expected


def test_the_random_numbers_are_all_that_sets_a_and_b_apart(carts: Carts) -> None:
    """Reset to exactly where it started, as c does it, a cart of a or b returns what it returns in c."""
    expected = carts.returns("c")
    assert carts.returns("b") != expected
    assert carts.returns("a", JITTER=0.0) == expected
    assert carts.returns("b", JITTER=0.0) == expected


@functools.cache
def counts(target: str) -> dict[tuple[str, int], tuple[float, float]]:
    """{(variant's letter, batch): (launches, copies) per environment step}, as the benchmark counts them."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    bench = importlib.import_module("cartpole")
    sys.path.remove(str(ROOT / "benchmarks"))
    return {(name[0], batch): count for (name, batch), count in bench.launches(targets.get(target), BATCHES).items()}


def need(target: str) -> None:
    absent = targets.missing(targets.get(target))
    if absent:
        pytest.skip(absent)


def in_the_readme(target: str) -> dict[tuple[str, int], tuple[float, float]]:
    """The README's table for the target, as `counts` has it: a cell is `launches` or `launches (copies)`."""
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    table = text.partition(f"| {target}: launches (copies) per step |")[2].partition("\n\n")[0]
    rows = [line.strip("|` ").replace("`", "").split("|") for line in table.splitlines()[2:]]
    cells = {(row[0][0], batch): cell for row in rows for batch, cell in zip(BATCHES, row[1:], strict=True)}
    numbers = {at: [float(number) for number in re.findall(r"[\d.]+", cell)] for at, cell in cells.items()}
    return {at: (launches, *copies) if copies else (launches, 0.0) for at, (launches, *copies) in numbers.items()}


@pytest.mark.parametrize("target", TARGETS)
def test_launches_per_step_are_those_of_the_readme(target: str) -> None:
    need(target)
    jax = targets.versions(targets.get(target))["jax"]
    if jax != MEASURED_WITH:
        pytest.skip(f"measured with jax {MEASURED_WITH}; {jax} is held to the direction, by the tests below")
    assert counts(target) == {at: pytest.approx(cell) for at, cell in in_the_readme(target).items()}


@pytest.mark.parametrize("target", ["h100", "v5e"])
def test_each_variant_after_b_saves_launches_on_an_accelerator(target: str) -> None:
    need(target)
    for batch in BATCHES:
        b, c, d, e = (counts(target)[letter, batch][0] for letter in "bcde")
        assert b > c > d > e


def test_a_state_that_is_put_together_is_also_copied_on_h100() -> None:
    need("h100")
    copies = {letter: counts("h100")[letter, 2048][1] for letter in "cde"}
    assert copies == {"c": 1, "d": 0, "e": 0}


@pytest.mark.parametrize(
    ("letter", "rules"),
    [
        ("a", {"loop-over-jit"}),
        ("b", {"key-split-in-scan", "columns-of-a-stack"}),
        ("c", {"columns-of-a-stack"}),
        ("d", set()),
        ("e", set()),
    ],
)
def test_check_speaks_of_what_the_next_variant_mends(letter: str, rules: set[str]) -> None:
    (path,) = EXAMPLES.glob(f"{letter}_*.py")
    command = [sys.executable, "-m", "fusionlint", "check", "--output-format", "json", path]
    found = {finding["rule"] for finding in json.loads(_stdout(command))["findings"]}
    assert rules <= found if rules else not found


def _stdout(command: list[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


# What `explain` says about them ---------------------------------------------------------------------------------------


@functools.cache
def explained(variant: str, target: str) -> Report:
    """The report on a variant, at 2048 carts, with every rule's say."""
    return explain(compiled(target)[variant], all_rules())


def line_of(variant: str, text: str) -> int:
    lines = (EXAMPLES / f"{variant}.py").read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, line in enumerate(lines, 1) if text in line]
    return line


def in_the_loop(report: Report) -> list[ExplainedBarrier]:
    inside = {kernel.name for kernel in report.kernels if kernel.loop}
    return [explained for explained in report.barriers if explained.barrier.writer in inside]


def test_c_copies_the_whole_state_once_a_step_because_of_the_line_that_stacks_it() -> None:
    report = explained("c_no_rng", "h100")
    whole = 2048 * 4 * 4
    copies = [kernel for kernel in report.kernels if kernel.loop and kernel.kind == "copy"]
    assert [copy.bytes_written for copy in copies] == [whole]
    (barrier,) = [e.barrier for e in in_the_loop(report) if e.barrier.writer == copies[0].name]
    assert barrier.cause == "copy"
    assert barrier.stack[0].path == str(EXAMPLES / "c_no_rng.py")
    assert barrier.stack[0].line == line_of("c_no_rng", "jnp.stack")


def test_b_names_the_two_lines_that_draw_random_numbers() -> None:
    report = explained("b_scan_rng_concat", "h100")
    blamed = {e.barrier.stack[0].line for e in report.barriers if e.barrier.cause == "random bits"}
    variant = "b_scan_rng_concat"
    assert blamed == {line_of(variant, "jax.random.split"), line_of(variant, "jax.random.uniform")}


def test_the_random_bits_of_b_were_left_apart_by_the_cost_model() -> None:
    report = explained("b_scan_rng_concat", "h100")
    verdicts = [e.barrier.verdict for e in report.barriers if e.barrier.cause == "random bits"]
    (refused,) = [verdict for verdict in verdicts if verdict and verdict.us_fused is not None]
    assert refused.us_unfused is not None
    assert refused.us_fused >= refused.us_unfused


@pytest.mark.parametrize("target", ["h100", "v5e"])
def test_nobody_advises_against_tuples_in_a_carry(target: str) -> None:
    """d keeps its state in a tuple: XLA names that tuple as what is in the way, and it costs nothing. What is left
    is to do what e does."""
    report = explained("d_tuple_carry", target)
    assert in_the_loop(report)
    assert {e.rule for e in in_the_loop(report) if e.advice} == {"scan-without-unroll"}
    text = report_text(report, everything=True)
    assert "instead:" not in text


def test_d_has_no_copy_in_its_loop() -> None:
    report = explained("d_tuple_carry", "h100")
    assert {kernel.kind for kernel in report.kernels if kernel.loop} == {"loop"}
    (loop,) = report.loops
    assert (loop.launches_per_iteration, loop.copies_per_iteration) == (2, 0)


def test_each_variant_after_b_takes_less_time_by_xlas_models() -> None:
    for target in ("h100", "v5e"):
        names = ("b_scan_rng_concat", "c_no_rng", "d_tuple_carry", "e_unroll")
        times = [explained(name, target).totals.microseconds or 0 for name in names]
        assert times == sorted(times, reverse=True)
        assert times[-1] > 0


def test_the_launches_of_b_are_one_cuda_graph_a_step() -> None:
    report = explained("b_scan_rng_concat", "h100")
    (loop,) = report.loops
    graphs = [kernel.graph for kernel in report.kernels if kernel.loop == loop.name]
    assert len(set(graphs)) == 1
    assert graphs[0] is not None
    text = report_text(report)
    assert "7 launches of every step go as one CUDA graph" in text
    assert report.totals.host_launches == 1004
    assert "the host launches 1004 times\n" in text
    assert "one by one" not in text


def test_the_launches_of_c_are_too_few_for_a_cuda_graph_unless_xla_is_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a step of c, with 4 launches, is 4 for the host, and one of b, with 7, is one: examples/cartpole/README.md."""
    (said,) = (line for line in report_text(explained("c_no_rng", "h100")).splitlines() if "one by one" in line)
    assert said.startswith("4 launches of every step go one by one: XLA makes a CUDA graph of 5 or more, or of 2 with")
    monkeypatch.setenv("XLA_FLAGS", said.rpartition("XLA_FLAGS=")[2].partition(",")[0])
    found = compilers.compiled({"c": spec("c_no_rng")}, "h100")
    assert "4 launches of every step go as one CUDA graph" in report_text(explain(found["c"]))
