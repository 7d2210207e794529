"""The work on a file grows as the file does: machine-written ones have thousands of functions."""

from __future__ import annotations

import cProfile
import pstats

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
