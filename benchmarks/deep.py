"""A program of some size for benchmarks/explain.py: a dozen different layers and their gradient."""

import jax
import jax.numpy as jnp

LAYERS = 12


def train(x):
    def loss(x):
        for layer in range(LAYERS):
            x = jnp.tanh(x - x.mean(axis=layer % 2, keepdims=True)) * (1 + layer) + jnp.roll(x, layer, axis=1)
            x = jax.nn.softmax(x[::-1], axis=-1) + jnp.sin(x).sum(axis=0)
        return (x**2).sum()

    return jax.value_and_grad(loss)(x)
