"""chosen-at-set: choices between an array and the same array written at one place."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("chosen-at-set",))


def lines(body: str) -> list[int]:
    """Lines of the findings in a jitted function of these arguments, counted from the body's first."""
    head = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(p, q, x, y, i, j, v, w):\n"
    code = head + "".join(f"    {line}\n" for line in body.splitlines())
    return [found.location.line - head.count("\n") for found in check_text(code.encode(), "m.py", SCOPE)]


@pytest.mark.parametrize(
    "body",
    [
        "new = jnp.where(p, x.at[i].set(v), x)\nnew = jnp.where(q, x.at[i].set(w), new)\nreturn new",
        "a = jnp.where(p, x.at[i].set(v), x)\nreturn jnp.where(q, x.at[i].set(w), a)",
        "return jnp.where(p, x.at[i].set(v), jnp.where(q, x.at[i].set(w), x))",
        "new = jax.lax.select(p, x, x.at[i, j].set(v))\nreturn jax.lax.select(q, x.at[i, j].set(w), new)",
    ],
    ids=["one name", "a name each", "nested", "either side"],
)
def test_values_at_one_place_are_chosen_before_they_are_written(body: str) -> None:
    assert lines(body) == [1]


@pytest.mark.parametrize(
    "body",
    [
        "new = jnp.where(p, x.at[i].set(v), x)\nreturn jnp.where(q, x.at[j].set(w), new)",
        "new = jnp.where(p, x.at[i].set(v), x)\nreturn jnp.where(q, y.at[i].set(w), new)",
        "new = jnp.where(p, x.at[i].set(v), x)\nx = y\nreturn jnp.where(q, x.at[i].set(w), new)",
        "new = jnp.where(p, x.at[i].set(v), y)\nreturn jnp.where(q, x.at[i].set(w), new)",
        "new = jnp.where(p, x.at[i].set(v), x)\ntotal = new.sum()\nreturn jnp.where(q, x.at[i].set(w), new), total",
        "new = jnp.where(p, x.at[i].add(v), x)\nreturn jnp.where(q, x.at[i].add(w), new)",
        "return jnp.where(p, x.at[i].set(v), x)",
    ],
    ids=["two places", "two arrays", "renamed", "from another", "read between", "added", "one"],
)
def test_other_choices_need_the_whole_array(body: str) -> None:
    assert lines(body) == []


def test_choices_that_read_what_they_write_are_told_to_choose_the_value() -> None:
    code = """
import jax
import jax.numpy as jnp

@jax.jit
def wrapped(q, low, high):
    q = jnp.where(q[5] <= low, q.at[5].set(q[5] + 6.28), q)
    return jnp.where(q[5] >= high, q.at[5].set(q[5] - 6.28), q)
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("q.at[5].set(value), once, with the choices made of the value alone")
    (other,) = check_text(code.replace("q.at[5].set(q[5] - ", "q.at[4].set(low - ").encode(), "m.py", SCOPE)
    assert other.suggestion is not None
    assert other.suggestion.text.startswith("one `q.at[places].set(values)`")


def test_a_choice_of_two_writes_is_not_of_one_place() -> None:
    """To say of it "once, to that place" would lose the other write."""
    code = """
import jax

@jax.jit
def moved(p, q, grid, y, x, tile, floor):
    grid = jax.lax.select(p, grid.at[y + 1, x].set(tile).at[y, x].set(floor), grid)
    return jax.lax.select(q, grid.at[y - 1, x].set(tile).at[y, x].set(floor), grid)
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("one `grid.at[places].set(values)`")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("d = jnp.where(p, x.d.at[i].set(v), x.d)\nreturn jnp.where(p, d.at[j].set(v), d)", [1]),
        ("d = jnp.where(p, x.d.at[i].set(v), x.e)\nreturn jnp.where(p, d.at[j].set(v), d)", []),
        ("return jnp.where(p, x.d.at[i].set(v), x.d)", []),
    ],
    ids=["a field, then its successor", "another field", "a single choice"],
)
def test_what_is_written_first_may_be_a_field(body: str, found: list[int]) -> None:
    assert lines(body) == found


def told(code: str) -> list[str]:
    head = "import jax\nimport jax.numpy as jnp\n\n"
    return [str(found.suggestion) for found in check_text((head + code).encode(), "m.py", SCOPE)]


def test_a_single_choice_is_said_to_be_compared_where_a_vmap_makes_a_scatter_of_it() -> None:
    code = (
        "def one(x, i, p, v):\n    return jax.tree.map(lambda a, b: jnp.where(p, a.at[i].set(b), a), x, v)\n\nf = {}\n"
    )
    assert told(code.format("one")) == []
    (write,) = told(code.format("jax.vmap(one)"))
    assert "jnp.where(p & (jnp.arange(n) == i), b, a)" in write


@pytest.mark.parametrize(
    ("choice", "compared"),
    [
        ("jnp.where(p > 0, x.at[i].set(v), x)", "jnp.where((p > 0) & (jnp.arange(n) == i), v, x)"),
        ("jnp.where(p, x, x.at[i].set(v))", "jnp.where(~p & (jnp.arange(n) == i), v, x)"),
        ("jax.lax.select(p == 1, x, x.at[i].add(v))", "jnp.where(~(p == 1) & (jnp.arange(n) == i), changed, x)"),
        (f"jnp.where({'p + ' * 12}p, x.at[i].set(v), x)", "jnp.where(p & (jnp.arange(n) == i), v, x)"),
    ],
)
def test_what_a_single_choice_asks_and_writes_is_said_with_it(choice: str, compared: str) -> None:
    (write,) = told(f"@jax.vmap\ndef one(x, i, p, v):\n    return {choice}\n")
    assert compared in write


def test_a_single_choice_of_what_a_loop_carries_is_made_of_the_value() -> None:
    (write,) = told(
        "def one(x, steps):\n"
        "    def step(x, given):\n"
        "        idx, p, v = given\n"
        "        return jnp.where(p, x.at[idx, 0].set(v), x), None\n\n"
        "    return jax.lax.scan(step, x, steps)[0]\n\n"
        "f = jax.vmap(one)\n"
    )
    assert "x.at[idx, 0].set(value)" in write


@pytest.mark.parametrize("place", ["0", ":3", "k", "i > 0"])
def test_a_single_choice_of_a_part_or_of_a_known_place_is_left_alone(place: str) -> None:
    code = f"K = 3\nk = 3\n\n@jax.vmap\ndef one(x, i, p, v):\n    return jnp.where(p, x.at[{place}].set(v), x)\n"
    assert told(code) == []


@pytest.mark.parametrize(("found", "is_told"), [("jnp.nonzero(x, size=2)[0]", False), ("jnp.argmax(x)", True)])
def test_what_is_found_twice_is_no_one_place(found: str, *, is_told: bool) -> None:
    code = f"@jax.vmap\ndef one(x, p):\n    i = {found}\n    return jnp.where(p, x.at[i].set(1), x)\n"
    assert bool(told(code)) == is_told
