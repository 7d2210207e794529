"""one-hot-by-at-set: what is written instead of any value in a new array, and which places are not seen to be one."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

class Game:
    def reset(self, key): ...
    def step(self, state, action, places, kinds, amounts, i):
        {code}
        return made + 1
"""


def found(code: str) -> list[str]:
    findings = check_text(CODE.format(code=code).encode(), "m.py", Scope(("one-hot-by-at-set",)))
    return [finding.suggestion.text if finding.suggestion else "" for finding in findings]


@pytest.mark.parametrize(
    ("made", "instead"),
    [
        ("jnp.ones(2).at[state.current_player].set(-1)", "jnp.where(jnp.arange(n) == state.current_player, -1, 1)"),
        ("jnp.full(4, -1.0).at[action].set(amounts)", "jnp.where(jnp.arange(n) == action, amounts, -1.0)"),
        ("jnp.zeros(64, bool).at[action].set(True)", "jnp.arange(n) == action"),
        ("jnp.ones(64, bool).at[action].set(False)", "jnp.where(jnp.arange(n) == action, False, True)"),
        (
            "jnp.zeros((9, 7)).at[state.y, state.x].set(amounts)",
            "jnp.where((jnp.arange(h)[:, None] == state.y) & (jnp.arange(w) == state.x), amounts, 0)",
        ),
        (
            "jnp.zeros((4, 5)).at[jnp.arange(4), kinds].set(0.5)",
            "jnp.where(jnp.arange(5) == kinds[..., None], 0.5, 0)",
        ),
        (
            "jnp.zeros((4, 9, 5)).at[jnp.arange(4)[:, None], jnp.arange(9), kinds].set(amounts)",
            "jnp.where(jnp.arange(5) == kinds[..., None], amounts[..., None], 0), without the second `[..., None]` "
            "where it is a number",
        ),
    ],
)
def test_a_comparison_is_written_out(made: str, instead: str) -> None:
    assert found(f"made = {made}") == [instead]


@pytest.mark.parametrize(
    "made",
    [
        "jnp.zeros(9).at[places].set(amounts)",
        "jnp.zeros(9).at[i].set(amounts)",  # a row of places, perhaps
        "jnp.zeros(9).at[kinds[places]].set(amounts)",
        "jnp.zeros((9, 4)).at[action].set(amounts)",
        "jnp.zeros(9).at[action].add(amounts)",
        "jnp.zeros(9).at[action].set(amounts[action.shape[0]])",
        "jnp.zeros((4, 5, 2)).at[jnp.arange(4), kinds].set(amounts)",
        "jnp.zeros((4, 5)).at[jnp.arange(4)[:, None], kinds].set(amounts)",  # several of each row
        "jnp.zeros(9).at[self.index].set(amounts)",
    ],
)
def test_of_places_that_may_be_many_and_rows_of_more_nothing_is_said(made: str) -> None:
    assert found(f"made = {made}") == []


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("jnp.logical_not(own)", "jnp.arange(8) == i"),
        ("jnp.logical_not(own) * own", "(jnp.arange(8) == i).astype(float)"),
    ],
)
def test_what_is_asked_as_a_truth_is_left_one(read: str, written: str) -> None:
    code = (
        "import jax, jax.numpy as jnp\n\ndef others(i):\n"
        f"    own = jnp.zeros((8,)).at[i].set(1)\n    return {read}\n\n"
        "def all_of():\n    return jax.vmap(others)(jnp.arange(8))\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("one-hot-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.edits[0].text == written


@pytest.mark.parametrize(
    ("made", "behind"),
    [
        ("jnp.zeros(8, jnp.int32).at[i].set(x.astype(jnp.int32))", ""),
        ("jnp.zeros(8, jnp.int32).at[i].set(x.astype(jnp.int8))", ".astype(jnp.int32)"),
        ("jnp.zeros(8).at[i].set(jnp.sqrt(x))", ""),
        ("jnp.zeros(8).at[i].set(x)", ".astype(float)"),
        ("jnp.zeros(8).at[i].set(2.5)", ".astype(float)"),
    ],
)
def test_what_has_the_type_already_is_not_given_it_again(made: str, behind: str) -> None:
    code = (
        f"import jax, jax.numpy as jnp\n\ndef one(i, x):\n    return {made}\n\n"
        "def all_of(x):\n    return jax.vmap(one)(jnp.arange(8), x)\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("one-hot-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.edits[0].text.endswith(f", 0){behind}")
