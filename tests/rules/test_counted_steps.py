"""scan-without-unroll and fori-loop-without-unroll: how often a step is repeated, and what is known of that."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCAN = """\
import jax
import jax.numpy as jnp

TURNS = 12
{before}
def root(y, n=10, m=None):
    k = 2 * TURNS

    def newton(x, nothing):
        return x - (x * x - y) / (2.0 * x), {stored}

    return jax.lax.scan(newton, y, {rows}length={count})[0]
"""
FORI = """\
import jax
from functools import partial

TURNS = 12

{decorator}
def root(y, n=10, m=None):
    {first}

    def newton(i, x):
        return x - (x * x - y) / (2.0 * x)

    return jax.lax.fori_loop({start}, {count}, newton, y)
"""


def unrolls(rule: str, code: str) -> list[str]:
    found = check_text(code.encode(), "m.py", Scope((rule,)))
    return [one.suggestion.text.split("`")[1] for one in found if one.suggestion is not None]


@pytest.mark.parametrize(
    ("said", "unroll"),
    [
        ({}, ["unroll=True"]),
        ({"count": "TURNS"}, ["unroll=True"]),
        ({"count": "k"}, ["unroll=True"]),
        ({"count": "n"}, ["unroll=True"]),
        ({"count": "100"}, ["unroll=8"]),
        ({"count": "1000"}, []),
        ({"count": "m"}, []),
        ({"count": "1"}, []),
        ({"rows": "(), "}, ["unroll=True"]),
        ({"rows": "", "stored": "()"}, ["unroll=True"]),
        ({"stored": "nothing"}, ["unroll=True"]),
        ({"stored": "x"}, []),  # a trajectory
        ({"before": "from jax.experimental import pallas"}, []),
    ],
)
def test_a_scan_over_nothing_repeats_a_step_as_often_as_is_known(said: dict[str, str], unroll: list[str]) -> None:
    code = SCAN.format(**{"rows": "None, ", "count": "8", "stored": "None", "before": "", **said})
    assert unrolls("scan-without-unroll", code) == unroll


@pytest.mark.parametrize(
    ("said", "unroll"),
    [
        ({}, ["unroll=True"]),
        ({"start": "1", "count": "TURNS + 1"}, ["unroll=True"]),
        ({"count": "n"}, ["unroll=True"]),
        ({"count": "n", "decorator": "@jax.jit"}, []),  # which a run decides
        ({"count": "n", "decorator": '@partial(jax.jit, static_argnames=("n",))'}, ["unroll=True"]),
        ({"first": "turns = 2 * TURNS", "count": "turns"}, ["unroll=True"]),
        ({"count": "y.sum()"}, []),
        ({"start": "m"}, []),
    ],
)
def test_both_ends_of_a_fori_loop_have_to_be_known(said: dict[str, str], unroll: list[str]) -> None:
    code = FORI.format(**{"start": "0", "count": "8", "decorator": "", "first": "y = y + 1.0", **said})
    assert unrolls("fori-loop-without-unroll", code) == unroll


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("return x + y * i", 0),  # one sum
        ("term = y * i\n        return term + x", 0),
        ("return y * i - x", 1),
        ("off = x * x - y; return x - off", 1),
        ("return x * y + i", 1),
    ],
)
def test_what_a_loop_only_adds_up_is_one_reduction(step: str, count: int) -> None:
    code = FORI.format(start="0", count="8", decorator="", first="y = y + 1.0")
    assert len(unrolls("fori-loop-without-unroll", code.replace("return x - (x * x - y) / (2.0 * x)", step))) == count
