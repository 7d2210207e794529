"""A program for tests/test_capture.py: it compiles in all the ways that a program can. `end` says how it ends."""

import functools
import os
import signal
import sys
import threading

os.environ["JAX_PLATFORMS"] = "cpu"  # heeded: jax is imported no sooner than here

import jax
import jax.numpy as jnp
import optax_like


@functools.partial(jax.jit, static_argnames="n", donate_argnums=0)
def update(state, x, n=2):
    return jax.tree.map(lambda leaf: leaf * x.sum() + n, state)


def body(total, x):
    return total + x, total


class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def forward(self, x):
        return jnp.tanh(x)


@jax.jit
def noisy(x):
    jax.debug.print("sum {}", x.sum())
    return x


def solved(x):
    def field(y):
        return y - 1

    return optax_like.solve(field, x)


def fresh(y):
    return jnp.sinh(y)


def recompile():
    state = {"w": jnp.ones((3, 4)), "b": jnp.zeros(4)}
    state = update(state, jnp.ones(5))
    state = update(state, jnp.ones(6))
    state = update(state, jnp.ones(6), n=3)
    state = update(state, jnp.arange(6), n=3)
    return update({**state, "extra": jnp.ones(2)}, jnp.arange(6), n=3)


def per_call(x):
    return [jax.jit(lambda y: y * 2)(x) for _ in range(3)]


def main(end):
    x = jnp.ones(3)
    recompile()
    per_call(x)
    jax.lax.scan(body, 0.0, x)
    Model().forward(x)
    Model().forward(x)
    optax_like.apply(lambda y: jnp.exp(y) + 1, x)
    optax_like.own(x)
    solved(x)
    solved(x)
    optax_like.initialize(fresh, x)
    noisy(x)
    thread = threading.Thread(target=lambda: jax.jit(body)(0.0, jnp.ones(7)), name="worker")
    thread.start()
    thread.join()
    print("done", sys.argv[1:], __name__, flush=True)
    if end == "fails":
        raise ValueError("as it was asked to")
    if end == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(5)


if __name__ == "__main__":
    main(sys.argv[1])
