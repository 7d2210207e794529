"""Queries, keys and values of a layer whose weights are spread over the axis `model` of a mesh, in two ways."""

import jax
import jax.numpy as jnp


def joined(x, weights):
    """weights: [inputs, 3 * features]. A third of the columns is not what one device has: they are sent around."""
    q, k, v = jnp.split(x @ weights, 3, axis=-1)
    return jax.nn.relu(q) * k + v


def apart(x, weights):
    """weights: [inputs, 3, features], spread by their last axis: each device has its part of all three."""
    q, k, v = jnp.unstack(jnp.einsum("bi,inf->bnf", x, weights), axis=1)
    return jax.nn.relu(q) * k + v
