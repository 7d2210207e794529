"""Programs of public packages as they are, which a worker imports: `package_steps.py:pgx_go_9x9`, `:jumanji_Maze`.

    pip install gymnax==1.0.1 pgx==2.6.0 jumanji==1.1.2 jax-tqdm evosax==0.3.2 craftax==1.6.1

Those in which `check` finds something that it can fix. Of a package of environments one step of 1024 of them, with
resets where the package has them; of evosax one generation of 256 points of 64 numbers. The arguments are states as the
package itself makes them at the start, and its own samples of actions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from gymnax_envs import ENVIRONMENTS, environment

BATCH = 1024
POINTS, NUMBERS = 256, 64

Made = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]


def _of_many(step: Callable[..., Any], start: Callable[[jax.Array], Any]) -> Made:
    """The vectorized step, and what makes arguments for it of so many keys."""
    return jax.vmap(step), lambda: jax.jit(jax.vmap(start))(jax.random.split(jax.random.PRNGKey(0), BATCH))


def _gymnax(name: str) -> Made:
    return _of_many(*environment(ENVIRONMENTS[name]))


def _pgx(name: str) -> Made:
    import pgx

    env = pgx.make(name)

    def start(key: jax.Array) -> Any:
        state = env.init(key)
        return state, jnp.argmax(state.legal_action_mask).astype(jnp.int32), key

    return _of_many(env.step, start)


def _jumanji(name: str) -> Made:
    import jumanji

    env = jumanji.make(name)
    action = env.action_spec.generate_value()

    def start(key: jax.Array) -> Any:
        state, _ = env.reset(key)
        return state, jnp.asarray(action)

    return _of_many(env.step, start)


def _craftax(name: str) -> Made:
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name(name, auto_reset=True)
    params = env.default_params

    def start(key: jax.Array) -> Any:
        _, state = env.reset(key, params)
        return key, state, env.action_space(params).sample(key)

    return _of_many(functools.partial(env.step, params=params), start)


def _evosax(name: str) -> Made:
    from evosax import algorithms

    found = {**algorithms.distribution_based_algorithms, **algorithms.population_based_algorithms}
    strategy = found[name](population_size=POINTS, solution=jnp.zeros(NUMBERS))
    params = strategy.default_params

    def generation(key: jax.Array, state: Any) -> Any:
        asked, told = jax.random.split(key)
        points, state = strategy.ask(asked, state, params)
        return strategy.tell(told, points, jnp.sum(points**2, axis=-1), state, params)

    def start() -> tuple[Any, ...]:
        key = jax.random.PRNGKey(0)
        if name in algorithms.distribution_based_algorithms:
            return key, strategy.init(key, jnp.zeros(NUMBERS), params)
        points = jax.random.normal(key, (POINTS, NUMBERS))
        return key, strategy.init(key, points, jnp.sum(points**2, axis=-1), params)

    return generation, start


PACKAGES: dict[str, tuple[Callable[[str], Made], dict[str, str]]] = {
    "gymnax": (
        _gymnax,
        {name: name for name in ("Asterix", "Breakout", "Freeway", "SpaceInvaders", "Seaquest", "Pong")},
    ),
    "pgx": (
        _pgx,
        {
            name.replace("-", "_"): name
            for name in (
                *("2048", "animal_shogi", "chess", "gardner_chess", "go_9x9", "hex", "minatar-asterix"),
                *("minatar-freeway", "minatar-seaquest", "minatar-space_invaders", "othello", "sparrow_mahjong"),
            )
        },
    ),
    "jumanji": (
        _jumanji,
        {
            name.partition("-")[0]: name
            for name in (
                *("Game2048-v1", "JobShop-v0", "Tetris-v0", "MMST-v0", "CVRP-v1", "RobotWarehouse-v0", "Snake-v1"),
                "LevelBasedForaging-v0",
            )
        },
    ),
    "craftax": (_craftax, {"Classic": "Craftax-Classic-Symbolic-v1"}),
    "evosax": (
        _evosax,
        {
            name: name
            for name in (
                *("ASEBO", "CMA_ES", "CR_FM_NES", "GuidedES", "iAMaLGaM_Full", "Open_ES", "SimulatedAnnealing"),
            )
        },
    ),
}
NAMES = [f"{package}_{name}" for package, (_, names) in PACKAGES.items() for name in names]


def __getattr__(name: str) -> Any:
    """The program of that name: its package is imported when it is asked for."""
    package, _, short = name.partition("_")
    if package not in PACKAGES or short not in PACKAGES[package][1]:
        raise AttributeError(name)
    make, names = PACKAGES[package]
    step, start = make(names[short])

    def program(*args: Any) -> Any:
        return step(*args)

    program.__name__ = program.__qualname__ = name
    program.example_args = start  # type: ignore[attr-defined]
    return program
