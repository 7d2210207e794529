"""A matrix product and what follows it, for tests/test_times.py."""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def product(left, right):
    return jnp.tanh(left @ right)
