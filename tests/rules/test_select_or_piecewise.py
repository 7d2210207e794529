"""Fixes of select: what is left alone, what is safe, and what comes out."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax.numpy as jnp\n\ndef f(x, y, c):\n    return "


def fix(call: str) -> tuple[str, bool] | None:
    """The text of the fix and whether it is safe; None without one."""
    (found,) = check_text((HEAD + call + "\n").encode(), "example.py", Scope(("select-or-piecewise",)))
    assert found.suggestion
    edits = found.suggestion.edits
    return (edits[0].text, found.suggestion.safe) if edits else None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("jnp.select([x < 0], [x], y)", "jnp.where(x < 0, x, y)"),
        ("jnp.select([x < 0], [1.0])", "jnp.where(x < 0, 1.0, 0)"),
        ("jnp.select([x < 0, x < 1], (0.5, x), 2)", "jnp.where(x < 0, 0.5, jnp.where(x < 1, x, 2))"),
        ("jnp.select([x < 0], [x if c else y], default=-1)", "jnp.where(x < 0, x if c else y, -1)"),
    ],
)
def test_safe_where_at_most_one_value_has_a_dtype_of_its_own(call: str, text: str) -> None:
    assert fix(call) == (text, True)


@pytest.mark.parametrize(
    "call",
    [
        "jnp.select([x < 0, x < 1], [x, y], y)",
        "jnp.select([x < 0, x < 1], [x, 0.1], 0)",  # 0.1 is another number in bfloat16
        "jnp.select([x < 0, x < 1], [x, 0.5], -1)",  # -1 wraps around in a uint8
        "jnp.select([x < 0, x < 1], [x, 1000], 0)",
    ],
)
def test_unsafe_where_values_may_meet_on_the_way_to_their_dtype(call: str) -> None:
    found = fix(call)
    assert found is not None
    assert not found[1]


@pytest.mark.parametrize(
    "call",
    [
        "jnp.select([x < 0], [x  # why\n    ], 0)",
        "jnp.select([x < 0, *c], [x, y])",
        "jnp.select([x < 0], [x, y])",
        "jnp.select(c, [x, y])",
        "jnp.select(*c)",
        "jnp.select([x < 0], [(z := x)], z)",
        "jnp.select([x < 0] * 2, [x] * 2)",
        "jnp.select([c, c, c, c, c], [x, x, x, x, x])",
    ],
)
def test_no_fix(call: str) -> None:
    assert fix(call) is None
