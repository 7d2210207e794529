"""scan-keeps-all-outputs: which row of the outputs the last step fills."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

def returns(rewards, discounts, start):
    def step(total, row):
        reward, discount = row
        total = reward + discount * total
        return total, jnp.tanh(total)

    _, found = jax.lax.scan(step, start, (rewards, discounts){direction})
    return found[{place}]
"""


@pytest.mark.parametrize(
    ("direction", "place", "is_told"),
    [
        ("", "-1", True),
        ("", "0", False),
        (", reverse=True", "0", True),
        (", reverse=True", "0, :", True),
        (", reverse=True", "-1", False),
        (", reverse=False", "-1", True),
    ],
)
def test_a_scan_that_goes_backwards_fills_the_first_row_last(direction: str, place: str, is_told: bool) -> None:
    code = CODE.format(direction=direction, place=place)
    assert bool(check_text(code.encode(), "m.py", Scope(("scan-keeps-all-outputs",)))) is is_told
