"""Functions whose compiled form the tests of `explain` read. The tests name some of these lines."""

import jax
import jax.numpy as jnp
from jax import lax


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def returned(x):
    y = jnp.sin(x) * 2  # returned and consumed
    return y, (y + 1).sum()


def solve(a, b):
    lower = jnp.linalg.cholesky(a @ a.T)
    return jax.scipy.linalg.solve_triangular(lower, b * 2, lower=True)


def sort_then_fft(x):
    ordered = jnp.sort(jnp.sin(x))  # library call
    return jnp.abs(jnp.fft.fft(ordered * 2)) + 1


def branch(p, x):
    return lax.cond(p, lambda a: jnp.sort(a * 2), lambda a: jnp.cumsum(a), jnp.sin(x)) + 1


def add_at(x, i, v):
    y = jnp.tanh(x).at[i].add(v * 2)  # scatter
    return jnp.tanh(y) + y.sum()


def called_back(x):
    y = jnp.sin(x)
    z = jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(x.shape, x.dtype), y)  # callback
    return z + y


def noise(x, key):
    bits = jax.random.normal(key, x.shape)  # random bits
    return x @ bits


def rollout(state):
    def step(carry, _):
        x, v = carry[:, 0], carry[:, 1]
        carry = jnp.stack([x + 0.1 * v, v - 0.1 * jnp.sin(x)], axis=1)  # concatenate
        return carry, x.sum()

    return lax.scan(step, state, None, length=100)


def until(x):
    def more(carry):
        return jnp.sum(carry) < 1000.0

    def step(carry):
        y = jnp.tanh(carry)
        return carry + y.sum()  # unknown length

    return lax.while_loop(more, step, x)


def handed_on(x):
    return x


def filled(x):
    return jnp.zeros((4, 4)), jnp.ones(7), x


def summed(x):
    return jnp.cumsum(x) * 2.0


def summed_twice(x):
    x = jnp.cumsum(x)
    return jnp.cumsum(x)


def stages(x):
    a = jnp.sin(x) + jnp.cos(jnp.float32(2.0))
    b = jnp.sin(x) * jnp.float32(3.0)
    unused = jnp.tanh(x)  # noqa: F841
    return a + b
