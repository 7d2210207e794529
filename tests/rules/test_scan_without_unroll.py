"""scan-without-unroll: how many steps are compiled together, in words."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax

@jax.jit
def run(x, rows):
    def step(carry, row):
        carry = row + 0.9 * carry
        return carry, carry
    return jax.lax.scan(step, x, rows UNROLL)[1]
"""


@pytest.mark.parametrize(
    ("given", "begins"),
    [("", "each step is"), (", unroll=1", "each step is"), (", unroll=2", "every 2 steps are")],
)
def test_one_step_at_a_time_is_each(given: str, begins: str) -> None:
    (finding,) = check_text(CODE.replace(" UNROLL", given).encode(), "m.py", Scope(("scan-without-unroll",)))
    assert finding.message.startswith(begins)
