"""repeat-then-gather: what is done with the repeated rows, and where a helper gathers them."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

def moved(x, order, by_hand=False):
    if by_hand:
        assert x.shape[0] == order.shape[0]
        return moved_by_hand(x, order)
    return x[order, ...]

@jax.custom_vjp
def moved_by_hand(x, order):
    return x[order]

def scaled(x, order):
    return x[order] / jnp.sum(x)

def in_two_orders(x, order, other):
    return x[order] + x[other]

@jax.jit
def dispatch(x, experts, weights, counts, k, setting):
    order = jnp.argsort(experts)
    {work}
"""


def suggested(work: str) -> list[str]:
    found = check_text(CODE.format(work=work).encode(), "m.py", Scope(("repeat-then-gather",)))
    return [finding.suggestion.text for finding in found if finding.suggestion is not None]


@pytest.mark.parametrize(
    ("work", "text"),
    [
        ("return jnp.repeat(x, k, axis=0)[order]", "x[order // k]"),
        ("return jnp.repeat(x, repeats=k, axis=0)[order, :]", "x[order // k]"),
        ("return jnp.take(jnp.repeat(x, k + 1, 0), order, axis=0)", "x[order // (k + 1)]"),
        ("rows = jnp.repeat(x * 2, k, 0); return rows[order] * weights", "(x * 2)[order // k]"),
        ("return moved(jnp.repeat(x, k, axis=0), order)", "x[order // k]; a backward pass"),
        ("rows = jnp.repeat(x, k, axis=0); return moved(rows, order, True)", "x[order // k]; a backward pass"),
    ],
)
def test_rows_are_gathered_by_the_divided_order(work: str, text: str) -> None:
    (found,) = suggested(work)
    assert found.startswith(text)


@pytest.mark.parametrize(
    "work",
    [
        "rows = jnp.repeat(x, k, axis=0); return rows[order], rows.sum()",
        "rows = jnp.repeat(x, k, axis=0); rows = rows * weights; return rows[order]",
        "rows = jnp.repeat(x, k, axis=0)\n    if setting:\n        rows = rows * weights\n    return rows[order]",
        "return jnp.repeat(x, k, axis=0)[0]",
        "return jnp.repeat(x, k, axis=0)[:4]",
        "return jnp.repeat(x, k, axis=0)[experts]",
        "return jnp.repeat(x, 1, axis=0)[order]",
        "return jnp.repeat(x, k, axis=1)[order]",
        "return jnp.repeat(x, k)[order]",
        "return jnp.repeat(x, counts, axis=0)[order]",
        "return jnp.repeat(x, jnp.array([1, 2]), axis=0)[order]",
        "return jnp.repeat(x, k, axis=0)[:, order]",
        "return jnp.repeat(x, k, axis=0).at[order].get()",
        "return scaled(jnp.repeat(x, k, axis=0), order)",
        "return in_two_orders(jnp.repeat(x, k, axis=0), order, experts)",
        "return moved(order, jnp.repeat(x, k, axis=0))",
        "return moved(x=jnp.repeat(x, k, axis=0), order=order)",
        "return sorted(jnp.repeat(x, k, axis=0), order)",
    ],
)
def test_other_rows_are_no_case(work: str) -> None:
    assert suggested(work) == []


def test_a_setting_chooses_between_the_two() -> None:
    both = """if setting == "repeated":
        rows = moved(jnp.repeat(x, k, axis=0), order)
    else:
        rows = x[order // k]
    return rows"""
    assert suggested(both) == []
