"""What somebody chose by a word, shows in a log, draws once, or keeps small: code that looks like a case and is none.
Each was found in public packages; what is next to it and is a case is found."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\nimport flax.linen as nn\n"

METHODS = """
@jax.jit
def clipped(x, k, method):
    if method == "topk":
        values, ids = jax.lax.top_k(x, k)
    elif method == "sort":
        ids = jnp.argsort(-x)[:k]
    else:
        raise ValueError(method)
    return ids
"""
RITZ = """
def largest(v, k):
    def chosen(theta):
        return jnp.argsort(-theta)[:k]
    theta, s = jnp.linalg.eigh(v)
    return s[:, chosen(theta)]
"""
INVERSES = """
def likelihood(C, r, inverse_method):
    if inverse_method == "inverse":
        y = jnp.dot(jnp.linalg.inv(C), r)
    elif inverse_method == "cholesky":
        y = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(C, lower=True), r)
    return r.dot(y)
"""
ENTROPY = """
def accepted(key, logits, bound):
    log_probs = jax.nn.log_softmax(logits)
    entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)
    order = jnp.argsort(entropy, axis=-1)
    ordered = jnp.take_along_axis(entropy, order, axis=-1)
    total = jnp.cumsum(ordered, axis=-1)
    return total - ordered <= bound, jax.random.categorical(key, logits)
"""
BOUNDS = """
@jax.jit
def checked(x, low):
    hits = x < low
    i = jnp.nonzero(hits, size=1)[0][0]
    jax.debug.print("parameter {} is {}", i, x[i])
    return jnp.any(hits)
"""
WEIGHTS = """
@jax.jit
def layer(key, dim):
    weights = jax.nn.initializers.glorot_uniform.init(key, (dim, dim))
    return weights.at[jnp.diag_indices(dim)].set(1)
"""
FORCING = """
class Forcing(nn.Module):
    def __call__(self, data, time: float):
        times = data["time"]
        return jnp.interp(time, times, jnp.arange(times.size))
"""
BIAS = """
class Bias(nn.Module):
    buckets: int
    def __call__(self, distance):
        chosen = jax.nn.one_hot(distance, self.buckets)
        return jnp.einsum("NX,BTSX->BNTS", self.weights, chosen)
"""
STYLES = """
@jax.jit
def embedded(self, ids, table):
    if self.style == "matmul":
        return jnp.einsum("...y,yz->...z", jax.nn.one_hot(ids, 4096), table)
    raise ValueError(self.style)
"""
FIRST = """
def fori_loop(low, high, body, state):
    return jax.lax.fori_loop(low, high, body, state)

@jax.jit
def lanczos(operator, v, order):
    table = jnp.zeros((order, order))
    if order == 1:
        table = table.at[0, 0].set(v[0])
        return table
    table = table.at[0, 0].set(v[1])
    table = table.at[0, 1].set(v[2]).at[1, 0].set(v[2])
    def step(i, state):
        return state.at[i, i].set(operator(state)[i])
    return fori_loop(1, order - 1, step, table)
"""
SPARING = """
@jax.jit
def gathered(x, basis, places, n, reduce_memory):
    if reduce_memory:
        total = jnp.zeros((8 * n, 4))
        for i in range(n):
            total = total.at[i + places * n].add(x * basis[:, i, None])
    else:
        total = jax.ops.segment_sum((x[:, None] * basis[:, :, None]).reshape(-1, 4 * n), places, 8)
    return total
"""
TRIED = """
import optax
@jax.jit
def epoch(params, state, batches, gradient, optimizer, n):
    # Tested jax.lax.scan for the loop
    for i in range(n):
        updates, state = optimizer.update(gradient(params, batches[i]), state)
        params = optax.apply_updates(params, updates)
    return params, state
"""
RESAMPLED = """
import numpy as np
def resampled(times, columns, wanted):
    def one(column):
        return np.asarray(jnp.interp(wanted, times, column))
    return [one(column) for column in columns], jax.vmap(one)(columns)
"""
VISITED = """
@jax.jit
def tree(remaining, n):
    @jax.vmap
    def of(left):
        visited = jnp.zeros(n).at[jnp.argmin(left)].set(1.0)
        return jax.lax.fori_loop(0, n, lambda i, seen: seen + left[i], visited)
    return of(remaining)
"""
CHUNKS = """
def column(detector, size, n):
    number_of_chunks = (n + size - 1) // size
    starts = size * jnp.arange(number_of_chunks)
    def rows(start):
        return jnp.sin(start + jnp.arange(size)) * detector[start]
    return jax.lax.map(rows, starts).flatten()[:n]
"""
SEVERAL = """
@jax.jit
def sums(x, y, chunk):
    def of_one(rows):
        x, y = rows
        return jnp.tanh(x + y)
    return jax.lax.map(of_one, (x.reshape(-1, chunk), y.reshape(-1, chunk)))
"""
A_CHUNK = SEVERAL.replace("-1, chunk", "-1, 3").replace("of_one", "of_chunk")
IN_CHUNKS = """
def gathered(table, places, chunk):
    rows = jnp.pad(places, (0, -len(places) % chunk)).reshape(-1, chunk)
    return jax.lax.map(lambda row: table[row], rows)
"""
GIVEN_OUT = """
@jax.vmap
def given_out(atoms, key, near):
    def add(carry):
        up, center, key = carry
        now, key = jax.random.split(key)
        up = up.at[center].add(1)
        weight = near[center] * (atoms > up)
        return up, jax.random.categorical(now, weight), key
    return jax.lax.while_loop(lambda carry: (atoms - carry[0]).sum() > 0, add, (atoms * 0, 0, key))
"""
BEHIND = """
def cdf(self, value):
    raise NotImplementedError()
    if self.probs is None:
        return jnp.searchsorted(self.values, value)
    return jnp.sum(self.probs * (self.values <= value[..., None]), axis=0)
"""
CELLS = """
from jaxtyping import Array, Float
def fractional(positions: Float[Array, "N 3"], cell: Float[Array, "3 3"]):
    other: Float[Array, "3 3"] = turned(cell)
    return positions @ jnp.linalg.inv(other)
"""
HANDED = """
def wrapped(positions, basis):
    if float(jnp.linalg.det(basis)) < 0.0:
        raise ValueError("left-handed")
    return positions @ jnp.linalg.inv(basis)
"""
LENGTHS = """
from jaxtyping import Array, Float
def vectors(lengths: Float[Array, "3"]):
    sizes = [float(length) for length in lengths]
    return jnp.diag(jnp.array(sizes))
if __name__ == "__main__":
    print(vectors(jnp.ones(3)))
"""
EPOCHS = """
def epochs(key, n, buffer):
    order, batches = jnp.arange(n), []
    for batch in buffer:
        key, now = jax.random.split(key)
        order = jax.random.permutation(now, order, independent=True)
        batches.append(batch[order])
    return batches
"""
PAINTED = """
def painted(layer, rectangles, rows, columns):
    for corner, other, value in rectangles:
        top, bottom = rows.index(corner[0]), rows.index(other[0])
        left = columns.index(corner[1])
        right = columns.index(other[1])
        layer = layer.at[top:bottom, left:right].set(value)
    return layer
"""
STRIPES = """
def without_stripes(sinogram):
    mask = jnp.abs(sinogram - sinogram.mean())
    mask = mask.at[0:2].set(0.0)
    mask = mask.at[-2:].set(0.0)
    missing = jnp.where(mask > 0.0)[0]
    return sinogram[missing]
"""

# The rule, the code, and what has to be written otherwise for it to be a case.
CASES = {
    "a sort that was chosen": ("argsort-prefix", METHODS, ("jax.lax.top_k(x, k)", "x[:k], None")),
    "a sort that a number chooses": ("argsort-prefix", METHODS, ('method == "topk"', "method > 3")),
    "eigenvalues in order": ("argsort-prefix", RITZ, ("jnp.linalg.eigh", "jnp.divmod")),
    "an inverse that was chosen": ("inverse-then-matmul", INVERSES, ("jax.scipy.linalg.cho_solve", "solve")),
    "tokens by their entropy": ("sort-for-top-p", ENTROPY, ("= -jnp.sum(", "= jax.nn.relu(")),
    "an index that is printed": ("nonzero-as-mask", BOUNDS, ("return jnp.any(hits)", "return i")),
    "first weights": ("write-on-diagonal", WEIGHTS, (".init(", ".of(")),
    "one number a step": ("default-searchsorted", FORCING, ("time: float", "time")),
    "buckets of distances": ("one-hot-matmul", BIAS, ("buckets", "positions")),
    "a product that was chosen": ("one-hot-matmul", STYLES, ('== "matmul"', '!= "matmul"')),
    "one by one to spare memory": ("chained-at-set", SPARING, ("reduce_memory:", "chunk_size:")),
    "a loop that was tried as a scan": ("unrolled-steps", TRIED, ("Tested jax", "Never got jax")),
    "for numpy": ("default-searchsorted", RESAMPLED, ("np.asarray(", "jnp.abs(")),
    "first rows of a wrapped loop": ("chained-at-set", FIRST, ("fori_loop(1, order - 1, step, ", "(")),
    "one chunk after the other": ("lax-map-for-vmap", CHUNKS, ("number_of_chunks", "batch_size")),
    "rows in chunks": ("lax-map-for-vmap", IN_CHUNKS, ("reshape(-1, chunk)", "reshape(-1, 3)")),
    "rows of several in chunks": ("lax-map-for-vmap", SEVERAL, ("reshape(-1, chunk)", "reshape(-1, 3)")),
    "a chunk at a time": ("lax-map-for-vmap", A_CHUNK, ("of_chunk", "of_one")),
    "given out one by one": ("while-loop-under-vmap", GIVEN_OUT, ("up = up.at[center].add(1)", "up = up + 1")),
    "behind a raise": ("default-searchsorted", BEHIND, ("    raise NotImplementedError()", "    assert self.values")),
    "three by three, as is said": ("inverse-then-matmul", CELLS, ('other: Float[Array, "3 3"]', "other: Array")),
    "of what a test has read": ("inverse-then-matmul", HANDED, ("float(jnp.linalg.det(basis)) < 0", "basis.ndim < 2")),
    "three lengths": ("iterating-device-array", LENGTHS, ('Float[Array, "3"]', 'Float[Array, "n"]')),
    "an order that is shuffled again": ("independent-permutation", EPOCHS, ("order, ind", "order, axis=1, ind")),
    "rectangles over one another": ("chained-at-set", PAINTED, ("[top:bottom, left:right]", "[top, left]")),
    "as many as there are stripes": ("boundary-writes", STRIPES, ("where(mask > 0.0)", "where(mask > 0.0, mask, 0.0)")),
    "the first that is visited": ("one-hot-by-at-set", VISITED, ("visited)", "left) * visited")),
}  # fmt: skip


def found(rule: str, code: str) -> int:
    return len(list(check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,)))))


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, (written, otherwise) = CASES[name]
    assert found(rule, code) == 0
    assert written in code
    assert found(rule, code.replace(written, otherwise)) == 1


BRANCHES = """
def largest(x, method):
    if TEST:
        FIRST
    else:
        SECOND
"""


@pytest.mark.parametrize(
    ("test", "runs_first", "runs_second"),
    [
        ("method == 'sorted'", True, True),
        ("False", False, True),
        ("not 1", False, True),
        ("True", True, False),
        ("method == 'sorted' or 'last'", True, False),
        ("method == 'sorted' and 0", False, True),
        ("method == 'sorted' and True", True, True),
        ("method or ''", True, True),
    ],
)
def test_a_branch_that_no_condition_takes_is_left_alone(test: str, runs_first: bool, runs_second: bool) -> None:
    code = BRANCHES.replace("TEST", test)
    hazard, other = "return jnp.sort(x)[-1]", "return x[0]"
    assert found("sort-for-max", code.replace("FIRST", hazard).replace("SECOND", other)) == runs_first
    assert found("sort-for-max", code.replace("FIRST", other).replace("SECOND", hazard)) == runs_second
