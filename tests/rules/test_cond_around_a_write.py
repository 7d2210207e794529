"""cond-around-a-write: what counts as a write of a place."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax

def counted(pages, counts):
    def step(i, counts):
        def one(counts):
            return {write}

        return jax.lax.cond(pages[i] >= 0, one, lambda counts: counts, counts)

    return jax.lax.fori_loop(0, 64, step, counts)
"""


@pytest.mark.parametrize(
    ("write", "count"),
    [
        ("counts.at[pages[i]].add(1)", 1),
        ('counts.at["page", pages[i]].add(1)', 1),
        ('counts.at["row", i, "page", pages[i]].set(0)', 1),
        ('counts.at["page"].set(pages)', 0),
        ('counts.at["row", "page"].set(pages)', 0),
    ],
    ids=["a place", "of a named axis", "of two", "a leaf of a tree", "a leaf within one"],
)
def test_a_place_may_stand_behind_the_name_of_its_axis(write: str, count: int) -> None:
    code = CODE.format(write=write)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-a-write",)))) == count


@pytest.mark.parametrize(
    ("value", "count"),
    [("hax.where(pages[i] > 9, -1, i)", 1), ("hax.dot(pages, counts, axis='page')", 0)],
    ids=["elementwise work", "a product"],
)
def test_what_haliax_does_element_by_element_is_small(value: str, count: int) -> None:
    code = "import haliax as hax\n" + CODE.format(write=f'counts.at["page", i].set({value})')
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-a-write",)))) == count


@pytest.mark.parametrize(("module", "count"), [("equinox.internal", 1), ("somebody.loops", 0)])
def test_the_loops_of_equinox_run_their_bodies_in_every_step(module: str, count: int) -> None:
    code = f"""
import jax
import {module} as loops

def filled(table, rows):
    def step(state):
        i, table = state
        return i + 1, jax.lax.cond(rows[i, 0] > 0, lambda: table.at[i].set(rows[i]), lambda: table)

    return loops.while_loop(lambda state: state[0] < 8, step, (0, table), kind="lax")
"""
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-a-write",)))) == count


KEPT = """
import jax

def keep(table, row):
    {first}
    return table

def filled(table, rows):
    step = lambda table, row: (jax.lax.cond(row[0] > 0, lambda t, r: t.at[0].set(r), keep, table, row), None)
    return jax.lax.scan(step, table, rows)[0]
"""


@pytest.mark.parametrize(("first", "count"), [("del row", 1), ("'Keeps it.'", 1), ("table = 2 * table", 0)])
def test_what_a_branch_does_not_need_it_may_let_go(first: str, count: int) -> None:
    code = KEPT.format(first=first)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-a-write",)))) == count


BOOK = """
import jax
import jax.numpy as jnp

def matched(book, order):
    return jax.lax.while_loop(lambda book: book[0] > order[0], lambda book: book - order[0], book)

def traded(book, order):
    def limit(book, order): return {limit}
    def cancel(book, order): return book.at[order[1]].set(0)
    def nothing(book, order): return book
    def step(book, order): return jax.lax.switch(order[2], ({branches}), book, order), None
    return jax.lax.scan(step, book, order)[0]
"""


@pytest.mark.parametrize(
    ("limit", "branches", "count"),
    [
        ("matched(book, order)", "limit, cancel, nothing", 0),
        ("book.at[order[0]].set(order[1])", "limit, cancel, nothing", 1),
        ("matched(book, order)", "cancel, nothing", 1),
    ],
)
def test_a_branch_that_loops_keeps_the_switch(limit: str, branches: str, count: int) -> None:
    """Nobody matches an order without the conditional to write one row in another case."""
    code = BOOK.format(limit=limit, branches=branches)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-around-a-write",)))) == count
