"""recurrence-by-at-set: which reads leave a row to be handed on by a name."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def run(x, y, n):
    for i in {over}:
        {body}
    return x, y
"""


def found(body: str, over: str = "range(1, n)") -> int:
    code = CODE.format(over=over, body=body.replace("\n", "\n        "))
    return len(check_text(code.encode(), "m.py", Scope(("recurrence-by-at-set",))))


@pytest.mark.parametrize(
    ("body", "over"),
    [
        ("x = x.at[i].set(x[i - 1] * 2)", "range(1, n)"),
        ("x = x.at[:, i].set(x[:, i - 1] + y[i])", "range(1, n)"),
        ("x = x.at[i + 1].set(x[i] * y[i])", "range(n)"),
        ("x = x.at[i - 1].set(x[i] * y[i])", "range(n, 0, -1)"),
        ("x = x.at[i].set(x[i + 1] * y[i])", "reversed(range(n))"),
        ("row = jnp.sin(x[i - 1])\nx = x.at[i].set(row)", "range(1, n)"),
        ("x = x.at[i].set(x[i - 1] + x[i])", "range(1, n)"),
    ],
)
def test_a_row_is_made_of_the_row_beside(body: str, over: str) -> None:
    assert found(body, over) == 1


@pytest.mark.parametrize(
    "body",
    [
        "x = x.at[i].set(y[i - 1] * 2)",
        "x = x.at[i].set(x[i - 2] * 2)",
        "x = x.at[i].set(x[i - 1] + x[0])",
        "x = x.at[i].set(x[i - 1] + x.sum())",
        "x = x.at[i].add(x[i - 1])",
        "x = x.at[i, i].set(x[i - 1, i - 1])",
        "x = x.at[:, i].set(x[i - 1])",
    ],
)
def test_what_needs_more_or_something_else_is_left_alone(body: str) -> None:
    assert found(body) == 0


@pytest.mark.parametrize(
    ("body", "over"),
    [
        ("x = x.at[i].set(x[i - 1] + x[i])", "range(n, 0, -1)"),
        ("x = x.at[i].set(x[i + 1] + x[i])", "range(n)"),
        ("x = x.at[i].set(x[i - 1])", "places"),
    ],
)
def test_rows_that_the_turn_before_did_not_write_need_no_order(body: str, over: str) -> None:
    assert found(body, over) == 0


def test_several_arrays_are_told_at_once() -> None:
    body = "x = x.at[i].set(x[i - 1] * 2)\ny = y.at[i].set(y[i - 1] + x[i])"
    assert found(body.replace("+ x[i]", "+ 1")) == 1
