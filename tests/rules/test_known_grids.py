"""chained-at-set: grids of which a trace knows the places, or all there is."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("chained-at-set",))
HEAD = """
import jax
import jax.numpy as jnp
from flax import struct

class Params(struct.PyTreeNode):
    width: int = struct.field(pytree_node=False, default=9)
    column: int = 3

_wall = jnp.array([4, 2])

def room(height, width):
    grid = jnp.zeros((height, width, 2), jnp.uint8)
    return grid.at[0, 0:width].set(_wall)

@jax.jit
def turned(params: Params, grid, first, last, row):
"""


def lines(body: str) -> list[int]:
    """Lines of the findings in a compiled function of these arguments, counted from the body's first."""
    code = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return [found.location.line - HEAD.count("\n") for found in check_text(code.encode(), "m.py", SCOPE)]


@pytest.mark.parametrize(
    ("end", "found"),
    [("params.width - 1", []), ("grid.shape[1] - 2", []), ("params.column", [2]), ("row", [2])],
)
def test_known_places_of_a_grid_are_part_of_the_choice_that_reads_them(end: str, found: list[int]) -> None:
    """Measured under a vmap on an H100: one kernel as they stand, six with a scatter for each side."""
    choice = "grid.at[1, end].set(first).at[7, end].set(last)"
    assert lines(f"end = {end}\nreturn jnp.where(row > 0, {choice}, grid)") == found


def test_known_places_that_are_handed_out_are_kernels() -> None:
    assert lines("return grid.at[1, 5].set(first).at[7, 5].set(last)") == [1]


@pytest.mark.parametrize(
    ("made", "found"),
    [("room(9, params.width)", []), ("room(9, 9).at[2, 2].set(_wall)", []), ("room(9, params.column)", [2])],
)
def test_what_a_function_makes_of_what_is_known_is_folded(made: str, found: list[int]) -> None:
    body = f"grid = {made}\ngrid = grid.at[1, 3].set(_wall).at[5, 3].set(_wall)\n"
    assert lines(f"{body}return jnp.roll(grid, row)") == found


def test_arrays_of_places_are_scatters_known_or_not() -> None:
    assert lines("return jnp.tanh(grid.at[..., Params.GAS].set(first).at[..., Params.DUST].set(last))") == [1]


@pytest.mark.parametrize(("end", "found"), [("params.width - 1", 0), ("params.column", 1)])
def test_a_choice_between_writes_at_known_places_is_one_of_elements(end: str, found: int) -> None:
    """As above: what stands there is one kernel under a vmap already."""
    first, last = (f"grid.at[1, {end}].set({one}).at[7, {end}].set({other})" for one, other in ("ab", "ba"))
    body = f"    a, b = first, last\n    return jax.lax.select(row > 0, {first}, {last})\n"
    code = f"{HEAD}{body}\nbatched = jax.vmap(turned, in_axes=(None, 0, 0, 0, 0))\n"
    assert len(check_text(code.encode(), "m.py", Scope(("chosen-at-set",)))) == found
