"""reset-in-every-step: what is a step, a reset with a key, and the end of an episode."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

class Game:
    def step(self, key, state, action):
        new, done = self.moved(state, action)
        start = self.reset(key)
        return jnp.where(done, start, new)
"""


def found(code: str) -> list[tuple[int, str]]:
    findings = check_text(code.encode(), "m.py", Scope(("reset-in-every-step",)))
    return [(f.location.line, f.suggestion.text if f.suggestion else "") for f in findings]


def test_the_advice_names_what_resets() -> None:
    ((line, advice),) = found(CODE)
    assert line == 8
    assert advice.startswith("for a whole batch: jax.vmap(self.reset) of a few keys")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("def step(", "def step_env(", id="another step"),
        pytest.param("self.reset(key)", "self.env.reset_env(rng_reset)", id="of what is wrapped"),
        pytest.param("self.reset(key)", "self.reset(state.key, 3)", id="a key that the state keeps"),
        pytest.param("where(done, start, new)", "where(new.done[:, None], start, new)", id="done of the state"),
        pytest.param("jnp.where(done, start, new)", "jax.lax.select(done, start.at, new)", id="a select of a part"),
        pytest.param("jnp.where(done, start, new)", "jax.tree.map(lambda a, b: jnp.where(done, a, b), start, new)"),
        pytest.param(
            "return jnp.where(done, start, new)",
            "def pick(a, b):\n            return jnp.where(done, a, b)\n\n"
            "        return jax.tree_util.tree_map(pick, start, new)",
            id="leaf by leaf by name",
        ),
    ],
)
def test_every_element_begins_anew_in_each_step(old: str, new: str) -> None:
    assert old in CODE
    assert len(found(CODE.replace(old, new))) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("def step(", "def train(", id="no step"),
        pytest.param("self.reset(key)", "self.reset()", id="the same each time"),
        pytest.param("self.reset(key)", "self.reset(state)", id="no draw"),
        pytest.param("self.reset(key)", "self.first(key)", id="no reset"),
        pytest.param("where(done, start, new)", "where(action > 0, start, new)", id="not where an episode ends"),
        pytest.param("jnp.where(done, start, new)", "start, new, done", id="nothing is chosen"),
        pytest.param("where(done, start, new)", "where(start.done, new, state)", id="asked, not taken"),
        pytest.param("jnp.where(done, start, new)", "jax.tree.map(lambda a, b: a + b, start, new)", id="a sum"),
    ],
)
def test_a_start_that_is_cheap_or_needed_is_none(old: str, new: str) -> None:
    assert old in CODE
    assert found(CODE.replace(old, new)) == []


@pytest.mark.parametrize(
    ("otherwise", "number"), [("start = state.first", 0), ("start = self.reset_env(key)", 2), ("", 1)]
)
def test_starts_that_are_kept_are_there_for_the_asking(otherwise: str, number: int) -> None:
    chosen = "if self.is_full:\n            start = self.reset(key)"
    if otherwise:
        chosen += f"\n        else:\n            {otherwise}"
    assert len(found(CODE.replace("start = self.reset(key)", chosen))) == number


def test_starts_that_a_caller_may_hand_are_no_option() -> None:
    chosen = "if start is None:\n            start = self.reset(key)\n        else:\n            start = start.first"
    code = CODE.replace("start = self.reset(key)", chosen).replace("state, action)", "state, action, start=None)", 1)
    assert len(found(code)) == 1


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        ("jax.tree.map(lambda a, b: jnp.where(done, a, b), upcoming, level)", 0),
        ("jax.lax.select(done, upcoming, level)", 0),
        ("level", 1),
    ],
)
def test_what_each_element_is_handed_for_its_next_episode_gives_no_start_to_another(chosen: str, count: int) -> None:
    code = CODE.replace("action):", "action, level, upcoming):").replace("reset(key)", "reset(key, upcoming)")
    code = code.replace("return jnp.where(done, start, new)", f"return jnp.where(done, start, new), {chosen}")
    assert len(found(code)) == count


ALIKE = "\nclass Alike:\n    def reset(self, key):\n        return self.first\n"
DRAWN = "\nclass Drawn:\n    def reset(self, key):\n        return jax.random.uniform(key)\n"
HANDED_ON = "\nclass Around:\n    def reset(self, key):\n        return self.env.reset(key)\n"
ABSTRACT = "\nclass Base:\n    def reset(self, key):\n        raise NotImplementedError\n"


@pytest.mark.parametrize(
    ("resets", "count"),
    [
        pytest.param(ALIKE, 0, id="all alike"),
        pytest.param(ALIKE + HANDED_ON, 0, id="and one around others"),
        pytest.param(ALIKE + DRAWN, 1, id="another draws"),
        pytest.param(HANDED_ON, 1, id="of whatever is wrapped"),
        pytest.param(ABSTRACT, 1, id="left to those derived"),
        pytest.param(ALIKE.replace("(self, key)", "(self)"), 1, id="no key at all"),
        pytest.param(ALIKE.replace("self.first", "State(self.first, key=key)"), 1, id="a key that the state keeps"),
    ],
)
def test_starts_that_ask_their_key_nothing_are_all_the_same(resets: str, count: int) -> None:
    assert len(found(CODE + resets)) == count
