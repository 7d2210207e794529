"""examples/freeway plays gymnax's own games, in a third of the launches."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compilers
import pytest

from fusionlint.rule import all_rules
from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

pytestmark = pytest.mark.compilers

EXAMPLE = Path(__file__).parents[1] / "examples" / "freeway"
GAMES, STEPS = 256, 16
ORIGINAL_ON_H100 = 74  # benchmarks/gymnax_envs.py measures it: compiling it takes a minute


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """gymnax's Freeway, and the example's."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    pytest.importorskip("gymnax", reason="gymnax is not installed: pip install 'fusionlint[examples]'")
    monkeypatch.syspath_prepend(EXAMPLE)
    yield importlib.import_module("gymnax.environments.minatar.freeway").MinFreeway(), _example().Freeway()
    sys.modules.pop("freeway", None)


def _example() -> Any:
    return importlib.import_module("freeway")


def _random_states(environment: Any, key: Any) -> Any:
    """States of every kind, one for each game: chickens about to win, cars about to leave, to arrive and to hit."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(key, 6)
    _, state = jax.vmap(environment.reset, (0, None))(jax.random.split(keys[0], GAMES), environment.default_params)
    x = jax.random.randint(keys[1], (GAMES, 8), 0, 10)
    timer = jax.random.randint(keys[2], (GAMES, 8), 0, 3)
    return state.replace(
        cars=jnp.stack([x, state.cars[..., 1], timer, state.cars[..., 3]], axis=-1),
        pos=jax.random.randint(keys[3], (GAMES,), 1, 10),
        move_timer=jax.random.randint(keys[4], (GAMES,), 0, 2),
        time=jax.random.randint(keys[5], (GAMES,), 2470, 2500),  # some games end
    )


def test_it_plays_the_same_games(environments: tuple[Any, Any]) -> None:
    import jax
    import numpy as np

    params = environments[0].default_params
    keys = jax.random.split(jax.random.key(1), (STEPS, GAMES))
    actions = jax.random.randint(jax.random.key(2), (STEPS, GAMES), 0, 3)

    def played(environment: Any) -> Any:
        def step(state: Any, given: Any) -> Any:
            observation, state, *told = jax.vmap(environment.step, (0, 0, 0, None))(given[0], state, given[1], params)
            return state, (observation, state, told)

        states = _random_states(environment, jax.random.key(0))
        return jax.jit(lambda: jax.lax.scan(step, states, (keys, actions))[1])()

    expected, found = map(played, environments)
    jax.tree.map(np.testing.assert_array_equal, expected, found)
    assert jax.tree.map(lambda one: one.dtype, expected) == jax.tree.map(lambda one: one.dtype, found)
    _, states, (rewards, terminated, truncated, _) = expected
    assert rewards.sum() > 5  # some cross the road
    assert (terminated | truncated).sum() > 5
    assert ((states.pos[1:] == 9) & (states.pos[:-1] < 8)).sum() > 5  # some are hit, or start again


def test_a_third_of_the_launches_on_h100() -> None:
    pytest.importorskip("gymnax", reason="gymnax is not installed: pip install 'fusionlint[examples]'")
    report = compilers.explained({"rewritten": f"{EXAMPLE / 'step.py'}:rewritten"}, "h100", all_rules())["rewritten"]
    assert report.launches <= ORIGINAL_ON_H100 / 3
    assert "chained-at-set" not in compilers.told(report)


def test_check_finds_nothing_in_it() -> None:
    assert not check_files(sorted(EXAMPLE.glob("*.py")), Scope(tuple(rule.name for rule in all_rules()))).findings
