"""One step of 4096 gymnax environments at once, for each environment: what benchmarks/gymnax_envs.py compiles.

A worker imports this: `gymnax_steps.py:CartPole` is `jax.vmap(env.step)`, with the environment's default parameters and
automatic reset, as gymnax's README has it. Arguments: a raw key, a state and an action for each environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from gymnax_envs import ENVIRONMENTS, environment

BATCH = 4096

example_args: dict[str, Any] = {}


def _step(where: str) -> tuple[Callable[..., Any], Any]:
    """The vectorized step of the environment at "module.Class" of gymnax.environments, and its abstract arguments."""
    step, start = environment(where)
    keys = jax.ShapeDtypeStruct((BATCH, 2), "uint32")
    return jax.vmap(step), jax.eval_shape(jax.vmap(start), keys)


for _name, _where in ENVIRONMENTS.items():
    globals()[_name], example_args[_name] = _step(_where)
