"""Writes that cost nothing where they stand, or that nobody asks for, and what else is no gain. What is next to them
and is a case is found."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

MEETINGS = """
@jax.jit
def step(state, pairs):
    def met(i, val):
        seen, pairs = val
        seen = seen.at[pairs[i, 0], pairs[i, 1]].set(1)
        seen = seen.at[pairs[i, 1], pairs[i, 0]].set(1)
        return seen, pairs

    seen, _ = jax.lax.fori_loop(0, 5, met, (jnp.zeros((8, 8)), pairs))
    return state
"""


class Case(NamedTuple):
    """Code that a rule says nothing of, and what makes it a case."""

    rule: str
    code: str
    old: str
    new: str


CASES = {
    "what the one caller leaves": Case(
        "chained-at-set",
        """
        @jax.jit
        def run(key):
            solved, start = made(key)
            return 2.0 * start

        def made(places):
            start = jnp.cos(places)
            board = marked(start, places)
            return board, start

        def marked(board, places):
            board = board.at[places[0], places[1]].set(1.0)
            return board.at[places[2], places[3]].set(2.0)
        """,
        "return 2.0 * start",
        "return solved * start",
    ),
    "numbers that are picked out again": Case(
        "chained-at-set",
        """
        @jax.jit
        def position(t, tables):
            place = jnp.zeros(3)
            for i, axis in enumerate(("x", "y", "z")):
                place = place.at[i].set(jnp.sum(jnp.cos(tables[axis] * t)))
            return jnp.array([place[0] - place[2], 0.9 * place[1]])
        """,
        "place[1]])",
        "place[1]]), place",
    ),
    "numbers that are summed": Case(
        "chained-at-set",
        """
        @jax.jit
        def time_step(u, width):
            speed = jnp.zeros((3,))
            for axis in range(1, 4):
                speed = speed.at[axis - 1].set(jnp.max(jnp.abs(u[axis]) + u[0]))
            return 0.4 / jnp.sum(speed / width)
        """,
        "jnp.sum(speed / width)",
        "(speed @ width)",
    ),
    "places that an argument names, which is None by default": Case(
        "chained-at-set",
        """
        @jax.jit
        def sampled(probs, masked=None):
            if masked is None:
                return probs
            for token in masked:
                probs = probs.at[:, token].set(0.0)
            return probs / jnp.sum(probs, -1, keepdims=True)
        """,
        "masked=None",
        "masked=()",
    ),
    "places that an object is told of, none by default": Case(
        "chained-at-set",
        """
        class Blocks:
            def __init__(self, layers, skipped=()):
                self.layers = layers
                self.skipped = skipped

            @jax.jit
            def __call__(self, x, mask):
                masks = jnp.ones((self.layers, 4)) * x
                for i in self.skipped:
                    masks = masks.at[i].set(mask)
                return masks
        """,
        "skipped=()",
        "skipped",
    ),
    "a place that a loop reads in each step": Case(
        "one-hot-by-at-set",
        """
        @jax.vmap
        def placed(board, action):
            stone = jnp.zeros(64, dtype=bool).at[action[0]].set(True)

            def turned(i, turns):
                return turns | (jnp.roll(stone, i) & board)

            return jax.lax.fori_loop(0, 8, turned, board)
        """,
        "jnp.roll(stone, i) & board)\n\n    return ",
        "jnp.roll(turns, i) & board)\n\n    return stone & ",
    ),
    "what is added within a block": Case(
        "blocks-by-at-set",
        """
        @jax.jit
        def placed(rows, centers, n, m):
            grid = jnp.zeros((1000, 4))
            grid = grid.at[:n, :].set(rows)
            return grid.at[:n, :3].add(-centers[:n])
        """,
        ".at[:n, :3].add",
        ".at[n:, :3].add",
    ),
    "what a solver begins with, iterative or not": Case(
        "blocks-by-at-set",
        """
        @jax.jit
        def charges(matrix, x, total, start, steps):
            b = jnp.zeros(shape=(101,))
            b = b.at[:100].set(-x)
            b = b.at[100].set(total)
            if steps == -1:
                return jnp.linalg.solve(matrix, b)
            return jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, x0=start, maxiter=steps)[0]
        """,
        "jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, x0=start, maxiter=steps)[0]",
        "matrix @ b",
    ),
    "a loop whose result nobody reads": Case(
        "chained-at-set",
        MEETINGS,
        "return state",
        "return state + seen",
    ),
    "a loop that is there for what it prints": Case(
        "chained-at-set",
        MEETINGS,
        "return seen, pairs",
        'jax.debug.print("{}", seen)\n        return seen, pairs',
    ),
    "a number with a name before the only write": Case(
        "chained-at-set",
        """
        TRUE = jnp.bool_(True)

        @jax.jit
        def legal(hand):
            mask = jnp.zeros(78, dtype=jnp.bool_)
            mask = mask.at[68].set(TRUE)
            return mask.at[70].set(hand.any())
        """,
        "set(TRUE)",
        "set(hand.all())",
    ),
    "turns that go by what others have taken": Case(
        "scalar-loop",
        """
        @jax.jit
        def matched(pairs, order, wanted):
            def turn(i, val):
                taken, met = val
                k = order[i]
                a, b = pairs[k]
                is_free = wanted[k] & ~(taken[a] | taken[b])
                taken = taken.at[a].set(is_free | taken[a])
                taken = taken.at[b].set(is_free | taken[b])
                return taken, met.at[k].set(is_free)

            return jax.lax.fori_loop(0, 28, turn, (jnp.zeros(8, bool), jnp.zeros(28, bool)))
        """,
        " & ~(taken[a] | taken[b])",
        "",
    ),
    "a matrix with a row for each turn that is counted": Case(
        "cond-around-a-write",
        """
        class Game:
            def reset(self, key):
                return jnp.zeros((8, 2))

            def step(self, places, met):
                def settle(met, i):
                    return jax.lax.cond(met[i].any(), lambda: met.at[i].set(False), lambda: met), None

                rows = jnp.arange(8)
                met, _ = jax.lax.scan(settle, met, rows)
                return jnp.where(met, 0, places)
        """,
        "rows = jnp.arange(8)",
        "rows = places[:, 0]",
    ),
    "what is written for people": Case(
        "nonzero-as-mask",
        """
        class Game:
            def reset(self, key):
                return jnp.zeros(4)

            def step(self, state, action):
                return state + action

            def state_to_str(self, state):
                player = jnp.nonzero(state.player, size=1)[0][0]
                return f"{player}: {state.hands[player]}"
        """,
        "state_to_str",
        "state_of_one",
    ),
}


def found(rule: str, code: str) -> int:
    text = "import jax\nimport jax.numpy as jnp\nfrom typing import NamedTuple\n" + dedent(code)
    return len([*check_text(text.encode(), "pkg/model.py", Scope((rule,)))])


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, old, new = CASES[name]
    assert old in dedent(code)
    assert found(rule, code) == 0
    assert found(rule, dedent(code).replace(old, new)) == 1
