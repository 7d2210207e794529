"""Functions whose launches the tests compare with XLA:GPU's own thunk sequence."""

import jax
import jax.numpy as jnp
from jax import lax


def sort(x):
    return jnp.sort(jnp.sin(x), axis=-1) + 1


def argsort_rows(x):
    return jnp.argsort(x, axis=0), x * 2


def fft(x):
    return jnp.abs(jnp.fft.fft(x * 2)) + 1


def dot(a, b):
    return jnp.tanh(a @ b) @ b.T + 1


def solve(a, b):
    lower = jnp.linalg.cholesky(a @ a.T)
    return jax.scipy.linalg.solve_triangular(lower, b * 2, lower=True)


def scatter(x, i, v):
    y = jnp.tanh(x).at[i].add(v * 2)
    return jnp.tanh(y) + y.sum()


def random(key):
    return jax.random.normal(key, (64, 64)).sum(axis=1), jax.random.permutation(key, 100)


def until(x):
    def step(carry):
        y = jnp.tanh(carry)
        return carry + y.sum()

    return lax.while_loop(lambda carry: jnp.sum(carry) < 1000.0, step, x)


def branch(p, x):
    return lax.cond(p, lambda a: jnp.sort(a * 2), lambda a: jnp.cumsum(a), jnp.sin(x)) + 1


def switch(i, x):
    return lax.switch(i, [jnp.sin, lambda a: a.sum() + jnp.cumsum(a), lambda a: jnp.sort(a)], x * 2)


def scan(x):
    def step(carry, _):
        a, b = carry
        a = a + jnp.sin(b)
        b = b * a.sum()
        return (a, b), (a.mean(), b.max(), a[:3])

    return lax.scan(step, (x, x * 2), None, length=50)


def nested(x):
    def inner(i, y):
        return y + jnp.tanh(y.sum() * i)

    def outer(carry, _):
        y = lax.fori_loop(0, 7, inner, carry)
        return jnp.roll(y, 1), y.sum()

    return lax.scan(outer, x, None, length=11)


def top_k(x):
    values, indices = lax.top_k(x * 2, 8)
    return values + 1, indices


def convolve(x, w):
    return jax.nn.relu(lax.conv(x, w, (1, 1), "SAME")).sum(axis=(2, 3))


def layers(x, weights):
    for w in weights:
        x = jax.nn.softmax(x @ w, axis=-1)
    return x


def five_reductions(x):
    """Enough kernels in a row for a CUDA graph."""
    for axis in (0, 1, 0, 1, 0, 1):
        x = jnp.tanh(x - x.sum(axis=axis, keepdims=True))
    return x


def updates(x, i):
    def step(carry, _):
        row = lax.dynamic_slice(carry, (i, 0), (1, carry.shape[1]))
        return lax.dynamic_update_slice(carry, row * 2, (i + 1, 0)), row.sum()

    return lax.scan(step, x, None, length=20)


def constants(x):
    return x + jnp.arange(64.0), jnp.zeros((32, 32)), jnp.ones(7)


def passed_through(x, y):
    return x, y + 1, x


def first_row(x):
    """A slice that lies in one piece is a fusion, and a copy is launched for it."""
    y = jnp.sort(x)
    return lax.scan(lambda c, j: (jnp.tanh(c) @ y[j], None), x[0], jnp.arange(8))


def held(x, y):
    x, y = lax.optimization_barrier((x * 2, y * 3))
    return x + lax.optimization_barrier(y + 1)


def sorts_in_a_loop(x):
    def step(carry, _):
        return jnp.tanh(carry), jnp.sort(carry * 2)[0] + jnp.sort(carry)[-1]

    return lax.scan(step, x, None, length=30)
