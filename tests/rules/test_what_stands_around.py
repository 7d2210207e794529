"""Quiet by what stands around: each case is told again where that one thing is another."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


class Case(NamedTuple):
    rule: str
    code: str
    # What is replaced by what for the same code to be told.
    old: str
    new: str


HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
CASES = {
    "interp is one program where the host maps it": Case(
        "default-searchsorted",
        """
def inverted(cdf, grid):
    def column(values):
        return jnp.interp(jnp.linspace(0.0, 1.0, 64), values, grid)
    return jax.vmap(column)(cdf.T)

def main(cdf, grid, zs):
    return [inverted(cdf * z, grid) for z in zs]
""",
        "def inverted",
        "@jax.jit\ndef inverted",
    ),
    "interp is one program where the host calls it": Case(
        "default-searchsorted",
        """
def distances(z, grid, table):
    return jnp.interp(z, grid, table)

def main(grid, table, zs):
    for z in zs:
        print(distances(z, grid, table))
""",
        "def distances",
        "@jax.jit\ndef distances",
    ),
    "no trace has the product of sizes as a size": Case(
        "default-searchsorted",
        """
def refined(moments, size):
    rows = jnp.prod(jnp.array(moments.shape[:-1]))
    old, new = jnp.linspace(0, 1, moments.shape[-1]), jnp.linspace(0, 1, size)
    widened = lambda row: jnp.interp(new, old, row)
    return jax.vmap(widened)(moments.reshape((rows, moments.shape[-1])))
""",
        "jnp.prod(jnp.array(",
        "int(np.prod(",
    ),
    "a maker's own work": Case(
        "default-searchsorted",
        """
def orbit_problem(trajectory, times, mesh):
    def resampled(t):
        return jnp.interp(t, times, trajectory)

    def residual(state, period):
        return state - period * jnp.roll(state, 1)

    return Problem(f=residual, start=jax.vmap(resampled)(mesh))
""",
        "jnp.roll(state, 1)",
        "jax.vmap(resampled)(state)",
    ),
    "no part of a function that is handed out": Case(
        "default-searchsorted",
        """
def orbit_problem(trajectory, times, mesh):
    @jax.custom_jvp
    def residual(state, period):
        return state - period * jnp.roll(state, 1)

    def tangent(primals, tangents):
        steps = jax.vmap(lambda t: jnp.interp(t, times, trajectory))(tangents[0])
        return residual(*primals), steps

    started = tangent((mesh, 1.0), (mesh, 1.0))
    return Problem(f=residual, start=started)
""",
        "    def tangent",
        "    @residual.defjvp\n    def tangent",
    ),
    "a dozen layers": Case(
        "eager-control-flow",
        """
def sensitivities(model, cache, token, n_layers):
    found = []
    for layer in range(n_layers):
        def logit(x):
            return x @ model.unembed[:, token]
        found.append(float(jnp.linalg.norm(jax.grad(logit)(cache[layer]))))
    return found
""",
        "n_layers",
        "n_steps",
    ),
    "a verdict on the host": Case(
        "loop-over-jit",
        """
@jax.jit
def proposed(center, noise):
    return jnp.clip(center + noise, -1.0, 1.0)

def searched(evaluate, center, noises, n=1000):
    best = float("inf")
    for _ in range(n):
        center = proposed(center, noises)
        score = float(evaluate(center))
        if score < best:
            best = score
    return center
""",
        "        if score < best:\n            best = score\n",
        "",
    ),
    "each turn has an element of its own": Case(
        "unrolled-steps",
        """
DELAYS = [556, 441, 341, 225, 1116]

@jax.jit
def tick(delay, x):
    return jnp.roll(delay, 1).at[0].set(x), delay[-1]

@jax.jit
def reverberated(delays, x, n):
    for i in range(len(DELAYS)):
        delays, x = tick(delays, x)
    return x
""",
        "len(DELAYS)",
        "n",
    ),
    "nothing reads what the loop leaves": Case(
        "scalar-loop",
        """
def position(counts, weights):
    code = jax.lax.fori_loop(0, 34, lambda i, code: code + counts[i] * weights[i], 0)
    return counts
""",
        "return counts",
        "return code",
    ),
}


def told(case: Case, code: str) -> bool:
    return bool(check_text((HEAD + code).encode(), "m.py", Scope((case.rule,))))


@pytest.mark.parametrize("name", CASES)
def test_quiet_by_one_thing(name: str) -> None:
    case = CASES[name]
    assert case.old in case.code
    assert not told(case, case.code)
    assert told(case, case.code.replace(case.old, case.new))
