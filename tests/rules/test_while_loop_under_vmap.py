"""while-loop-under-vmap: of turns whose order matters nothing is said."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

def moved(board, places, aims):
    def move(carry):
        board, i = carry
        x, x_1 = places[i], aims[i]
        {turn}
        return board, i + 1

    return jax.lax.while_loop(lambda carry: places[carry[1]] != -1, lambda carry: move(carry), (board, 0))

step = jax.vmap(moved)
"""


@pytest.mark.parametrize(
    ("turn", "count"),
    [
        ("board = jnp.where(board[x_1] == 0, board.at[x].set(0), board)", 0),
        ("free = board[x_1] == 0; board = jax.lax.select(free, board.at[x_1].set(board[x]).at[x].set(0), board)", 0),
        ("board = jnp.where(board[x_1] == 0, jax.lax.dynamic_update_slice(board, jnp.zeros(1), (x,)), board)", 0),
        ("board = jnp.where(board[x] == 0, board.at[x].set(1), board)", 1),  # each place by itself
        ("board = jnp.where(places[x_1] == 0, board.at[x].set(1), board)", 1),
    ],
)
def test_a_turn_that_goes_by_what_the_last_one_left_has_no_array_form(turn: str, count: int) -> None:
    found = check_text(CODE.format(turn=turn).encode(), "m.py", Scope(("while-loop-under-vmap",)))
    assert len(found) == count
    assert all(one.suggestion and one.suggestion.text.startswith("the array form") for one in found)


FILLED = """\
import jax
import jax.numpy as jnp

def taken(book, left, at):
    left = left - book[at]
    {write}
    return book, left

def fill(carry):
    at, book, left = carry
    book, left = taken(book, left, at)
    return jnp.argmin(book), book, left

filled = jax.vmap(lambda book, left: jax.lax.while_loop(lambda c: (c[1][c[0]] > 0) & (c[2] > 0), fill, (0, book, left)))
"""


@pytest.mark.parametrize(
    ("write", "advice"),
    [("book = book.at[at].set(0)", "the array form of all turns"), ("left = jnp.abs(left)", "a test of all places")],
)
def test_what_a_helper_of_a_turn_writes_is_no_search_of_what_stands_there(write: str, advice: str) -> None:
    (found,) = check_text(FILLED.format(write=write).encode(), "m.py", Scope(("while-loop-under-vmap",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(advice)
