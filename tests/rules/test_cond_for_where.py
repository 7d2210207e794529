"""cond-for-where: what is written where a conditional hands on what it is asked."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def solved(x, status, flag):
    failed = jnp.isnan(x[0])
    {statement}
"""


@pytest.mark.parametrize(
    ("test", "branches", "advice"),
    [
        ("jnp.any(x < 0)", ("True", "False"), "jnp.any(x < 0)"),
        ("status == 1", ("True", "False"), "status == 1"),
        ("status == 1", ("False", "True"), "jnp.logical_not(status == 1)"),
        ("failed", ("True", "False"), "failed"),
        # A number is no truth value.
        ("flag", ("True", "False"), "jnp.where(flag, True, False)"),
        ("status == 1", ("True", "True"), "jnp.where(status == 1, True, True)"),
    ],
)
def test_a_truth_that_is_handed_on_is_itself(test: str, branches: tuple[str, str], advice: str) -> None:
    conditional = f"jax.lax.cond({test}, lambda _: {branches[0]}, lambda _: {branches[1]}, 0)"
    (found,) = check_text(CODE.format(statement=f"return {conditional}").encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


def test_a_comparison_that_is_part_of_something_stands_in_parentheses() -> None:
    conditional = "jax.lax.cond(status > 1, lambda _: True, lambda _: False, 0)"
    code = CODE.format(statement=f"return failed | {conditional}")
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert [edit.text for edit in found.suggestion.edits] == ["(status > 1)"]
