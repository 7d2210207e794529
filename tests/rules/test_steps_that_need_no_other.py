"""lax-map-for-vmap and write-in-fori-loop: steps that need nothing of one another, as helpers and carries say it."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"
NEAR = """
def is_inside(grid, place):
    return CHECK

def near(grid, place, kind):
    def one(_, offset):
        return None, is_inside(grid, place + offset) & (grid[place[0] + offset[0], place[1]] == kind)

    return jax.lax.scan(one, None, jnp.array([[0, 1], [1, 0]]))[1].any()
"""
PAINTED = """
def painted(board, things, key):
    def paint(CARRY, x):
        BODY

    return jax.lax.scan(paint, START, XS)[0]
"""


def found(code: str) -> list[tuple[str, str]]:
    """The rules, and what they advise."""
    scope = Scope(("lax-map-for-vmap", "write-in-fori-loop"))
    findings = check_text((HEAD + code).encode(), "m.py", scope)
    return [(f.rule, f.suggestion.text if f.suggestion else "") for f in findings]


@pytest.mark.parametrize(
    ("check", "count"),
    [
        pytest.param("(place >= 0).all() & (place[0] < grid.shape[0])", 1, id="arithmetic"),
        pytest.param("(grid @ place).sum() > 0", 0, id="a product for each element"),
        pytest.param("jnp.sort(grid)[place[0]] > 0", 0, id="an order for each element"),
        pytest.param("unseen.check(grid, place)", 0, id="nobody sees what"),
    ],
)
def test_a_helper_is_as_light_as_what_it_does(check: str, count: int) -> None:
    assert len(found(NEAR.replace("CHECK", check))) == count


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param("return board.at[things[x, 0], things[x, 1]].set(1), None", 1, id="places of the data"),
        pytest.param("p = things[x]\n        return board.at[p[0]].set(jnp.sin(p[1])), None", 1, id="under a name"),
        pytest.param("return board.at[things[x]].set(board[things[x]] * 2), None", 0, id="made of what stands there"),
        pytest.param("return board.at[things[x]].set(board[things[x]] + x), None", 1, id="added to what stands there"),
        pytest.param("return board.at[x].set(board[things[x]] + x), None", 0, id="added to what stands elsewhere"),
        pytest.param(
            "new = jnp.where(x > 2, 1, board[things[x]])\n        return board.at[things[x]].set(new), None",
            1,
            id="left alone",
        ),
        pytest.param("b = board[things[x]]\n        return board.at[things[x]].set(b + b), None", 0, id="added twice"),
        pytest.param(
            "return board.at[things[x]].set(jnp.minimum(x, board[things[x]])), None", 1, id="the least of what is there"
        ),
        pytest.param(
            "return board.at[things[x]].set(board[things[x]] + board[things[x]]), None", 0, id="what is there twice"
        ),
        pytest.param("return board.at[things[x]].set(board.sum()), None", 0, id="what others wrote"),
        pytest.param("return board.at[board.argmin()].set(x), None", 0, id="where others wrote"),
        pytest.param("return board.at[things[x]].multiply(2), None", 0, id="twice at one place is not once"),
        pytest.param("return board.at[things[x]].set(1), board", 0, id="each step is kept"),
    ],
)
def test_places_that_the_data_say_are_written_at_once(body: str, count: int) -> None:
    code = PAINTED.replace("CARRY", "board").replace("BODY", body).replace("START", "board")
    assert len(found(code.replace("XS", "jnp.arange(8)"))) == count


@pytest.mark.parametrize(
    ("returned", "count"),
    [
        ("(board, kinds, 3), None", 0),
        ("(board, kinds, n), None", 1),
        ("(board, kinds, n + 1), None", 0),
        ("(board, n, kinds), None", 0),
    ],
)
def test_what_is_handed_on_as_it_is_changes_nothing(returned: str, count: int) -> None:
    body = f"board, kinds, n = carry\n        board = board.at[things[x], n].set(kinds[x])\n        return {returned}"
    code = PAINTED.replace("CARRY", "carry").replace("BODY", body).replace("START", "(board, key, 0)")
    assert len(found(code.replace("XS", "jnp.arange(8)"))) == count


def test_what_is_joined_to_what_stands_there_is_joined_by_the_write() -> None:
    """Where two steps have the same place, a set of all values keeps one of them: the write has to be the sum."""
    for value, method in (("board[things[x]] + x", "add"), ("jnp.maximum(board[things[x]], x)", "max")):
        code = PAINTED.replace("BODY", f"return board.at[things[x]].set({value}), None")
        code = code.replace("CARRY", "board").replace("START", "board").replace("XS", "jnp.arange(8)")
        ((rule, advice),) = found(code)
        assert rule == "write-in-fori-loop"
        assert f"board.at[indices].{method}(values)" in advice
        assert "`x`" in advice


def test_of_two_values_for_one_place_no_scatter_says_which_stays() -> None:
    code = PAINTED.replace("CARRY", "board").replace("START", "board")
    ((_, apart),) = found(
        code.replace("BODY", "return board.at[x].set(jnp.sin(x)), None").replace("XS", "jnp.arange(8)")
    )
    ((_, together),) = found(code.replace("BODY", "return board.at[x[0]].set(x[1]), None").replace("XS", "things"))
    assert "same place" not in apart
    assert "where two steps may have the same place" in together


@pytest.mark.parametrize(
    ("step", "is_a_number"),
    [
        pytest.param("return i + 1, x * i", True, id="counts"),
        pytest.param("i = jnp.where(x > 0, 0, i)\n        return i + 1, i", False, id="begins anew"),
    ],
)
def test_a_number_that_begins_anew_is_none_of_the_step(step: str, is_a_number: bool) -> None:
    code = f"""
def numbered(xs):
    def one(i, x):
        {step}

    return jax.lax.scan(one, 0, xs)[1]
"""
    assert [rule for rule, _ in found(code)] == ["lax-map-for-vmap"] * is_a_number
