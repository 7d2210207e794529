"""Loops of kinds that people write, each with the `unroll` that it is called with: `specs()` are what gpu_times.py
times, and docs/gpu.md has the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

# What to call, and how many steps are taken at once.
CALLS = {
    "pendulums(f32[4096], 128, {})": (1, 2, 4, 8, 16, 32),
    "pendulums(f32[4194304], 128, {})": (1, 8),
    "advantages(f32[128,64], f32[128,64], f32[64], {})": (1, 4, 8, 16),
    "walk(f32[4096], key, 128, {})": (1, 4, 8),
    "descent(f32[4096], 100, {})": (1, 5, 10),
    "to_the_mean(f32[1024,64], 128, {})": (1, 4, 8),
    "forward_filter(f32[8], f32[8,8], f32[128,8], {})": (1, 2, 4, 8),  # a GPU's compiler takes minutes for sixteen
    "forward_filter(f32[256], f32[256,256], f32[128,256], {})": (1, 4, 8),
    "forward_filters(f32[64,8], f32[8,8], f32[64,128,8], {})": (1, 4, 8),
    "viterbi(f32[8], f32[8,8], f32[128,8], {})": (1, 4, 8),
    "traced_back(i32[], i32[128,8], {})": (1, 4, 8),
    "alignment(f32[33], f32[128,33], f32[128,32], {})": (1, 2, 4, 8),
    "alignments(f32[32,33], f32[32,128,33], f32[32,128,32], {})": (1, 4, 8),
    "lstm(f32[128,32,128], f32[128,512], f32[128,512], f32[32,128], {})": (1, 2, 4, 8, 16),
    "lstm(f32[128,64,1024], f32[1024,4096], f32[1024,4096], f32[64,1024], {})": (1, 4),
    "kalman(f32[4], f32[4,4], f32[4,4], f32[4,4], f32[2,4], f32[2,2], f32[128,2], {})": (1, 4),
}


def specs() -> list[str]:
    """A SPEC for each call and each number of steps."""
    return [f"{Path(__file__)}:{call.format(steps)}" for call, counts in CALLS.items() for steps in counts]


def pendulums(start: jax.Array, steps: int, unroll: int) -> Any:
    """Elementwise work alone."""

    def step(carry: Any, _: None) -> Any:
        angle, speed = carry
        force = -jnp.sin(angle) - 0.1 * speed
        return (angle + 0.01 * speed, speed + 0.01 * force), angle

    return jax.lax.scan(step, (start, start), None, length=steps, unroll=unroll)


def advantages(delta: jax.Array, mask: jax.Array, last: jax.Array, unroll: int) -> Any:
    """Generalised advantages, from the last step to the first."""

    def step(carry: Any, row: Any) -> Any:
        change, goes_on = row
        carry = change + 0.95 * goes_on * carry
        return carry, carry

    return jax.lax.scan(step, last, (delta, mask), reverse=True, unroll=unroll)[1]


def walk(start: jax.Array, key: jax.Array, steps: int, unroll: int) -> Any:
    """A draw for each step, its key split off before the loop."""

    def step(place: Any, key: Any) -> Any:
        return place + 0.1 * jax.random.normal(key, place.shape), None

    return jax.lax.scan(step, start, jax.random.split(key, steps), unroll=unroll)[0]


def descent(x: jax.Array, steps: int, unroll: int) -> Any:
    """A `fori_loop`."""
    return jax.lax.fori_loop(0, steps, lambda _, x: x + 0.01 * jnp.sin(x), x, unroll=unroll)


def to_the_mean(x: jax.Array, steps: int, unroll: int) -> Any:
    """A reduction in each step, and one of what it gives."""

    def step(x: Any, _: None) -> Any:
        x = x - 0.1 * (x - x.mean(-1, keepdims=True))
        return x, x.sum()

    return jax.lax.scan(step, x, None, length=steps, unroll=unroll)


def forward_filter(start: jax.Array, moves: jax.Array, seen: jax.Array, unroll: int) -> Any:
    """Of a hidden Markov model: a product with a small matrix, and a sum to divide by."""

    def step(carry: Any, t: Any) -> Any:
        log_total, predicted = carry
        weights = predicted * seen[t]
        total = weights.sum()
        return (log_total + jnp.log(total), moves.T @ (weights / total)), weights / total

    return jax.lax.scan(step, (0.0, start), jnp.arange(len(seen)), unroll=unroll)


def forward_filters(start: jax.Array, moves: jax.Array, seen: jax.Array, unroll: int) -> Any:
    """Of many sequences at once."""
    return jax.vmap(lambda start, seen: forward_filter(start, moves, seen, unroll))(start, seen)


def viterbi(start: jax.Array, moves: jax.Array, seen: jax.Array, unroll: int) -> Any:
    """The best path: forward, and traced back."""

    def step(scores: Any, row: Any) -> Any:
        every = scores[:, None] + moves
        return every.max(0) + row, every.argmax(0)

    last, best = jax.lax.scan(step, start, seen, unroll=unroll)
    return traced_back(last.argmax(), best, unroll)


def traced_back(last: jax.Array, best: jax.Array, unroll: int) -> Any:
    """A look-up a step."""

    def step(state: Any, row: Any) -> Any:
        state = row[state]
        return state, state

    return jax.lax.scan(step, last, best, reverse=True, unroll=unroll)[1]


def alignment(start: jax.Array, blank: jax.Array, label: jax.Array, unroll: int) -> Any:
    """A diagonal at a time: what is carried is cut, joined and added up."""

    def step(diagonal: Any, row: Any) -> Any:
        stay, move = row
        moved = jnp.pad(diagonal[:-1] + move, (1, 0), constant_values=-1e9)
        diagonal = jnp.logaddexp(diagonal + stay, moved)
        return diagonal, diagonal

    return jax.lax.scan(step, start, (blank, label), unroll=unroll)[1]


def alignments(start: jax.Array, blank: jax.Array, label: jax.Array, unroll: int) -> Any:
    """Of many sequences at once."""
    return jax.vmap(lambda start, blank, label: alignment(start, blank, label, unroll))(start, blank, label)


def lstm(inputs: jax.Array, w: jax.Array, u: jax.Array, start: jax.Array, unroll: int) -> Any:
    """Two products a step, and four gates."""

    def step(carry: Any, x: Any) -> Any:
        hidden, cell = carry
        i, f, g, o = jnp.split(x @ w + hidden @ u, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return jax.lax.scan(step, (start, start), inputs, unroll=unroll)


def kalman(*given: Any) -> Any:
    """Small products, and a solve by LU."""
    mean, covariance, move, noise, seen, blur, rows, unroll = given

    def step(carry: Any, row: Any) -> Any:
        mean, covariance = carry
        mean = move @ mean
        covariance = move @ covariance @ move.T + noise
        spread = seen @ covariance @ seen.T + blur
        gain = jnp.linalg.solve(spread, seen @ covariance).T
        mean = mean + gain @ (row - seen @ mean)
        return (mean, covariance - gain @ spread @ gain.T), mean

    return jax.lax.scan(step, (mean, covariance), rows, unroll=unroll)[1]
