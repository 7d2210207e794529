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

import pytest

from fusionlint.compiling import targets

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
