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
    "numpy's array is where the next step starts": Case(
        "host-sync-in-step-loop",
        """
spectrum = jax.jit(lambda x: jnp.fft.fft(jnp.fft.ifft(x).real))

def phases(magnitude, n):
    angles = np.ones(magnitude.shape, np.complex64)
    for i in range(n):
        rebuilt = spectrum(magnitude * angles)
        angles[:] = np.asarray(rebuilt)
    return angles
""",
        "angles[:] = np.asarray(rebuilt)",
        "kept[i] = np.asarray(rebuilt)",
    ),
    "a loss evaluated by hand in every turn": Case(
        "host-sync-in-step-loop",
        """
def fit(params, train, held_out, n):
    def loss_of(params, batch):
        return jnp.mean(jax.vmap(lambda x: jnp.tanh(x @ params))(batch) ** 2)

    @jax.jit
    def step(params, batch):
        loss, slope = jax.value_and_grad(loss_of)(params, batch)
        return params - 0.1 * slope, loss

    history = []
    for _ in range(n):
        params, loss = step(params, train)
        other = loss_of(params, held_out)
        history.append((float(loss), other))
    return params, history
""",
        "    def loss_of",
        "    @jax.jit\n    def loss_of",
    ),
    "a sweep of what comes with the call": Case(
        "host-sync-in-step-loop",
        """
def scanned(misfit, base, values):
    f = jax.jit(misfit)
    out = []
    for v in values:
        out.append((float(v), float(f({**base, "v": jnp.asarray(v)}))))
    return out
""",
        "def scanned(misfit, base",
        'def misfit(x):\n    return jnp.sum(x["v"])\n\ndef scanned(base',
    ),
    "the gradient of whatever comes with the call": Case(
        "loop-over-jit",
        """
def fitted(loss, params, n=1000):
    gradient = jax.jit(jax.value_and_grad(loss))
    for _ in range(n):
        value, slope = gradient(params)
        params = params - 0.1 * slope
    return params
""",
        "def fitted(loss, params",
        "def loss(x):\n    return jnp.sum(x * x)\n\ndef fitted(params",
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
    "what is called makes numbers of Python": Case(
        "rows-one-by-one",
        """
def spline(grid, values, x):
    return jnp.interp(x, grid, jnp.cumsum(values))

def interpolated(data, grids, points):
    if len(grids) == 1:
        return spline(grids[0], data, jnp.array(points[0]))
    found = []
    for i in range(data.shape[0]):
        found.append(interpolated(data[i], grids[1:], points[1:]))
    return float(spline(grids[0], jnp.array(found), jnp.array(points[0])))
""",
        "float(spline(grids[0], jnp.array(found), jnp.array(points[0])))",
        "spline(grids[0], jnp.array(found), jnp.array(points[0]))",
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
