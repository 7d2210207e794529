"""What is said of a sort in the compiled program: only an end of it, half at most, has a way of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Artifacts
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_many
from fusionlint.explained import explain
from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def last(x):
    return jnp.sort(x)[-1]

def few(x):
    return jnp.sort(x)[:5]

def middle(x):
    return jnp.sort(x)[50]

def gaps(x):
    s = jnp.sort(x)
    return s[1:] - s[:-1]

def top(x):
    return jax.lax.top_k(x, 5)
"""
SAID = {"last": {"sort-for-max"}, "few": {"argsort-prefix"}, "middle": set(), "gaps": set(), "top": set()}


@pytest.mark.parametrize("name", ["h100", "cpu"])
def test_only_an_end_of_a_sort_has_a_way_around(name: str, tmp_path: Path) -> None:
    target = targets.get(name)
    if absent := targets.missing(target):
        pytest.skip(absent)
    path = tmp_path / "sorts.py"
    path.write_text(CODE)
    specs = [parse_spec(f"{path}:{function}(f32[100])") for function in SAID]
    for function, result in zip(SAID, compile_many(specs, target), strict=True):
        assert isinstance(result, Artifacts), result
        assert {one.rule for one in explain(result, all_rules()).barriers if one.rule} == SAID[function], function
