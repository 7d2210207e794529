"""stencil-by-copies: the one array that it advises has at its ends what filled the gap of each shifted copy."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("stencil-by-copies",))
HEAD = "import jax.numpy as jnp\n"


def advice(behind: str, ahead: str) -> str:
    body = f"    behind = {behind}\n    ahead = {ahead}\n    return ahead - behind\n"
    (found,) = check_text(f"{HEAD}def slope(x, start, end):\n{body}".encode(), "m.py", ONLY)
    assert found.suggestion is not None
    return found.suggestion.text


@pytest.mark.parametrize(
    ("behind", "ahead"),
    [
        ("1, axis=0", "-1, axis=0"),
        ("+1, 0", "-1, 0"),
        ("shift=1, axis=0", "shift=-1, axis=0"),
        ("shift=+1, axis=0", "-1, 0"),
    ],
)
def test_rolls_however_they_say_how_far(behind: str, ahead: str) -> None:
    text = advice(f"jnp.roll(x, {behind})", f"jnp.roll(x, {ahead})")
    assert text.startswith('p = jnp.pad(x, ((1, 1), ...), mode="wrap") once')


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        pytest.param("x[-1:]", "x[:1]", ', mode="wrap"', id="the other end"),
        pytest.param("x[:1]", "x[-1:]", ', mode="edge"', id="its own end"),
        pytest.param("jnp.zeros((1, 8))", "jnp.zeros_like(x[:1])", "", id="zeros"),
        pytest.param("jnp.full((1, 8), 2)", "jnp.full((1, 8), 2)", ", constant_values=2", id="one number"),
    ],
)
def test_one_pad_where_both_ends_are_alike(start: str, end: str, told: str) -> None:
    text = advice(f"jnp.concatenate([{start}, x[:-1]])", f"jnp.concatenate([x[1:], {end}])")
    assert text.startswith(f"p = jnp.pad(x, ((1, 1), ...){told}) once")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param("jnp.zeros((1, 8))", "jnp.full((1, 8), -jnp.inf)", id="two numbers"),
        pytest.param("x[:1]", "x[:1]", id="the first at both"),
        pytest.param("start", "end", id="two arrays"),
        pytest.param("start", "start", id="an array at both"),
    ],
)
def test_no_pad_where_the_ends_differ_or_are_arrays(start: str, end: str) -> None:
    text = advice(f"jnp.concatenate([{start}, x[:-1]])", f"jnp.concatenate([x[1:], {end}])")
    assert text.startswith(f"p = jnp.concatenate([{start}, x, {end}]) once")


def test_the_end_that_a_roll_brings_round_is_kept_beside_another() -> None:
    text = advice("jnp.roll(x, 1, axis=0)", "jnp.concatenate([x[1:], end])")
    assert text.startswith("p = jnp.concatenate([x[-1:], x, end]) once")


def test_two_rows_of_its_own_end_are_no_edge() -> None:
    text = advice("jnp.concatenate([x[:2], x[:-2]])", "jnp.concatenate([x[2:], x[-2:]])")
    assert text.startswith("p = jnp.concatenate([x[:2], x, x[-2:]]) once")


@pytest.mark.parametrize(
    ("axis", "widths", "slices"),
    [
        (0, "(1, 1), ...", "p[2:] and p[:-2]"),
        (2, "(0, 0), (0, 0), (1, 1), ...", "p[:, :, 2:] and p[:, :, :-2]"),
        (-1, "..., (1, 1)", "p[..., 2:] and p[..., :-2]"),
        (-2, "..., (1, 1), (0, 0)", "p[..., 2:, :] and p[..., :-2, :]"),
    ],
)
def test_the_array_is_padded_and_cut_along_the_axis_of_the_neighbours(axis: int, widths: str, slices: str) -> None:
    text = advice(f"jnp.roll(x, 1, axis={axis})", f"jnp.roll(x, -1, axis={axis})")
    assert text == f'p = jnp.pad(x, ({widths}), mode="wrap") once, and slices of it: {slices} beside x'


def test_neighbours_farther_away_take_as_wide_a_border() -> None:
    rolls = "7 * jnp.roll(x, -1, axis=1) - jnp.roll(x, 1, axis=1) - jnp.roll(x, -2, axis=1)"
    (found,) = check_text(f"{HEAD}def face(x):\n    return 7 * x + {rolls}\n".encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert found.suggestion.text == (
        'p = jnp.pad(x, ((0, 0), (1, 2), ...), mode="wrap") once, and slices of it: p[:, 3:] and p[:, :-3] beside x'
    )


def test_several_expressions_of_a_function_are_one_finding() -> None:
    code = """
import jax.numpy as jnp

def divergence(field, other, h):
    x = (jnp.roll(field[0], -1, axis=0) - jnp.roll(field[0], 1, axis=0)) / h
    y = (jnp.roll(field[1], -1, axis=1) - jnp.roll(field[1], 1, axis=1)) / h
    z = (jnp.roll(other, -1, axis=1) - jnp.roll(other, 1, axis=1)) / h
    return x + y + z

def slope(field, h):
    return (jnp.roll(field, -1, axis=0) - jnp.roll(field, 1, axis=0)) / h
"""
    found = check_text(code.encode(), "m.py", ONLY)
    assert [one.location.line for one in found] == [5, 7, 11]
    assert [one.message.partition(", and so are ")[2] for one in found] == ["those of 1 more expression below", "", ""]


def test_of_copies_of_copies_the_array_that_all_are_made_of_is_told() -> None:
    code = f"""{HEAD}
def bracket(f, g):
    ahead = jnp.roll(f, -1, 0)
    behind = jnp.roll(f, 1, 0)
    corners = (jnp.roll(ahead, -1, 1) - jnp.roll(ahead, 1, 1)) * g
    return (jnp.roll(f, -1, 0) - jnp.roll(f, 1, 0)) * corners - behind
"""
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.message.startswith("each neighbour of `f` is")
