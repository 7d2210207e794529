"""What an environment draws to look at is no picture for people: every step pays for its windows and writes."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import functools
import jax
import jax.numpy as jnp

def render_view(state):
    return jax.lax.dynamic_slice(state.grid, state.position, (7, 9))

def make_view(tiles):
    def render(state):
        return tiles + jax.lax.dynamic_slice(state.grid, state.position, (7, 9))

    return render

class Cave:
    def __init__(self, tiles):
        self.view = VIEW

    def reset(self, key):
        return jnp.zeros((64, 64))

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, state, action):
        return state, LOOK

    def render(self, state):
        return render_view(state)
"""


def found(look: str, view: str = "None") -> list[int]:
    code = CODE.replace("LOOK", look).replace("VIEW", view)
    return [f.location.line for f in check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))]


@pytest.mark.parametrize(
    ("look", "lines"),
    [
        pytest.param("render_view(state)", [7], id="each step looks at it"),
        pytest.param("self.seen(state)\n\n    def seen(self, s):\n        return render_view(s)", [7], id="far"),
        pytest.param("state.grid", [], id="people alone look at it"),
    ],
)
def test_what_a_step_draws_is_what_it_returns(look: str, lines: list[int]) -> None:
    assert found(look) == lines


def test_a_function_that_an_environment_makes_to_look_by_is_no_picture_either() -> None:
    assert found("self.view(state)", "jax.jit(make_view(tiles))") == [11]
    assert found("self.view(state)") == []


@pytest.mark.parametrize(("caller", "lines"), [("main_evolve", []), ("test_views", []), ("train", [7])])
def test_what_a_script_s_main_or_a_test_has_drawn_is_for_people(caller: str, lines: list[int]) -> None:
    code = CODE.replace("LOOK", "state.grid").replace("VIEW", "None")
    code += f"\ndef {caller}(s):\n    return jax.vmap(lambda each: render_view(each))(s), jax.random.key(0)\n"
    findings = check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))
    assert [f.location.line for f in findings] == lines


def test_what_an_environment_s_pictures_are_set_up_with_is_not_looked_at() -> None:
    code = (
        CODE
        + """
class Drawing:
    def __init__(self):
        self.masks = jax.vmap(self.draw_mask)(jnp.arange(8))

    def draw_mask(self, i):
        return jax.lax.dynamic_slice(jnp.zeros((64, 64)), (i, i), (7, 9))
"""
    )
    scope = Scope(("vmapped-dynamic-slice",))
    code = code.replace("LOOK", "state").replace("VIEW", "Drawing()")
    assert check_text(code.encode(), "m.py", scope) == ()
    seen = check_text(code.replace("draw_mask", "mask").encode(), "m.py", scope)
    assert [f.location.line for f in seen] == [34]


PLAYED = """
class Played:
    def __init__(self):
        self.state, self.view = start(), Drawing()

    def reset(self):
        self.state = start()
        self.view.render(self.state)

    def step(self, action):
        self.state = moved(self.state, action)
        self.view.render(self.state)

class Drawing:
    def render(self, state):
        show(self.render_view(state))

    @functools.partial(jax.jit, static_argnums=0)
    def render_view(self, states):
        return jax.vmap(lambda s: jax.lax.dynamic_slice(s.grid, s.position, (7, 9)))(states)
"""


@pytest.mark.parametrize(
    ("base", "count"),
    [("", 0), ("(Env)", 1)],  # whose objects a trace may be handed
)
def test_what_somebody_plays_shows_pictures_to_people(base: str, count: int) -> None:
    code = "import functools\nimport jax\n" + PLAYED.replace("Played:", f"Played{base}:")
    assert len(check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))) == count
