"""b: the loop is compiled too; each step draws random numbers and puts the state together."""

import jax
import jax.numpy as jnp
from dynamics import bang_bang, has_failed, push

STEPS = 1000
JITTER = 0.05
example_args = (jax.ShapeDtypeStruct((2048, 4), jnp.float32), jax.eval_shape(jax.random.key, 0))


def step(state, total, key, start):
    x, v, angle, spin = state[:, 0], state[:, 1], state[:, 2], state[:, 3]
    x, v, angle, spin = push(x, v, angle, spin, bang_bang(angle))
    failed = has_failed(x, angle)
    key, reset_key = jax.random.split(key)
    fresh = start + jax.random.uniform(reset_key, start.shape, minval=-JITTER, maxval=JITTER)
    state = jnp.where(failed[:, None], fresh, jnp.stack([x, v, angle, spin], axis=1))
    return state, total + jnp.where(failed, 0.0, 1.0), key


@jax.jit
def rollout(start, key):
    """In how many of the states visited the pole stood, for each cart of `start`."""

    def body(carry, _):
        return step(*carry, start), None

    total = jnp.where(has_failed(start[:, 0], start[:, 2]), 0.0, 1.0)
    (_, total, _), _ = jax.lax.scan(body, (start, total, key), length=STEPS)
    return total
