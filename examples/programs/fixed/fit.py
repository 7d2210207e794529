"""../fit.py compiled once: every batch is a whole one, and the parameters are arrays from the start."""

import sys

import jax
import jax.numpy as jnp
import optax

BATCH, EXAMPLES = 64, 200
optimizer = optax.adam(0.5)


def loss(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


@jax.jit
def step(params, opt_state, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def main(epochs):
    x = jax.random.normal(jax.random.key(0), (EXAMPLES, 16))
    y = x @ jnp.arange(16.0) + 1.0
    params = {"w": jnp.zeros(16), "b": jnp.zeros(())}
    opt_state = optimizer.init(params)
    for _ in range(epochs):
        for start in range(0, EXAMPLES, BATCH):
            start = min(start, EXAMPLES - BATCH)  # the last batch is a whole one too, and begins sooner
            params, opt_state, value = step(params, opt_state, x[start : start + BATCH], y[start : start + BATCH])
    print(f"loss after {epochs} epochs: {float(value):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
