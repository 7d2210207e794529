"""A step of 4096 games at once, with automatic reset: gymnax's own Freeway, and ours."""

import jax
from freeway import Freeway
from gymnax.environments.minatar.freeway import MinFreeway

GAMES = 4096


def arguments(env):
    """The shapes of a step's arguments: a key, a state and an action for each game."""

    def one(key):
        _, state = env.reset_env(key, env.default_params)
        return key, state, env.action_space(env.default_params).sample(key)

    return jax.eval_shape(jax.vmap(one), jax.ShapeDtypeStruct((GAMES, 2), "uint32"))


original, rewritten = jax.vmap(MinFreeway().step), jax.vmap(Freeway().step)
example_args = {"original": arguments(MinFreeway()), "rewritten": arguments(Freeway())}
