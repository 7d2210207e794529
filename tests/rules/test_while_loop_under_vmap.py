"""while-loop-under-vmap: of turns whose order matters nothing is said."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

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
