"""vmapped-dynamic-slice: what to write where a loop of jax.lax carries the array."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("vmapped-dynamic-slice",))


def advice(body: str) -> str:
    """What the finding in the body of a scan says to write, up to how the start is clipped."""
    head = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n@jax.vmap\ndef f(table, row, places):\n"
    head += "    def step(carry, i):\n        table, start = carry\n"
    code = head + "".join(f"        {line}\n" for line in body.splitlines())
    code += "        return (table, start), None\n    return lax.scan(step, (table, row), jnp.arange(4))[0]\n"
    found, *_ = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    return found.suggestion.text.partition(", as far")[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("table = lax.dynamic_update_slice(table, row[None], (places[i], places[0]))", "table.at[places[i]].set(row)"),
        (
            "p = places[i]\ntable = lax.dynamic_update_slice(table, jnp.expand_dims(row, -1), (p[0], p[1]))",
            "table.at[:, p[1]].set(row)",
        ),
        ("table = lax.dynamic_update_slice(table, jnp.expand_dims(row, axis=0), places[i])",
         "table.at[places[i][0]].set(row)"),
    ],
)  # fmt: skip
def test_a_row_goes_to_its_number(body: str, said: str) -> None:
    assert advice(body) == said


@pytest.mark.parametrize("before", ["", "table = table.at[0, 0].set(1.0)\n", "table = 2.0 * table\n"])
def test_a_window_of_what_is_carried_is_written_in_place(before: str) -> None:
    """Computed anew in each turn, it is there anew."""
    said = advice(f"{before}table = lax.dynamic_update_slice(table, row, (places[i], places[i]))")
    assert said.startswith("jnp.where" if "2.0" in before else "x.at[...].set(piece)")
