"""What is said of a sort in the compiled program: only an end of it, half at most, has a way of its own."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def last(x):
    return jnp.sort(x)[-1]

def few(x):
    return jnp.sort(x)[:5]

def most(x):
    return jnp.sort(x)[..., -5:]

def order(x):
    return jnp.argsort(x)[:5]

def middle(x):
    return jnp.sort(x)[50]

def gaps(x):
    s = jnp.sort(x)
    return s[1:] - s[:-1]

def first_and_sums(x):
    s = jnp.sort(x)
    return s[0], jnp.cumsum(s)

def top(x):
    return jax.lax.top_k(x, 5)
"""
SAID = {
    "last(f32[100])": {"sort-for-max"},
    "few(f32[100])": set(),  # the smallest: two negations more
    "few(f32[4096])": set(),
    "most(f32[100])": set(),
    "most(f32[4096])": {"argsort-prefix"},
    "most(f32[64,512])": {"argsort-prefix"},
    "order(f32[100])": {"argsort-prefix"},
    "middle(f32[100])": set(),
    "gaps(f32[100])": set(),
    "first_and_sums(f32[512])": set(),
    "top(f32[100])": set(),
}


@pytest.mark.parametrize("name", ["h100", "cpu"])
def test_only_an_end_of_a_sort_has_a_way_around(name: str, tmp_path: Path) -> None:
    reports = compilers.explained(compilers.written(CODE, SAID, tmp_path), name, all_rules())
    assert {call: compilers.told(report) for call, report in reports.items()} == SAID


@pytest.mark.parametrize("name", ["h100", "cpu"])
def test_of_a_mask_the_largest_are_taken_as_floats(name: str, tmp_path: Path) -> None:
    code = "import jax.numpy as jnp\n\ndef hits(x):\n    return jnp.argsort(~(x > 0), axis=-1)[:, :8]\n"
    calls = ["hits(f32[64,512])"]
    (report,) = compilers.explained(compilers.written(code, calls, tmp_path), name, all_rules()).values()
    advice = {one.advice for one in report.barriers if one.rule == "argsort-prefix"}
    assert advice == {
        "lax.top_k of the mask as float32 (of a mask itself it is a sort) instead of a part of a whole sort"
    }
