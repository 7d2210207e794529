"""Where the other form would gain nothing, or does something else: each beside a case that is one."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"

COORDINATES = """
def updated(f, cost):
    def one(i, f):
        best = jnp.min(cost[i, :] + f)
        return f.at[i].set(best)

    return jax.lax.fori_loop(0, len(f), one, f)
"""
RESCALED = """
@jax.jit
def sampled(logits, temperatures):
    def rescaled(x):
        return x * temperatures

    needed = jnp.any(temperatures != 1.0)
    return jax.lax.cond(needed, rescaled, lambda x: x, logits)
"""
KERNELS = """
@jax.jit
def spectrum(self, grid, coefficients):
    def part(i, c):
        return i + 1, self.kernels[self.mode](c, grid)

    return jax.lax.scan(part, 0, coefficients)[1]
"""
GRADIENTS = """
@jax.jit
def physical(self, points):
    jacobian = jnp.sum(points[:, None, :, :, None], axis=2, keepdims=True)
    inverse = jnp.linalg.inv(jacobian)
    return self.reference[None, :, :, None, :] @ inverse
"""
SURVIVORS = """
class Population:
    @jax.jit
    def add(self, scores, genes):
        joined = jnp.concatenate((self.scores, scores), axis=0)
        _, novelty = novelties(scores=joined[:, 0])
        kept = jnp.argsort(jnp.where(joined[:, 0] > 0, novelty, -jnp.inf))[::-1]
        return genes[kept[: self.size]]
"""
NYSTROEM = """
def low_rank(key, cost, p):
    rows = jax.random.choice(key, 1000, shape=(n,), p=p)
    return jnp.linalg.svd(cost[rows])
"""
OF_TESTS = '''
# Copyright.
"""External implementations of filters to use for unit tests.
Taken from a book.
"""
import jax
import jax.numpy as jnp

@jax.jit
def gain(P, H, S):
    return P @ H.T @ jnp.linalg.inv(S)
'''

KAHAN = """
@jax.jit
def dot(x, y):
    def add(i, val):
        total, lost = val
        term = x[i] * y[i] - lost
        more = total + term
        lost = (more - total) - term
        return more, lost

    return jax.lax.fori_loop(0, len(x), add, (0.0, 0.0))[0]
"""
PREFIXES = """
@jax.jit
def curve(scores, hits, lengths):
    order = jnp.argsort(scores)[::-1]
    return jnp.asarray([hits[order[:n]].mean() for n in lengths])
"""
CLUSTERS = """
def clustered(starts, x, tol):
    def run(mu):
        def turn(state):
            mu, new, old, n = state
            return (mu + x) / 2, jnp.sum(mu * x), new, n + 1

        def goes_on(state):
            _, new, old, n = state
            return (old - new > tol) & (n < 300)

        return jax.lax.while_loop(goes_on, turn, (mu, jnp.inf, jnp.inf, 0))[0]

    return jax.vmap(run)(starts)
"""
QUALITY = """
def evaluate_step(sampler, keys, model):
    sample = jax.vmap(sampler, in_axes=[None, 0])

    def estimate(key):
        return sample(model.x, key).mean()

    estimates = jax.jit(jax.vmap(estimate))
    return estimates(keys)

for keys in sequence:
    evaluate_step(sampler, keys, model)
"""

LOOKED_UP = """
class Embedding:
    def embed(self, table, ids):
        if self.use_lookup:
            return jnp.take(table, ids, axis=0)
        else:
            return jnp.dot(jax.nn.one_hot(ids, self.vocabulary), table)
"""
DROPPED = """
import flax.linen as nn

class Block(nn.Module):
    @nn.compact
    def __call__(self, x, drop=0.0):
        y = nn.SelfAttention(8)(nn.LayerNorm()(x))
        return x + nn.Dense(64)(nn.relu(nn.Dense(256)(y)))

class Model(nn.Module):
    depth: int = 12

    @nn.compact
    def __call__(self, x):
        for i in range(self.depth):
            rate = drop_rate(i, self.depth)
            x = Block(name=f"block_{i}")(x, drop=rate)
        return x
"""
TRAINED = """
def train(params, batches, loss):
    def step(params, batch):
        value, grads = jax.value_and_grad(loss)(params, batch)
        jax.debug.print("loss {}", value)
        return params - 0.1 * grads, None

    return jax.lax.scan(step, params, batches)[0]
"""

TIMED = """
import time

def made(x):
    f = jax.jit(lambda y: y * 2)
    return f(x)

for i in range(10):
    start = time.time()
    made(i).block_until_ready()
    print(time.time() - start)
"""
SAVED = """
def main(loss, params, n):
    grad = jax.grad(loss)
    for i in range(n):
        jnp.save("grad%d.npy" % i, grad(params))

main(loss, params, 64)
"""
TOLD = """
class Evolution:
    @jax.jit
    def train_step(self, gen, metrics):
        scores = jnp.tanh(metrics)
        jax.debug.print("{} - return {}", gen, scores.mean())
        return scores * 2
"""
LABELS = """
def environment(key, probabilities):
    # Generate training data.
    def label(p, key):
        return jax.random.choice(key, 10, p=p)

    return jax.jit(jax.vmap(label))(probabilities, jax.random.split(key, 100))
"""

SEEDED = """
def sampled(x, p, seed=0):
    key, _ = jax.random.split(jax.random.PRNGKey(seed))
    return x[jax.random.choice(key, 1000, (64,), p=p)]
"""

CASES = {
    "all coordinates so far": ("scalar-loop", COORDINATES, ("cost[i, :] + f)", "cost[i, :] + 2.0 * f[i - 1])")),
    "work that nobody asked for": ("cond-for-where", RESCALED, ("jnp.any(temperatures != 1.0)", "temperatures[0] > 0")),
    "a kernel that is looked up": ("lax-map-for-vmap", KERNELS, ("self.kernels[self.mode](c, grid)", "c * grid")),
    "an inverse for many nodes": ("inverse-then-matmul", GRADIENTS, ("[None, :, :, None, :]", "[..., None]")),
    "nearly all": ("argsort-prefix", SURVIVORS, ("self.size", "self.elite")),
    "a draw beside an SVD": ("choice-with-probabilities", NYSTROEM, ("jnp.linalg.svd(cost[rows])", "cost[rows]")),
    "a sum that keeps what it lost": ("scalar-loop", KAHAN, ("(more - total) - term", "(more - total) * term")),
    "one order for many prefixes": ("argsort-prefix", PREFIXES, (".mean() for n in lengths", "")),
    "until it gains little": ("while-loop-under-vmap", CLUSTERS, ("old - new > tol", "old > new")),
    "a function that is handed in": ("jit-per-call", QUALITY, ("sample(model.x, key)", "model(key)")),
    "a lookup that may be asked for": ("one-hot-matmul", LOOKED_UP, ("jnp.take(table, ids, axis=0)", "table")),
    "layers that drop more and more": ("layer-loop", DROPPED, ("drop_rate(i, self.depth)", "drop_rate(self.depth)")),
    "a print of a training step": ("callback-in-loop-body", TRAINED, ("jax.value_and_grad(loss)(params, ", "(")),
    "what is timed by who calls it": ("jit-per-call", TIMED, ("time.time()", "0.0")),
    "a file in each turn": ("eager-control-flow", SAVED, ("jnp.save(", "keep(")),
    "how far it is": ("callback-in-traced-code", TOLD, ("}\", gen,", "}\", metrics[0],")),
    "labels to train on": ("choice-with-probabilities", LABELS, ("Generate training data", "Draw a label")),
    "a draw by a seed": ("choice-with-probabilities", SEEDED, ("jax.random.PRNGKey(seed)", "seed")),
    "what tests use": ("inverse-then-matmul", OF_TESTS, ("to use for unit tests", "to use for testing hypotheses")),
}  # fmt: skip


def found(rule: str, code: str) -> int:
    head = "" if "import jax\n" in code else HEAD
    return len(check_text((head + dedent(code)).encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, (written, otherwise) = CASES[name]
    assert found(rule, code) == 0
    assert written in code
    assert found(rule, code.replace(written, otherwise)) == 1
