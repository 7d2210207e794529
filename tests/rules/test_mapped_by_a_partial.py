"""What `@functools.partial(jax.vmap, in_axes=...)` maps differs from element to element, known or not, unless it is
a few; what an environment's helper is handed differs where one of its calls hands what does."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import functools
import jax
import jax.numpy as jnp

@functools.partial(AXES)
def window(image, place, size):
    return jax.lax.dynamic_slice(image, (place, place), (8, 8))

def windows(images, places, sizes):
    CALL
"""
MAPPED = {
    "both": ("jax.vmap, in_axes=(0, 0, None)", "return window(images, places, 8)", 1),
    "without a keyword": ("jax.vmap, (0, 0, None)", "return window(images, places, 8)", 1),
    "the image alone": ("jax.vmap, in_axes=(0, None, None)", "return window(images, places, 8)", 0),
    "not called here": ("jax.vmap, in_axes=(0, 0, 0)", "pass", 1),
    "over what is counted": ("jax.vmap, in_axes=(None, 0, None)", "return window(images, jnp.arange(8), 8)", 1),
    "over a few": ("jax.vmap, in_axes=(None, 0, None)", "return window(images, jnp.arange(4), 8)", 0),
    "over numbers": ("jax.vmap, in_axes=(None, 0, None)", "return window(images, jnp.array([1, -4]), 8)", 0),
    "by another transform": ("jax.jit, static_argnums=2", "return window(images, places, 8)", 0),
}


@pytest.mark.parametrize(("axes", "call", "count"), MAPPED.values(), ids=MAPPED)
def test_a_window_of_each_element(axes: str, call: str, count: int) -> None:
    code = CODE.replace("AXES", axes).replace("CALL", call)
    assert len(check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))) == count


@pytest.mark.parametrize(("axes", "count"), [("axes", 1), ("self.axes", 1), ("world_dims", 1), ("axis", 0), ("0", 0)])
def test_axes_by_a_name_are_several(axes: str, count: int) -> None:
    code = f"import jax, jax.numpy as jnp\n@jax.vmap\ndef f(x, shift):\n    return jnp.roll(x, -shift, {axes})\n"
    assert len(check_text(code.encode(), "m.py", Scope(("vmapped-roll",)))) == count


GAME = """
import jax
import jax.numpy as jnp

class Game:
    def init(self, key):
        return jnp.zeros(64)

    def step(self, state, action):
        return moved(state, action)

def moved(state, action):
    shifts = jnp.array([1, -1, 8, -8])

    def turn(i, board):
        return board | rolled(state.board, HANDED)

    return jax.lax.fori_loop(0, 4, turn, state.board)

def rolled(board, shift):
    return jnp.roll(board, shift)
"""


@pytest.mark.parametrize(("handed", "count"), [("action", 1), ("shifts[i]", 0), ("8", 0), ("*state.moves", 1)])
def test_what_a_helper_of_a_game_is_handed(handed: str, count: int) -> None:
    assert len(check_text(GAME.replace("HANDED", handed).encode(), "m.py", Scope(("vmapped-roll",)))) == count


@pytest.mark.parametrize(("rows", "count"), [("jnp.arange(4)", 0), ("jnp.arange(5)", 1), ("places", 1)])
def test_what_a_vmap_of_a_vmap_is_handed_is_seen(rows: str, count: int) -> None:
    code = f"""\
import jax
import jax.numpy as jnp


def fits(board, row, column):
    return jnp.all(jax.lax.dynamic_slice(board, (row, column), (3, 3)) == 0)


every = jax.vmap(jax.vmap(fits, in_axes=(None, 0, None)), in_axes=(None, None, 0))


@jax.jit
def placed(board, places):
    return every(board, {rows}, {rows})
"""
    found = check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))
    assert len(found) == count
