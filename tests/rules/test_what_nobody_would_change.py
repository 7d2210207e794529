"""Code that looks like a case and is none: it runs once, was asked for, or the advice would not fit. Each of these was
found in public packages; the pages have no room for all of them. What is next to it and is a case is found."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\nimport flax.linen as nn\nimport numpy as np\n"


def found(rule: str, code: str) -> int:
    return len(list(check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,)))))


BEAMS = """
def reordered(state, beams, k):
    return jnp.einsum("bkt,bjk->bjt", state, jax.nn.one_hot(beams, k))
"""
TOLD = """
def solve(x, name=None):
    def step(x, i):
        if name is not None:
            jax.debug.callback(print, name, x)
        return x * 0.9, x

    return jax.lax.scan(step, x, None, 1000)
"""
WRAPPER = '''
def say(wrong, error):
    """Says it on the host."""
    from jax.debug import print as tell

    tell("{}: {}", error, wrong)
'''
INSTRUMENTED = """
from solvers import solve

def instrumented(problem, answer):
    jax.debug.print("{}", problem)
    return solve(problem, answer)
"""
PICTURE = """
@jax.jit
def render(cells, agent, goal):
    return cells.at[agent].set(3).at[goal].set(2)
"""
INITIALIZER = """
class Offsets(nn.Module):
    points: int

    def grid(self, key, shape, dtype):
        grid = jax.random.uniform(key, shape, dtype)
        for i in range(self.points):
            grid = grid.at[:, i].set(grid[:, i] * (i + 1))
        return grid

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.points, bias_init=self.grid)(x)
"""
PROBE = """
def columns(operator, n):
    probe = jnp.zeros(n)
    return jax.lax.map(lambda place: operator(probe.at[tuple(place)].set(1.0)), jnp.arange(n)[:, None])
"""
KINDS = """
def edited(board, edits):
    def edit(board, at):
        kind = at % 2
        def change(board):
            wall, hole = lambda: board.at[at].set(1), lambda: board.at[at].set(0)
            return jax.lax.switch(kind, [wall, hole])

        return jax.lax.cond(at >= 0, change, lambda board: board, board), None

    return jax.lax.scan(edit, board, edits)
"""
REWARDS = """
def score(path, rewards):
    texts = np.load(path)
    out = jnp.zeros((100, len(rewards)))
    for i, reward in enumerate(rewards):
        out = out.at[:, i].set(reward(texts))
    return out
"""
POINTERS = """
def depths(parents, leaves):
    def up(state):
        depth, node = state
        return depth + 1, parents[node]

    return jax.vmap(lambda leaf: jax.lax.while_loop(lambda state: state[1] > 0, up, (0, leaf)))(leaves)
"""
STEPS = """
def rate(config, x, kw):
    place = jnp.searchsorted(jnp.array(config.steps), x) + jnp.digitize(x, jnp.array(kw.get("times", [])))
    return jnp.take(jnp.array(config.scales), place)
"""
MASKED = """
def spectrum(power, k, edges):
    total = jnp.bincount(jnp.digitize(k, edges), power, length=64)
    held = total > 0
    return total[held]
"""
FROZEN = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.SelfAttention(8)(nn.LayerNorm()(x))
        return x + nn.Dense(64)(nn.gelu(nn.LayerNorm()(x)))

class Encoder(nn.Module):
    depth: int
    frozen: int

    @nn.compact
    def __call__(self, x):
        for i in range(self.depth):
            x = Block(name=f"block_{i}")(x)
            if i == self.frozen:
                x = jax.lax.stop_gradient(x)
        return x
"""
NUMBERS = """
@jax.jit
def ramp(n):
    return jnp.arange(8) / width(1.0, 1.0)

def width(low, high):
    return jax.lax.cond(low == high, lambda x: x + 0.001, lambda x: x, high) - low
"""

FIRST_STATE = """
class Env:
    def step(self, state, action):
        return state + action

    def reset(self, key):
        return self._pose(key)

    def _pose(self, key):
        pose = jnp.zeros(12)
        pose = pose.at[0].set(jax.random.uniform(key))
        return pose.at[3:7].set(jax.random.normal(key, (4,)))
"""
FIRST_ROWS = """
@jax.jit
def hermite(x):
    H = jnp.zeros((20, x.size))
    H = H.at[0].set(jnp.ones_like(x))
    H = H.at[1].set(2 * x)
    return jax.lax.fori_loop(2, 20, lambda i, H: H.at[i].set(2 * x * H[i - 1] - 2 * (i - 1) * H[i - 2]), H)
"""
SETTINGS = """
class Task:
    def observe(self, x, key):
        scale = jnp.zeros_like(x)
        scale = scale.at[:3].set(self._config.noise.level * self._config.noise.gyro)
        scale = scale.at[3:6].set(self._config.noise.level * self._config.noise.gravity)
        return x + jax.random.normal(key, x.shape) * scale
"""
PLACES = """
def grid(height, width):
    places = jnp.zeros((height, width, 3))
    places = places.at[..., 1].set(jnp.arange(height)[:, None])
    return places.at[..., 2].set(jnp.arange(width)[None, :])
"""
TEXT = """
class Profile:
    @jax.jit
    def function(self, x, y):
        case = jnp.where(self.axis == "major", 0, 1)
        return jax.lax.switch(case, [lambda x, y: x * y, lambda x, y: x - y], x, y)
"""
SWITCH = """
@jax.jit
def carried_over(spent, weight: float, normalise: bool = True):
    return jax.lax.cond(normalise, lambda x: x * (1 - weight), lambda x: x, spent)
"""
MEMBERS = """
class Evolution:
    @jax.jit
    def step(self, key, params):
        return params[jax.random.choice(key, self.config.pop_size, (self.config.learners,), replace=False)]
"""
LEVELS = """
LEVELS = levels = jnp.arange(32) + 1

def run(problem):
    for level in LEVELS:
        problem.solve(int(level))
"""
BUILT = """
class Games:
    def __init__(self, make, key, count):
        seeds = jax.random.randint(key, (count,), 0, 1000)
        self.games = tuple(make(int(seeds[i])) for i in range(count))
"""
GUARD = """
@jax.jit
def potential(r, phi, m):
    first = lambda r, phi: r * jnp.log(r) * jnp.cos(phi)
    other = lambda r, phi: r / (1 - m**2) * jnp.cos(m * phi)
    return jax.lax.cond(m == 1, first, other, r, phi)
"""
KINDS_OF_SET = """
def center(kind, quantiles):
    conditions = [kind == "low", kind == "high"]
    return jnp.select(conditions, quantiles)
"""
CONDITIONS = """
def policy(x, observation, logits):
    return jnp.select(observation, logits)
"""
PAIRS = """
def rotated(x, cos, sin):
    x1, x2 = jnp.split(x.reshape(*x.shape[:-1], -1, 2), 2, axis=-1)
    turned = jnp.concatenate([-x2, x1], axis=-1)
    return x * cos + turned.reshape(x.shape) * sin
"""
LOSSES = """
@jax.jit
def evaluated(params, data):
    losses = jnp.zeros(64)
    for i in range(0, 64, 8):
        losses = losses.at[i : i + 8].set(loss(params, data[i : i + 8]))
    return losses

def loss(params, batch):
    return jnp.mean((batch @ params) ** 2, axis=-1)
"""
RETURNS = """
def returns(rewards, ends):
    ended = jnp.logical_or(ends, rewards < 0)

    def step(total, now):
        end, reward = now
        total = total * (1 - end) + reward
        return total, total

    _, totals = jax.lax.scan(step, rewards[0], (ended, rewards))
    return totals, np.argwhere(ended)
"""

POSITIONS = """
class Particles:
    def start(self, weights, key):
        self.chosen = jax.random.choice(key, weights.size, (64,), p=weights)
        return self.chosen
"""
CLUSTERS = """
def sampled(key, points, members, labels):
    clusters = [[] for _ in range(8)]
    for i in range(64):
        label = jnp.argmax(points[i])
        clusters[label].append(i)
        labels = labels.at[i].set(label)
    return labels
"""
REFLECTED = """
@jax.jit
def reflected(c, vectors, step):
    for start in range(0, 64, 8):
        c = c.at[start:, :].set(step(c[start:, :], vectors[start]))
    return c
"""
BATCHES = """
def shuffled(key, settings):
    return jax.random.permutation(key, settings.batch_size, independent=True)
"""
SEEN = """
class Maze:
    def step(self, state, action):
        return state

    def reset_env(self, start):
        seen = jnp.zeros((8, 8), dtype=bool)
        return seen.at[start[1], start[0]].set(True)
"""

ALIGNED = """
def aligned(steps, labels):
    def at(step, labels):
        return jax.lax.cond(step % 2 == 0, lambda: labels[0], lambda: 0)

    return jax.vmap(at, in_axes=(0, None))(steps, labels)
"""
SENT = """
@jax.jit
def sent(x, tracks):
    def one(i, results):
        return results.at[i].set(jax.lax.psum(tracks[i], "devices"))

    return jax.lax.fori_loop(0, 8, one, x)
"""
STACKED_BEAMS = """
def reordered(cache, beams, k):
    return jnp.einsum("beo,lbo...->lbe...", jax.nn.one_hot(beams, k), cache)
"""
POTENTIAL = """
def make_potential(atoms):
    table = atoms[:, None] - atoms[None, :]
    table = table.at[jnp.diag_indices(8)].set(0.0)

    def potential(x):
        return x @ table

    return potential
"""
SECOND = """
def second(scores):
    first = jnp.argmax(scores, axis=-1)
    return jnp.max(scores.at[..., first].set(-jnp.inf), axis=-1)
"""

BLOCKS = """
def energies(x, blocks, models):
    total = jnp.zeros((64, 4))
    for name in models:
        elements = blocks[name]
        total = total.at[elements].set(models[name](x[elements]))
    return total
"""
BUCKETS = """
def filled(buckets, points, places):
    for i in range(64):
        old = buckets[places[i]]
        new = joined(old, points[i])
        buckets = buckets.at[places[i]].set(new)
    return buckets

def joined(old, point):
    return jnp.sqrt(old * old + point * point)
"""

TOKENS = """
import tokens
from tokens import BEGIN, END

@jax.jit
def framed(x):
    row = jnp.full((x.shape[0], 8), 0)
    row = row.at[:, 0].set(BEGIN)
    return row.at[:, -1].set(END)
"""

# The rule, the code, and what has to be written otherwise for it to be a case.
CASES = {
    "beams that change places": ("one-hot-matmul", BEAMS, ("one_hot(beams, k)", "one_hot(beams, 50000)")),
    "a caller that gave a name": ("callback-in-loop-body", TOLD, ("name=None", "name")),
    "an instrument": ("callback-in-traced-code", INSTRUMENTED, ("def instrumented", "def solved")),
    "a name for a callback": ("callback-in-traced-code", WRAPPER, ("wrong)\n", "wrong)\n    return wrong\n")),
    "a picture": ("chained-at-set", PICTURE, ("render", "observe")),
    "first values": ("chained-at-set", INITIALIZER, ("bias_init=self.grid", "name=self.grid")),
    "a unit vector for an operator": ("one-hot-by-at-set", PROBE, ("operator(", "jnp.sin(")),
    "writes of several kinds": ("cond-around-a-write", KINDS, ("jax.lax.switch(kind, [wall, hole])", "wall()")),
    "a loop over functions": ("eager-at-set-loop", REWARDS, ("reward(texts)", "texts[i]")),
    "a walk along pointers": ("while-loop-under-vmap", POINTERS, ("parents[node]", "node + parents[node]")),
    "a list of settings": ("default-searchsorted", STEPS, ("array(config.steps)", "array(x.steps)")),
    "a list among settings": ("default-searchsorted", STEPS, ('kw.get("times", [])', "x.times")),
    "an array cut by a mask": ("default-searchsorted", MASKED, ("total[held]", "jnp.where(held, total, 0)")),
    "a layer that is another": ("layer-loop", FROZEN, ("i == self.frozen", "self.frozen")),
    "a first state": ("blocks-by-at-set", FIRST_STATE, ("def reset", "def observe")),
    "first rows of a loop": ("chained-at-set", FIRST_ROWS, ("- 2 * (i - 1) * H[i - 2]), H)", "- 2), -H)")),
    "settings": ("blocks-by-at-set", SETTINGS, ("self._config.noise.level", "self.state.level")),
    "places that are counted": ("columns-by-at-set", PLACES, ("jnp.arange(height)", "jnp.sin(heights)")),
    "a text that is compared": ("cond-for-where", TEXT, ('"major"', "x[0]")),
    "a switch": ("cond-for-where", SWITCH, ("normalise: bool = True", "normalise: bool")),
    "members of a population": ("choice-without-replacement", MEMBERS, ("self.config.pop_size", "self.config.size")),
    "a constant by its name": ("iterating-device-array", LEVELS, ("in LEVELS", "in levels")),
    "what a constructor builds": ("iterating-device-array", BUILT, ("__init__", "play")),
    "a division that is guarded": ("cond-for-where", GUARD, ("(1 - m**2)", "2")),
    "texts that are compared": ("select-or-piecewise", KINDS_OF_SET, ('kind == "low"', "kind == 1")),
    "conditions of the caller": ("select-or-piecewise", CONDITIONS, ("select(observation", "select([x > 0]")),
    "pairs, not halves": ("rope-by-copies", PAIRS, (".reshape(*x.shape[:-1], -1, 2)", "")),
    "a loss for each batch": ("blocks-by-at-set", LOSSES, ("jnp.zeros(64)", "jnp.zeros((64, 8))")),
    "returns of a data set": ("scan-without-unroll", RETURNS, ("np.argwhere(ended)", "ended")),
    "positions that are drawn once": ("choice-with-probabilities", POSITIONS, ("self.chosen", "chosen")),
    "lists by what is in arrays": ("chained-at-set", CLUSTERS, ("clusters[label].append(i)", "clusters[i].append(i)")),
    "blocks on blocks": ("chained-at-set", REFLECTED, ("start:, :]", "start, :]")),
    "a number of settings": ("independent-permutation", BATCHES, ("size, ind", "rows, axis=1, ind")),
    "what is seen at first": ("one-hot-by-at-set", SEEN, ("reset_env", "observe")),
    "a choice for each step": ("cond-for-where", ALIGNED, ("in_axes=(0, None)", "in_axes=(None, 0)")),
    "a step that sends": ("write-in-fori-loop", SENT, ("jax.lax.psum(tracks[i], ", "jnp.take(tracks[i], ")),
    "beams of all layers": ("one-hot-matmul", STACKED_BEAMS, ("one_hot(beams, k)", "one_hot(beams, 50000)")),
    "what makes a function": ("write-on-diagonal", POTENTIAL, ("make_potential", "potentials")),
    "what generates a function": (
        "write-on-diagonal",
        POTENTIAL.replace("make_", "generate_"),
        ("return potential", "return table"),
    ),
    "the largest of each row": ("write-before-reduction", SECOND, (", axis=-1)\n    return", ")\n    return")),
    "elements of each material": ("chained-at-set", BLOCKS, ("for name in models:", "for name in range(len(models)):")),
    "sums that are no sums": ("chained-at-set", BUCKETS, ("joined(old, points[i])", "joined(i, points[i])")),
    "constants by their names": ("columns-by-at-set", TOKENS, ("set(BEGIN)", "set(x[:, 0])")),
    "two Python numbers": ("cond-for-where", NUMBERS, ("width(1.0, 1.0)", "width(n[0], 1.0)")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, (written, otherwise) = CASES[name]
    assert found(rule, code) == 0
    assert written in code
    assert found(rule, code.replace(written, otherwise)) == 1


PAIRS = """
def overlaps(sheets, x, heads):
    found = []
    names = list(heads)
    for i in range(len(sheets)):
        for j in range(i + 1, len(sheets)):
            {pair}
            found.append(jnp.sum(jnp.abs(one - other)))
    return found
"""


@pytest.mark.parametrize(
    ("pair", "count"),
    [
        ("one, other = x[i], x[j]", 1),
        ("one = x[i].mean(); other = x[j].mean()", 1),
        ("one = x[:, heads[i][None], heads[j][None]]; other = x", 1),
        ("a, b = sheets[i], sheets[j]; one, other = a.mask, b.mask", 0),
        ("one, other = heads[names[i]], heads[names[j]]", 0),
    ],
)
def test_pairs_of_objects_and_of_names_are_no_rows_of_a_table(pair: str, count: int) -> None:
    assert found("pairwise-loop", PAIRS.format(pair=pair)) == count


ORDER = """
def epoch(state, key, total, count, size):
    order = jax.random.permutation(key, total)
    taken = {taken}
    return state, taken

def train(state, key, total, count, size):
    return jax.lax.scan(lambda s, k: epoch(s, k, total, count, size), state, key)
"""


@pytest.mark.parametrize(
    ("taken", "count"),
    [
        ("order[: count * size].reshape(count, size)", 0),
        ("order[: count * size].reshape((count, size))", 0),
        ("order[: count * size]; taken = taken.reshape((count, size))", 0),
        ("count * size; order = order[:taken]; taken = order.reshape(count, size)", 0),
        ("order[: count * size].reshape(-1, 3)", 1),
        ("order[:count]", 1),
    ],
)
def test_an_order_that_is_cut_into_batches_is_of_all(taken: str, count: int) -> None:
    assert found("choice-without-replacement", ORDER.format(taken=taken)) == count


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("return jnp.linalg.inv(box) @ y", 0),
        ("return y @ jnp.linalg.inv(x.cell)", 0),
        ("return jnp.linalg.inv(x[y, :3, :3]) @ y", 0),
        ("return jnp.linalg.inv(x) @ jnp.stack([y, y, jnp.ones_like(y)])", 0),
        ("return jnp.linalg.inv(x[y, :9, :9]) @ y", 1),
        ("return jnp.linalg.inv(x) @ jnp.stack([y, y, y, y])", 1),
        ("return jnp.linalg.inv(x.covariance) @ y", 1),
    ],
)
def test_what_space_has_axes_is_no_matrix_to_solve_with(code: str, count: int) -> None:
    assert found("inverse-then-matmul", f"def solved(x, y, box):\n    {code}\n") == count


LINEAR = """
def attend(q, k, v, decay, state):
    def step(state, row):
        q, k, v = row
        state = state * decay + {new}
        return state, jnp.sum(state * q[:, :, None], axis=1)

    return jax.lax.scan(step, state, (q, k, v))
"""


@pytest.mark.parametrize(("new", "count"), [("k[:, :, None] * v[:, None, :]", 0), ("k[:, :, None] * v[:, :, None]", 1)])
def test_a_step_that_makes_a_table_is_not_small(new: str, count: int) -> None:
    assert found("scan-without-unroll", LINEAR.format(new=new)) == count
