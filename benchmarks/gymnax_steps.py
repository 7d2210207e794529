"""One step of 4096 gymnax environments at once, for each environment: what benchmarks/gymnax_envs.py compiles.

A worker imports this: `gymnax_steps.py:CartPole` is `jax.vmap(env.step)`, with the environment's default parameters and
automatic reset, as gymnax's README has it. Arguments: a raw key, a state and an action for each environment.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
from gymnax_envs import ENVIRONMENTS

BATCH = 4096

example_args: dict[str, Any] = {}


def _step(where: str) -> tuple[Callable[..., Any], Any]:
    """The vectorized step of the environment at "module.Class" of gymnax.environments, and its abstract arguments."""
    module, _, name = where.rpartition(".")
    # The registry leaves Seaquest out.
    env = getattr(importlib.import_module(f"gymnax.environments.{module}"), name)()
    params = env.default_params

    def arguments(key: Any) -> Any:
        _, state = env.reset_env(key, params)
        return key, state, env.action_space(params).sample(key)

    keys = jax.ShapeDtypeStruct((BATCH, 2), "uint32")
    return jax.vmap(env.step), jax.eval_shape(jax.vmap(arguments), keys)


for _name, _where in ENVIRONMENTS.items():
    globals()[_name], example_args[_name] = _step(_where)
