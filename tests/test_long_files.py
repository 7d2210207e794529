"""The work on a file grows as the file does: machine-written ones have thousands of functions."""

from __future__ import annotations

import cProfile
import importlib
import pstats
import re
from typing import NamedTuple

import pytest

from fusionlint.rule import all_rules
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

FUNCTION = """
@jax.jit
def step{0}(x, y):
    both = jnp.concatenate([x, y])
    both = jax.lax.cond(x[0] > 0, lambda: both, lambda: both * 2)
    return both, jnp.sort(y)[-1]
"""


LOOP = """
@jax.jit
def filled{0}(x):
    out = jnp.zeros((8, 3))
    for i in range(8):
        out = out.at[i].set(jnp.sin(x[i]))
    return out
"""


def calls_made(functions: int) -> int:
    """How many functions of Python are called to check a file of so many."""
    text = "import jax\nimport jax.numpy as jnp\n" + "".join(map(FUNCTION.format, range(functions)))
    profile = cProfile.Profile()
    found = profile.runcall(check_text, text.encode(), "m.py", Scope(tuple(rule.name for rule in all_rules())))
    assert len(found) >= 2 * functions
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_four_times_as_many_functions_are_about_four_times_the_work() -> None:
    calls_made(1)  # what is loaded once
    assert calls_made(400) < 4.8 * calls_made(100)


class Counted(NamedTuple):
    """What a pattern looks into, counted."""

    pattern: re.Pattern[str]
    asked: list[str]

    def search(self, text: str) -> re.Match[str] | None:
        self.asked.append(text)
        return self.pattern.search(text)


@pytest.mark.parametrize("pattern", ["patterns.values.floats._OTHERS", "patterns.code.layout._TEXT"])
def test_all_lines_are_looked_at_once_for_all_the_fixes_of_a_file(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = pattern.rpartition(".")
    counted = Counted(getattr(importlib.import_module(f"fusionlint.{module}"), name), [])
    monkeypatch.setattr(f"fusionlint.{pattern}", counted)
    text = "import jax\nimport jax.numpy as jnp\n" + "".join(map(LOOP.format, range(30)))
    assert len(check_text(text.encode(), "m.py", Scope(("chained-at-set",)))) == 30
    assert 0 < len(counted.asked) <= 2 * len(text.splitlines())
