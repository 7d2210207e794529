"""Forms of the known patterns that their pages have no room for: each line marked `# error` is found, and nothing else
by the same rule."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.rule import all_rules
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

EVERYTHING = Scope(tuple(rule.name for rule in all_rules()))
HEAD = "import jax\nimport jax.numpy as jnp\nfrom functools import partial\nfrom jax import lax\n"


def lines(rule: str, text: str) -> tuple[list[int], list[int]]:
    """The lines that are found by `rule`, and those that are marked."""
    code = HEAD + dedent(text)
    found = check_text(code.encode(), "example.py", EVERYTHING)
    marked = [number for number, line in enumerate(code.splitlines(), 1) if line.endswith("# error")]
    return [finding.location.line for finding in found if finding.rule == rule], marked


FOUND = [
    (
        "cumsum-of-one-hot",
        """
        from jax.nn import one_hot
        from jax.numpy import cumsum

        def later(i):
            return cumsum(one_hot(i, 9), axis=-1)  # error
        """,
    ),
    (
        "write-before-reduction",
        """
        from jax.numpy import inf

        def best(x, i):
            return jnp.max(x.at[i].set(-inf))  # error
        """,
    ),
    (
        "invariant-in-scan-body",
        """
        import jax.numpy

        def run(xs, w):
            def body(c, x):
                return c + jax.numpy.sum(jax.numpy.exp(w)) * x, None  # error

            return lax.scan(body, 0.0, xs)
        """,
    ),
    (
        "cond-around-a-write",
        """
        def propagated(parents, inertias, moved):
            def step(inertias, i):
                def onto(inertias):
                    return inertias.at[parents[i]].add(moved[i].T @ inertias[i] @ moved[i])

                return lax.cond(parents[i] != 0, onto, lambda inertias: inertias, inertias), None  # error

            return lax.scan(step, inertias, jnp.arange(8))[0]
        """,
    ),
    (
        "inverse-then-matmul",
        """
        def placed(a, b, c, matrix, world):
            turned = jnp.linalg.inv(jnp.array([[a, -b], [b, c]])) @ world
            return jnp.linalg.inv(matrix) @ turned  # error
        """,
    ),
    (
        "chained-at-set",
        """
        def rewarded(state, rewards):
            for t in range(16):
                state = state.replace(returns=state.returns.at[t].set(0.9 * rewards[t]))  # error
            return state
        """,
    ),
    (
        "chained-at-set",
        """
        def rewarded(state, rewards):
            for t in range(16):
                state = state._replace(returns=state.returns.at[t].set(state.returns[t] + rewards[t]))  # error
            return state
        """,
    ),
    (
        "scan-without-unroll",
        """
        def step(acc, row, decay):
            return row + decay * acc, acc

        def discounted(rewards, start):
            return lax.scan(partial(step, decay=0.99), start, rewards)  # error
        """,
    ),
    (
        "scan-without-unroll",
        """
        def step(decay, acc, row):
            return row + decay * acc, acc

        step = partial(step, 0.99)

        def discounted(rewards, start):
            return lax.scan(step, start, rewards)  # error
        """,
    ),
    (
        "write-in-fori-loop",
        """
        @jax.jit
        def occupied(grid, places):
            grid, _ = lax.scan(lambda grid, at: (grid.at[at.y, at.x].add(1), None), grid, places)  # error
            return grid

        @jax.jit
        def hands(deck, empty):
            return lax.fori_loop(0, 15, lambda i, hands: hands.at[i // 5, deck[i] // 4].add(1), empty)  # error

        @jax.jit
        def last_wins(grid, places):
            return lax.scan(lambda grid, at: (grid.at[at.y].set(at.x), None), grid, places)[0]  # error
        """,
    ),
    (
        "one-hot-by-at-set",
        """
        @partial(jax.vmap, in_axes=(None, 0))
        def decoded(gain, action):
            force = jnp.zeros((2,))
            axis = lax.select(action <= 2, 0, 1)
            return gain * force.at[axis].set(jnp.where(action % 2 == 0, 1.0, -1.0))  # error
        """,
    ),
    (
        "one-hot-by-at-set",
        """
        def columns(chosen, weights):
            return weights * jnp.zeros([4, 64]).at[chosen, jnp.arange(64)].set(1)  # error

        def apart(positions, radius):
            @partial(jax.vmap, in_axes=(0, None))
            def one(i, positions):
                far = jnp.zeros(positions.shape)
                far = far.at[i, :].set(2.1 * radius)  # error
                return jnp.any(positions + far - positions[i] < radius)

            return one(jnp.arange(positions.shape[0]), positions)

        def seen(positions, n):
            @jax.vmap
            def one(i):
                itself = jnp.zeros((n,)).at[i].set(1)  # error
                return jnp.any((positions[:, 0] > 0) & ~itself)

            return one(jnp.arange(n))

        def around(positions, n):
            def of_one(i):
                def sector(j):
                    itself = jnp.zeros((n,)).at[i].set(1)  # error
                    return jnp.any((positions[:, 0] > j) & ~itself)

                return jax.vmap(sector)(jnp.arange(4))

            of_all = jax.vmap(of_one)
            return of_all(jnp.arange(n))
        """,
    ),
    (
        "update-without-donation",
        """
        def setup(config):
            learn = jax.pmap(make_learner(config))  # error
            return learn, config.state

        def run(config):
            learn, learner_state = setup(config)
            for _ in range(config.evaluations):
                output = learn(learner_state)
                print(output.metrics)
                learner_state = output.learner_state
            return learner_state
        """,
    ),
    (
        "lax-map-for-vmap",
        """
        @jax.jit
        def hit(state, position):
            def is_hit(_, index):
                return None, jnp.all(state.positions[index] == position)

            _, found = lax.scan(is_hit, None, jnp.arange(8))  # error
            return jnp.argmax(found)

        @jax.jit
        def energies(points):
            return lax.scan(lambda carry, p: (carry, jnp.sum(jnp.sin(p))), 0.0, points)[1]  # error
        """,
    ),
    (
        "scan-without-unroll",
        """
        def targets(returns, best, transitions, decay):
            def step(carry, transition):
                returns, best = carry
                reward, done, values = transition
                returns = reward + decay * (1 - done) * (0.3 * best + 0.7 * returns)
                return (returns, jnp.max(values, axis=-1)), returns

            return lax.scan(step, (returns, best), transitions, reverse=True)[1]  # error

        def chain(momentum, masses, order):
            def step(new, m):
                new = jnp.exp(-new / masses[m + 1]) * momentum[m]
                return new, new

            return lax.scan(step, momentum[0], order)[1]  # error

        def path(best, moves, rows):
            def step(best, row):
                through = best[:, None] + moves
                return through.max(0) + row, through.argmax(0)

            return lax.scan(step, best, rows)  # error
        """,
    ),
    (
        "lax-map-for-vmap",
        """
        def masses(table, species):
            def step(i, _):
                mass = 0.5 * table[species[i]]
                i = i + 1
                return i, mass

            return lax.scan(step, 0, jnp.zeros(len(species)))[1]  # error
        """,
    ),
    (
        "argsort-prefix",
        """
        def truncated(fitness, population, k):
            order = jnp.argsort(fitness)[::-1]
            population = population[order]  # error
            return population[:k].repeat(4, axis=0), population[0]
        """,
    ),
    (
        "small-linear-algebra",
        """
        exact = partial(jnp.dot, precision=lax.Precision.HIGHEST)

        def cubic(a, b, c, d):
            p, q = exact(jnp.array([[a, b], [c, d]]), jnp.array([a - b, c - d])) / (a * d)  # error
            r, s = jnp.array([[a, -b], [c, d]]) @ jnp.array([p, q])  # error
            return jnp.sqrt(p * p - q) * r - s
        """,
    ),
    (
        "small-linear-algebra",
        """
        def acceleration(a, b, c, torque):
            inertia = jnp.array(((a + 2 * b * c, c), (c, b * jnp.ones_like(c))))
            return jnp.linalg.inv(inertia) @ torque  # error
        """,
    ),
    (  # one search does for all that look up the same
        "default-searchsorted",
        """
        @jax.vmap
        def sampled(x, xp, a, b, c, wide):
            u = jnp.interp(x, xp, a)  # error
            v = jnp.interp(x, xp, b)
            if wide:
                w = jnp.interp(x + 1, xp, c)  # error
            else:
                w = jnp.interp(x, xp, c)
            xp = xp + 1
            return u, v, w, jnp.interp(x, xp, c)  # error
        """,
    ),
    (
        "rows-one-by-one",
        """
        def ramps(x, scale, n):
            rows = jnp.stack(list(x))
            return jnp.stack([jnp.exp(-scale * rows[i, :]) for i in range(n)])  # error
        """,
    ),
    (
        "choice-without-replacement",
        """
        class Generator:
            def __call__(self, key):
                return self.mines(key)

        class Uniform(Generator):
            def mines(self, key):
                return scattered(key, 10)

        class Cursor:
            def mines(self, key):
                return jax.random.choice(key, 8, (4,), replace=False)

        def scattered(key, count):
            return jax.random.choice(key, 100, (count,), replace=False)  # error

        class Minesweeper:
            def __init__(self, generator=None):
                self.generator = generator or Uniform()

            def reset(self, key):
                return self.generator(key)

            def step(self, state, action):
                return state
        """,
    ),
    (
        "loop-over-jit",
        """
        class Solver:
            def __init__(self, fun):
                self.update = jax.jit(self.update)

        class Descent(Solver):
            def update(self, x, state):
                return x - 0.1 * self.fun(x), state + 1

        def iterates(solver, x, state):
            found = []
            for _ in range(100):
                x, state = solver.update(x, state)  # error
                found.append(x)
            return found

        descent = Descent(jnp.tanh)
        iterates(descent, jnp.ones(8), 0)
        """,
    ),
]
QUIET = [
    (  # each operation of what host code maps is dispatched by itself: interp is one, and compiled
        "default-searchsorted",
        """
        def likelihood(xs, xp, fp):
            def at(x):
                return jnp.interp(x, xp, fp)

            y = jax.vmap(lambda x: jnp.interp(x, xp, fp))(xs) + jax.vmap(at)(xs)
            return y.block_until_ready()
        """,
    ),
    (
        "loop-over-jit",
        """
        class Descent:
            def __init__(self, fun, jit=True):
                self.fun = fun
                if jit:
                    self.update = jax.jit(self.update)

            def update(self, x, state):
                return x - 0.1 * self.fun(x), state + 1

        class Plain:
            def update(self, x, state):
                return x, state + 1

        def iterated(solver, x, state):
            for _ in range(100):
                x, state = solver.update(x, state)
            return x

        def uncompiled(solver, x, state):
            for _ in range(100):
                x, state = solver.update(x, state)
            return x

        def handed(solver, x, state):
            for _ in range(100):
                x, state = solver.update(x, state)
            return x

        descent, plain, slow = Descent(jnp.tanh), Plain(), Descent(jnp.tanh, jit=False)
        iterated(descent, jnp.ones(8), 0)
        iterated(plain, jnp.ones(8), 0)
        uncompiled(slow, jnp.ones(8), 0)

        def run(solvers):
            for solver in solvers:
                handed(solver, jnp.ones(8), 0)
        """,
    ),
    (
        "lax-map-for-vmap",
        """
        @jax.jit
        def running(points):
            return lax.scan(lambda total, p: (total + p, total), 0.0, points)[1]

        @jax.jit
        def shifted(points, offset):
            return lax.scan(lambda offset, p: (offset, p - offset), offset, points)[1]

        @jax.jit
        def checked(points, check):
            return lax.scan(lambda carry, p: (None, check(p)), None, points)[1]
        """,
    ),
    (
        "update-without-donation",
        """
        def setup(config):
            learn = jax.pmap(make_learner(config))
            return learn, config.state

        def kept(config):
            learn, learner_state = setup(config)
            states = []
            for _ in range(config.evaluations):
                states.append(learner_state)
                output = learn(learner_state)
                learner_state = output.learner_state
            return states
        """,
    ),
    (
        "update-without-donation",
        """
        def setup(config):
            learn = jax.pmap(make_learner(config))
            return learn, config.state

        def packed(config):
            both = setup(config)
            learner_state = both[1]
            for _ in range(config.evaluations):
                output = both[0](learner_state)
                learner_state = output.learner_state
            return learner_state

        def run(config):
            learn, learner_state = setup(config)
            for _ in range(config.evaluations):
                output = learn(learner_state)
                learner_state = output.learner_state
            return learner_state
        """,
    ),
    (
        "chained-at-set",
        """
        def recorded(state, policy, env):
            for t in range(10):
                state, reward = env(state, policy(state))
                state = state.replace(rewards=state.rewards.at[t].set(reward))
            return state

        def summed(state, rewards):
            for t in range(10):
                state = state.replace(sums=state.sums.at[t].set(state.sums[t - 1] + rewards[t]))
            return state

        def renamed(state, other, rewards):
            for t in range(10):
                state = other.replace(returns=state.returns.at[t].set(rewards[t]))
            return state
        """,
    ),
    (
        "one-hot-by-at-set",
        """
        def decoded(gain, action):
            return gain * jnp.zeros((2,)).at[lax.select(action <= 2, 0, 1)].set(gain)

        @jax.vmap
        def rows(action, row):
            return jnp.zeros((4, 2)).at[lax.select(action <= 2, 0, 1)].set(row)

        @jax.vmap
        def unseen(shape, places, values):
            return jnp.zeros(shape).at[places].set(values)

        def many(positions, places, n):
            @jax.vmap
            def one(i):
                return jnp.zeros((n, 2)).at[i, :].set(1.0)

            return one(places)

        def diagonal(n):
            return jnp.zeros((n, n)).at[jnp.arange(n), jnp.arange(n)].set(1)
        """,
    ),
    (
        "write-in-fori-loop",
        """
        @jax.jit
        def first_wins(grid, places):
            return lax.scan(lambda grid, at: (grid.at[at.y].set(jnp.where(grid[0], 0, at.x)), None), grid, places)[0]

        @jax.jit
        def chained(x, order):
            return lax.fori_loop(0, 9, lambda i, x: x.at[order[i]].add(x[order[i - 1]]), x)
        """,
    ),
    (
        "scan-without-unroll",
        """
        def step(acc, row, decay):
            return row + decay * row, row

        def each(rewards, start):
            return lax.scan(partial(step, decay=0.99), start, rewards)
        """,
    ),
    (
        "scan-without-unroll",
        """
        def stored(table, rows):
            def step(table, row):
                table[row, :] = 2.0 * table[row]
                return table, None

            return lax.scan(step, table, rows)

        def filtered(x, inputs):
            def step(h, x):
                x = x - jnp.sum(h * x) / jnp.sum(h * h) * h
                return x / jnp.linalg.norm(x) * jnp.max(x), None

            return lax.scan(step, x, inputs)
        """,
    ),
    (
        "rows-one-by-one",
        """
        def read_by_others(x, n):
            rows = [2.0 * x[:, i] for i in range(n)]
            return jnp.stack(rows), rows[0]
        """,
    ),
]


@pytest.mark.parametrize(("rule", "text"), FOUND)
def test_other_forms_are_found(rule: str, text: str) -> None:
    found, marked = lines(rule, text)
    assert found == marked != []


@pytest.mark.parametrize(("rule", "text"), QUIET)
def test_what_only_looks_like_it_is_not(rule: str, text: str) -> None:
    assert lines(rule, text) == ([], [])
