"""sum-over-array: what the fix writes of an array that is no name."""

from __future__ import annotations

import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join


@pytest.mark.parametrize(
    ("summed", "instead"),
    [
        ("x", "x.sum(0)"),
        ("x > 0", "(x > 0).sum(0)"),
        ("(x > 0)", "(x > 0).sum(0)"),
        ("jnp.sin(x)", "jnp.sin(x).sum(0)"),
    ],
)
def test_what_is_more_than_a_name_stands_in_parentheses(summed: str, instead: str) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x: jax.Array):\n    return sum({summed})\n"
    scope = Scope(("sum-over-array",))
    found = check_text(code.encode(), "m.py", scope)
    after = fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()
    assert after == code.replace(f"sum({summed})", instead)
