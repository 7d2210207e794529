"""eager-control-flow: Newton's method of a function that comes with each call takes a few turns, a minimum many."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

def solve(f, x):
    slope = jax.grad(f)
    for _ in range(100):
        value = f(x)
        if jnp.abs(value) < 1e-9:
            return x
        {turn}
    return x
"""
TURNS = {
    "x = x - value / slope(x)": False,
    "dx = slope(x)\n        x = x - value / dx": False,
    "x = x - 0.1 * slope(x)": True,
    "x = x - slope(x) / 10.0": True,
}


@pytest.mark.parametrize("turn", TURNS)
def test_a_quotient_by_the_slope_is_newtons_method(turn: str) -> None:
    found = check_text(CODE.format(turn=turn).encode(), "m.py", Scope(("eager-control-flow",)))
    assert bool(found) is TURNS[turn]


def test_of_a_function_of_the_file_a_jit_can_be_made_once() -> None:
    code = CODE.format(turn="x = x - value / slope(x)").replace("def solve(f, x):", "def solve(x):")
    code = code.replace("def solve", "def f(x):\n    return jnp.sin(x)\n\ndef solve")
    assert check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))
