"""The programs whose compiled texts stand beside this file, and name these lines: after an edit run collect.py."""

import jax
import jax.numpy as jnp
from jax import lax


def elementwise(x):
    return jnp.tanh(x) * 2 + x


def softmax(x):
    shifted = x - x.max(axis=1, keepdims=True)
    return jnp.exp(shifted) / jnp.exp(shifted).sum(axis=1, keepdims=True)


def scan(x):
    def step(carry, _):
        carry = jnp.sin(carry) + 1
        return carry, carry.sum()

    return lax.scan(step, x, None, length=10)


def nested_scan(x):
    def inner(carry, _):
        return jnp.cos(carry), None

    def outer(carry, _):
        carry, _ = lax.scan(inner, carry * 2, None, length=3)
        return carry, carry[0]

    return lax.scan(outer, x, None, length=4)


def unbounded(x, limit):
    return lax.while_loop(lambda c: c.sum() < limit, lambda c: c * 1.5 + 1, x)


def branches(x, choice):
    return lax.switch(choice, [lambda v: jnp.sort(v), lambda v: v * 2, lambda v: jnp.cumsum(v)[::-1]], x)


def ordering(x):
    return jnp.argsort(x), lax.top_k(x, 4)


def spectrum(x):
    return jnp.fft.fft(x) * jnp.conj(x)


def linear_algebra(a, b):
    return jnp.linalg.cholesky(a), jnp.linalg.solve(a, b)


def layers(image, kernel, weights):
    seen = lax.conv(image, kernel, (1, 1), "SAME")
    return jax.nn.relu(seen.reshape(seen.shape[0], -1) @ weights)


def updates(x, i):
    x = x.at[jnp.array([1, 5, 1])].add(2.0)
    return lax.dynamic_update_slice(x, jnp.ones(4), (i,))


def randomness(key):
    return jax.random.uniform(key, (16,))


def talkative(x):
    y = x * 2
    jax.debug.print('the sum {s}, "quoted" {{and in braces}}', s=y.sum())
    return y


def joined(x, y):
    both = jnp.concatenate([jnp.sin(x), jnp.cos(y)])
    return both * 2, both.sum(), jnp.roll(both, 1)


def batched_gradient(w, x):
    return jax.vmap(jax.grad(lambda w, row: jnp.tanh(row @ w).sum()), in_axes=(None, 0))(w, x)


def low_precision(half, eighth, quarter):
    return half * 2, eighth.astype(jnp.bfloat16) + half, quarter + quarter
