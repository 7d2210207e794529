"""What chained-at-set says of the compiled program, on an H100 that need not be here."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import Report
from fusionlint.rules.chained_at_set import rule
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

@jax.vmap
def one_by_one(cells):
    board = jnp.zeros((10, 10))
    for y, x in cells:
        board = board.at[y, x].set(1.0)
    return board

@jax.vmap
def at_once(cells):
    return jnp.zeros((10, 10)).at[cells[:, 0], cells[:, 1]].set(1.0)

@jax.vmap
def apart(cells):
    rows, columns = jnp.zeros(10).at[cells[0]].set(1.0), jnp.zeros(10).at[cells[1]].set(1.0)
    return rows[:, None] * columns

@jax.vmap
def in_a_loop(cells):
    return jax.lax.scan(lambda b, c: (b.at[c[0], c[1]].set(1.0), b.sum()), jnp.zeros((10, 10)), cells)

def on_one_board(x, y):
    board = jnp.zeros((10, 10)).at[x, 0].set(1.0)
    return board.at[y, 1].set(2.0)

def row_and_column(board, x):
    return board.at[x].set(jnp.sin(board[0])).at[:, x].set(2.0)

def needed(row, x, y):
    row = row.at[x].set(jnp.sin(row).sum())
    return row.at[y].set(jnp.cos(row).sum())

def added(x, i, j):
    return x.at[i].add(1.0).at[j].add(2.0)

def added_then_set(x, i, j):
    return x.at[i].add(1.0).at[j].set(0.0)

def set_then_lifted(x, i, j):
    return x.at[i].set(1.0).at[j].max(3.0)

def read_between(x, i, j):
    x = x.at[i].set(1.0)
    return x.at[j].set(2.0), x.sum()

def made_of_what_was_set(x, i, j):
    x = x.at[i].set(1.0)
    return x.at[j].set(x[i] * 2.0)

def ring(buffer, rows, places):
    def step(carry, now):
        (buffer, i), (row, place) = carry, now
        buffer = buffer.at[i % 16].set(row)
        return (buffer, i + 1), jnp.tanh(buffer[place])
    return jax.lax.scan(step, (buffer, 0), (rows, places))

def recurrence(table):
    return jax.lax.fori_loop(2, 64, lambda i, t: t.at[i].set(t[i - 1] * 0.5 + t[i - 2]), table)

def outputs(x, rows):
    return jax.lax.scan(lambda x, row: (x * row + 1.0, x), x, rows, unroll=4)
"""
BOARDS = "i32[512,4,2]"
CALLS = {
    **dict.fromkeys(("one_by_one", "at_once", "apart", "in_a_loop"), BOARDS),
    "on_one_board": "i32[], i32[]",
    "row_and_column": "f32[64,64], i32[]",
    "needed": "f32[64], i32[], i32[]",
    "ring": "f32[16,256], f32[64,256], i32[64]",
    "recurrence": "f32[64]",
    "outputs": "f32[64], f32[100,64]",
    "added": "f32[1000], i32[20], i32[20]",
    "added_then_set": "f32[1000], i32[20], i32[20]",
    "set_then_lifted": "f32[1000], i32[20], i32[20]",
    "read_between": "f32[1000], i32[20], i32[20]",
    "made_of_what_was_set": "f32[1000], i32[20], i32[20]",
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """By function; those of many boards have 512 with four cells each."""
    calls = (f"{name}({given})" for name, given in CALLS.items())
    specs = compilers.written(CODE, calls, tmp_path_factory.mktemp("code"))
    return dict(zip(CALLS, compilers.explained(specs, "h100", (rule,)).values(), strict=True))


def spoken_of(report: Report) -> int:
    return sum(barrier.rule == "chained-at-set" for barrier in report.barriers)


def test_each_scatter_but_the_last_of_a_chain_is_spoken_of(reports: dict[str, Report]) -> None:
    assert spoken_of(reports["one_by_one"]) == 3
    assert reports["one_by_one"].launches > reports["at_once"].launches


def test_a_chain_that_xla_made_updates_in_place_of_is_spoken_of_too(reports: dict[str, Report]) -> None:
    assert spoken_of(reports["on_one_board"])


def test_the_advice_has_the_method_of_the_writes(reports: dict[str, Report]) -> None:
    (told,) = {one.advice for one in reports["added"].barriers if one.rule}
    assert told == "write all places at once: one .at[indices].add(values), with arrays of indices"


@pytest.mark.parametrize("name", ["added_then_set", "set_then_lifted", "read_between", "made_of_what_was_set"])
def test_writes_that_no_one_scatter_says_are_no_chain(reports: dict[str, Report], name: str) -> None:
    """By two methods, or with something between them that needs the first."""
    assert not spoken_of(reports[name])


@pytest.mark.parametrize(
    "name", ["at_once", "apart", "in_a_loop", "row_and_column", "needed", "ring", "recurrence", "outputs"]
)
def test_one_scatter_and_scatters_to_different_arrays_are_not(reports: dict[str, Report], name: str) -> None:
    assert not spoken_of(reports[name])


def test_what_each_turn_begins_anew_and_a_choice_keeps_is_no_array_of_the_loop() -> None:
    """One write of all places would mark those that the choice leaves out."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "@jax.jit\n"
        "def marked(cells, kinds, forces):\n"
        "    seen = jnp.zeros(8)\n"
        "    for kind in kinds:\n"
        "        new = seen.at[kind].set(1.0)\n"
        "        new = new.at[forces[kind] + 4].set(1.0)\n"
        "        seen = jnp.where(cells[kind] > 0, new, seen)\n"
        "    return seen\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("chained-at-set",)))
    assert found.message.startswith("`new` is written 2 times in a row")
    assert found.location.line == 6
