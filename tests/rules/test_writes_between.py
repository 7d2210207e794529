"""What happens between writes: what they are told must hold with what the names mean at each of them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\n"

PADDED = """
def padded(out, a, n, axis):
    cut = [slice(None)] * 3
    cut[axis] = slice(None, n)
    out = out.at[tuple(cut)].set(a[0])
    cut[axis] = slice(n, None)
    return out.at[tuple(cut)].set(a[1])
"""
SPLINE = """
def spline(w):
    c = jnp.zeros((4,))
    c = c.at[2].set(0.5 * w * w)
    c = c.at[0].set(0.5 * (1.0 - w) * (1.0 - w))
    c = c.at[1].set(1.0 - c[0] - c[2])
    return c.at[3].set(w * c[2] / 3.0)
"""
ONE_PLACE = "out.at[tuple(cut)].set(a[1])"


def advice(code: str) -> str:
    (found,) = check_text((HEAD + dedent(code)).encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    return found.suggestion.text


@pytest.mark.parametrize(
    ("between", "is_one_place"),
    [
        ("cut[axis] = slice(n, None)", False),
        ("cut[axis] += n", False),
        ("cut.append(n)", False),
        ("del cut[axis]", False),
        ("n = cut[axis]", True),
        ("a[axis] = slice(n, None)", True),
    ],
)
def test_a_list_that_is_changed_between_writes_is_another_place(between: str, is_one_place: bool) -> None:
    text = advice(PADDED.replace("cut[axis] = slice(n, None)", between))
    assert (text == ONE_PLACE) == is_one_place
    assert is_one_place or text.startswith(
        "compute the values first, each into a name of its own; then one jnp.concatenate"
    )


@pytest.mark.parametrize(
    ("old", "new", "is_a_stack"),
    [
        pytest.param("", "", True, id="a few of a new array"),
        pytest.param("(4,)", "(4, w.shape[0])", True, id="rows"),
        pytest.param("(4,)", "(400,)", False, id="of many"),
        pytest.param("jnp.zeros((4,))", "2 * w", False, id="of one that is there"),
        pytest.param("at[3]", "at[-1]", False, id="from both ends"),
        pytest.param("at[3].set", "at[3].add", False, id="a sum"),
    ],
)
def test_a_few_numbers_that_are_made_of_each_other_are_a_stack(old: str, new: str, is_a_stack: bool) -> None:
    text = advice(SPLINE.replace(old, new) if old else SPLINE)
    assert text.startswith("compute the values first, each into a name of its own; then one jnp.")
    assert ("one jnp.stack of the last of each place" in text) == is_a_stack


MOVED = """
def moved(board, old, new, alive, stays):
    board = board.at[old[0], old[1]].set(board[old[0], old[1]] & ~alive)
    return board.at[new[0], new[1]].set(board[new[0], new[1]] | stays)
"""


@pytest.mark.parametrize(
    ("old", "new", "is_one_by_one"),
    [
        ("board", "board", True),
        ("new[0], new[1]", "new[0], 0", True),
        ("| stays", "| stays | board[0, 0]", False),  # of another place
        (".set(board[new[0], new[1]] | stays)", ".set(stays)", False),
    ],
)
def test_what_is_made_of_what_is_at_its_own_place_needs_no_other_first(old: str, new: str, is_one_by_one: bool) -> None:
    text = advice(MOVED.replace(old, new))
    assert text.startswith("jnp.where(mask, new, x) for each, one after the other") == is_one_by_one
