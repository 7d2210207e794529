"""write-in-fori-loop: one number is no row of values."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import compilers
import pytest

from fusionlint.rule import all_rules
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

WALL = -1

@jax.jit
def walled(maze, x, y, height, rows):
    return jax.lax.fori_loop(y, y + height, lambda i, maze: maze.at[i, x].set({value}), maze)
"""
MASK = "the mask of comparisons of jnp.arange along each axis with the first and the last place"


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("WALL", f"`jnp.where(mask, WALL, maze)`, {MASK}, or one `maze.at[indices].set(WALL)`"),
        ("1.0", f"`jnp.where(mask, 1.0, maze)`, {MASK}, or one `maze.at[indices].set(1.0)`"),
        (
            "rows[i]",
            "`jnp.where` of a comparison with jnp.arange, "
            "or jax.vmap for all the values of `rows[i]` and one `maze.at[indices].set(values)`",
        ),
    ],
)
def test_of_one_number_there_are_no_values_to_be_made(value: str, advice: str) -> None:
    (found,) = check_text(CODE.format(value=value).encode(), "m.py", Scope(("write-in-fori-loop",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


PLACES = """\
import jax

@jax.jit
def halved(x, first):
    def step(i, x):
        before = x.sum() * i
        return x.at[PLACE].set(x[PLACE] * 0.5)

    return jax.lax.fori_loop(0, 32, step, x)
"""


@pytest.mark.parametrize(
    ("place", "is_own"),
    [
        ("i", True),
        ("i + 1", True),
        ("first + i", True),
        ("31 - i", True),
        ("first + i - 1", True),
        ("2 * i", False),
        ("i - i", False),
        ("i + before", False),
        ("i % 4", False),
    ],
)
def test_each_step_has_a_place_of_its_own_that_is_as_far_from_it(place: str, is_own: bool) -> None:
    code = PLACES.replace("PLACE", place)
    if "before" not in place:
        code = code.replace("        before = x.sum() * i\n", "")
    found = check_text(code.encode(), "m.py", Scope(("write-in-fori-loop",)))
    assert len(found) == is_own


def test_what_the_step_before_left_at_another_place_is_needed() -> None:
    code = PLACES.replace("        before = x.sum() * i\n", "").replace("x[PLACE] * 0.5", "x[i] * 0.5")
    scope = Scope(("write-in-fori-loop",))
    assert not check_text(code.replace("PLACE", "i + 1").encode(), "m.py", scope)
    assert len(check_text(code.replace("PLACE", "i").encode(), "m.py", scope)) == 1


@pytest.mark.compilers
@pytest.mark.parametrize("name", ["h100", "v5e"])
def test_writes_of_a_mapped_loop_are_known_also_where_a_tpu_packs_their_places(name: str, tmp_path: Path) -> None:
    code = """
    import jax
    import jax.numpy as jnp

    def seen(boards):
        def one(board):
            empty = jnp.zeros((16, 31), dtype=bool)
            return jax.lax.fori_loop(0, 16, lambda i, seen: seen.at[i, board[i]].set(True), empty)
        return jax.vmap(one)(boards)
    """
    calls = compilers.written(dedent(code), ["seen(i32[64,16])"], tmp_path)
    (report,) = compilers.explained(calls, name, all_rules()).values()
    assert compilers.told(report) == {"write-in-fori-loop"}
