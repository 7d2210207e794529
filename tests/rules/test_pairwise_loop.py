"""pairwise-loop: what is said of nests of more than two loops."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

THREE = """
import jax
import jax.numpy as jnp

@jax.jit
def error(x, y, parts, n):
    total = 0.0
    for q in range(n):
        for i in range(n):
            for j in range(n):
                total += jnp.sum(jnp.outer(x[i], y[j]) * parts[q])
    return total
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        pytest.param("", "", [9], id="the inner two"),
        pytest.param("y[j]", "y[i]", [8], id="the outer two, where the inner are no pairs"),
        pytest.param("for j in range(n)", "for j in x", [8], id="the outer two, beside rows"),
        pytest.param("x[i]", "x[3]", [], id="one and three"),
    ],
)
def test_of_a_nest_of_loops_two_are_told_once(old: str, new: str, lines: list[int]) -> None:
    findings = check_text(THREE.replace(old, new).encode(), "m.py", Scope(("pairwise-loop",)))
    assert [finding.location.line for finding in findings] == lines
