"""Writes that XLA folds: known values at known places of a known array, in a row or in loops. What a trace does not
know is found."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = (
    "import jax\nfrom jax import lax, numpy as jnp\nimport numpy as np\n"
    "from tokens import BEGIN, END, PAD\n\n@jax.jit\n"
)

PAIRS = """
def connected(x, names, joints):
    places = {name: i for i, name in enumerate(names)}
    table = jnp.zeros((len(names), len(names)), dtype=bool)
    table = table.at[jnp.arange(len(names)), jnp.arange(len(names))].set(True)
    for joint in joints:
        one = joint.parent
        other = joint.child
        if one in places:
            i = places[one]
            j = places[other]
            table = table.at[i, j].set(True)
            table = table.at[j, i].set(True)
    return jnp.where(table, x, 0.0)
"""
LISTS = """
def chosen(x, initial, variables):
    table = jnp.zeros((len(variables), len(initial)))
    for i, name in enumerate(initial):
        table = table.at[variables.index(name), i].set(1)
    return table @ x
"""
HARMONICS = """
def real(kernel, n):
    half = jnp.array(0.5j, dtype=complex)
    T = jnp.zeros((n, n), dtype=complex)
    T = T.at[0, 0].set(1.0)
    for k in range(1, n // 2 + 1):
        T = T.at[2 * k - 1, 2 * k - 1].set(half)
        T = T.at[2 * k - 1, 2 * k].set(-half)
    return (kernel @ T).real
"""
STENCIL = """
def stencil(x, n):
    weights = jnp.ones(n)
    weights = 2 * weights
    weights = weights.at[0].set(1)
    weights = weights.at[-1].set(1)
    return x * weights
"""
FRAME = """
def framed(x):
    row = jnp.full(shape=(x.shape[0], 8), fill_value=PAD)
    row = row.at[:, 0].set(BEGIN)
    return row.at[:, -1].set(END)
"""
MATRIX = """
def scaled(x, n):
    scale = jnp.zeros((n, n)).at[jnp.diag_indices(n)].set(2.0)
    return scale @ x
"""
BLOCKS = """
def masked(x):
    mask = jnp.ones((64, 64))
    for i in range(8):
        mask = mask.at[i * 8 : i * 8 + 8, i * 8 : i * 8 + 8].set(0)
    return x * mask
"""
SHAPES = """
def edges(x):
    new = jnp.zeros(x.shape)
    return new.at[0, 1].set(3.0).at[2, 1].set(4.0)
"""
KINDS = """
def graph(x, sizes):
    behind = sizes["rays"] * x.shape[0]
    kinds = jnp.zeros(2 * x.shape[0] + behind)
    kinds = kinds.at[x.shape[0] : 2 * x.shape[0]].set(Kind.GOAL)
    return kinds.at[-behind:].set(Kind.OBSTACLE)
"""
COLUMNS = """
def features(x, n):
    of_each = jnp.zeros((n, 3))
    of_each = of_each.at[: n // 2].set(1)
    return of_each.at[n // 2 :].set(2)
"""
CONFIG = """
def load(i, given):
    @dataclasses.dataclass
    class Config:
        x: object = dataclasses.field(default_factory=lambda: jnp.zeros(4))

    config = Config()
    def first(config):
        x = config.x
        x = x.at[0].set(5)
        x = x.at[1].set(7)
        return x
    def second(config):
        return config.x.at[0].set(1).at[2].set(2)
    return jax.lax.switch(i, [first, second], config)
"""
BOUNDS = """
def objective(x):
    return x.sum()

class Problem:
    @property
    def bounds(self):
        count = (self.periods - 1) * self.controls
        angle = 0.3
        upper = jnp.full(2 * self.n - 1, jnp.inf)
        upper = upper.at[count].set(15.0)
        upper = upper.at[self.place("x", 1)].set(-self.SPEED)
        upper = upper.at[-1].set(jnp.cos(angle))
        return -upper, upper
"""

# The rules, the code, and what has to be written otherwise for a trace not to know it, found so many times.
WEIGHTS = """
def weights(x, cells, n):
    div = 1.0
    w = jnp.zeros((n, 8, 4))
    w = w.at[:, cells.EARTH, cells.ROOT].set(-div)
    w = w.at[:, cells.AIR, cells.LEAF].set(div / 8.0)
    return x @ w
"""
MASK = """
def masked(x, size, shift):
    mask = jnp.zeros((1, 32, 32, 1))
    rows = (slice(0, -size), slice(-size, -shift), slice(-shift, None))
    count = 0
    for h in rows:
        for w in rows:
            mask = mask.at[:, h, w, :].set(count)
            count += 1
    return x + mask
"""
TABLE = """
class Attention:
    def biased(self, x):
        rows, columns = jnp.arange(self.window[0]), jnp.arange(0, self.window[1])
        places = jnp.stack(jnp.meshgrid(rows, columns, indexing="ij")).reshape(2, -1)
        away = jnp.transpose(places[:, :, None] - places[:, None, :], (1, 2, 0))
        away = away.at[:, :, 0].add(self.window[0] - 1)
        away = away.at[:, :, 1].add(self.window[1] - 1)
        return x[away.sum(-1)]
"""
START = """
def started(x, n):
    first = jnp.zeros(2 * n)
    first = first.at[:n].set(jnp.asarray(jnp.arange(1, n + 1)))
    first = first.at[n:].set(jnp.sin(-jnp.arange(n)))
    return x @ first
"""
WINDOW = """
def windowed(x, size, overlap):
    window = jnp.ones(size)
    taper = 0.54 - 0.46 * jnp.cos(jnp.pi * jnp.arange(overlap) / overlap)
    window = window.at[:overlap].set(taper)
    window = window.at[-overlap:].set(taper[::-1])
    return window @ x
"""
TREE = """
def rewarded(x, depth):
    inner = 2**depth
    nodes = 2 * inner - 1
    reward = jnp.zeros((2, nodes, nodes))
    reward = reward.at[0, inner // 2 - 1, 2**depth - 1].set(1.0)
    reward = reward.at[1, inner - 2, depth].set(0.5)
    return reward * x
"""
SCALES = """
def scaled(x, config, begin, end):
    scales = list(config.scales)
    row = jnp.ones((1, 1, int(config.width)))
    row = row.at[:, :, begin:end].multiply(scales[0])
    row = row.at[:, :, end:].multiply(scales[1])
    return x * row
"""
EQUILIBRIUM = """
def step(x):
    return x

class Drone:
    @property
    def hover(self):
        u = jnp.zeros((self.dim,))
        u = u.at[Drone.F_1].set(self.params["m"] * 9.81 / 4)
        return u.at[Drone.F_2].set(self.params["m"] * 9.81 / 4)
"""
FILLED = """
def observed(x, n):
    rows = []
    for i in range(n):
        rows.append(x[i])
    rows = jnp.array([1.0, 2.0])
    rows = rows.at[0].set(1.0)
    rows = rows.at[2].set(2.0)
    return rows * x
"""
LEVEL = """
def level(x, i):
    cells = jnp.array([[1, 2], [2, 1]])
    grid = jnp.zeros((5, 5, 11))
    px, py = (1, 1)
    grid = grid.at[px, py, 0].set(1)
    grid = grid.at[cells[0, 0], cells[0, 1], 1].add(1)
    grid = grid.at[cells[1, 0], cells[1, 1], 2].add(1)
    return grid * x
"""
ONE = "    w = w.at[:, cells.NONE, cells.ROOT].set(0)\n"
TWO = """\
    if n > 3:
        w = w.at[0, cells.AIR, cells.ROOT].set(1.0)
        w = w.at[0, cells.AIR, cells.LEAF].set(2.0)
"""
MANY = WEIGHTS.replace("    return", ONE * 12 + TWO + "    return")
CASES = {
    "places by their names": (("chained-at-set", "write-on-diagonal"), PAIRS, ("enumerate(names)", "x"), 1),
    "the diagonal of a table": (("write-on-diagonal",), PAIRS, ("].set(True)\n    for", "].set(x)\n    for"), 1),
    "places in a list": (("chained-at-set",), LISTS, (".set(1)", ".set(x[i])"), 1),
    "places that are counted": (("chained-at-set",), HARMONICS, ("in range(1, n // 2 + 1)", "in kernel"), 1),
    "values that are kept": (("chained-at-set",), HARMONICS, ("jnp.array(0.5j, dtype=complex)", "kernel[0, 0]"), 1),
    "an array that is worked on": (("boundary-writes",), STENCIL, ("2 * weights", "x * weights"), 1),
    "constants": (("columns-by-at-set",), FRAME, ("set(END)", "set(x[:, 0])"), 1),
    "filled with constants": (("columns-by-at-set",), FRAME, ("fill_value=PAD", "fill_value=x[0, 0]"), 1),
    "a matrix of numbers": (("write-on-diagonal",), MATRIX, ("set(2.0)", "set(x[0])"), 1),
    "blocks of numbers": (("blocks-by-at-set",), BLOCKS, ("in range(8)", "in x"), 1),
    "a config of numbers": (("chained-at-set",), CONFIG, ("Config()\n", "Config(given)\n"), 2),
    "a config of numbers, and another": (("chained-at-set",), CONFIG, ("second], config", "second], given"), 2),
    "a config that somebody hands over too": (("chained-at-set",), CONFIG, ("i, [first", "first(given), [first"), 1),
    "kinds of nodes": (("blocks-by-at-set",), KINDS, ("set(Kind.GOAL)", "set(x[0])"), 1),
    "rows of numbers": (("blocks-by-at-set",), COLUMNS, ("set(2)", "set(x[0])"), 1),
    "bounds of a problem, one of which is learned": (("chained-at-set",), BOUNDS, ("set(15.0)", "set(self.rate)"), 1),
    "bounds of a problem, where somebody says": (("chained-at-set",), BOUNDS, ("bounds(self)", "bounds(self, k)"), 1),
    "regions that are counted": (("chained-at-set",), MASK, ("count += 1", "count += x[0, 0, 0, 0]"), 1),
    "words in capitals": (("chained-at-set",), WEIGHTS, ("cells.EARTH, cells.ROOT", "cells.earth, cells.root"), 1),
    "a table of differences": (("columns-by-at-set",), TABLE, ("self.window[1] - 1", "self.bias"), 1),
    "ranges that are worked on": (("blocks-by-at-set",), START, ("jnp.sin(-jnp", "jnp.sin(x * jnp"), 1),
    "a window of ranges": (("blocks-by-at-set",), WINDOW, ("jnp.arange(overlap)", "jnp.linspace(0, x[0], overlap)"), 1),
    "ranges, but not in steps": (("chained-at-set",), START, (("[:n]", "[n:]"), ("[::2]", "[1::2]")), 1),
    "after many writes": (("chained-at-set",), MANY, ("cells.ROOT].set(1.0)", "cells.ROOT].set(x[0])"), 1),
    "what sizes are made of": (("chained-at-set",), TREE, ("nodes = 2 * inner - 1", "nodes = len(x)"), 1),
    "settings in a list": (("chained-at-set",), SCALES, ("list(config.scales)", "x[0, 0]"), 1),
    "a row of settings": (("chained-at-set",), SCALES, ("(1, 1, int(", "(2, 2, int("), 1),
    "what an object is set up with": (("chained-at-set",), EQUILIBRIUM, ("hover(self)", "hover(self, x)"), 1),
    "what is stacked, but of no list": (("chained-at-set",), FILLED, ("jnp.array([1.0, 2.0])", "jnp.stack(rows)"), 1),
    "cells that are written out": (("chained-at-set",), LEVEL, ("[2, 1]])", "[2, 1]]) + i"), 1),
    "cells that are asked for": (("chained-at-set",), LEVEL, (("[0, 0]", "[1, 0]"), ("[i, 0]", "[i, 1]")), 1),
    "of a shape that is given": (("chained-at-set",), SHAPES, (".set(3.0)", ".set(x)"), 1),
}  # fmt: skip


def found(rules: tuple[str, ...], code: str) -> int:
    return len(list(check_text((HEAD + code.lstrip()).encode(), "m.py", Scope(rules))))


@pytest.mark.parametrize("name", CASES)
def test_what_a_trace_knows_is_left_alone_and_what_it_does_not_know_is_found(name: str) -> None:
    rules, code, (written, otherwise), times = CASES[name]
    assert found(rules, code) == 0
    changed = code
    for old, new in zip(
        *((written, otherwise) if isinstance(written, tuple) else ([written], [otherwise])), strict=True
    ):
        assert old in changed
        changed = changed.replace(old, new)
    assert found(rules, changed) == times


@pytest.mark.parametrize(("number", "count"), [("jnp.bool_(True)", 0), ("jnp.int32(-1)", 0), ("jnp.float32(x[0])", 1)])
def test_a_number_of_a_type_is_one_that_is_written_out(number: str, count: int) -> None:
    code = f"{HEAD}def opened(x):\n    one = {number}\n    return x * jnp.zeros(65).at[19].set(one).at[26].set(one)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == count


STATIC = """
@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def states(key, shape, up, down):
    s = jnp.zeros(shape)
    s = s.at[:, :up].set(2)
    s = s.at[:, up : up + down].set(1)
    return jax.random.permutation(key, s, axis=1)
"""
LENGTHS = """
def weights(x, order):
    w = jnp.zeros((order * order, 1))
    start = 0
    for degree in range(1, order):
        length = 2 * degree + 1
        w = w.at[start : start + length, 0].set(1.0 / length)
        start += length
    return w @ x
"""
BOARD = """
def opened(x, i, j):
    grid = jnp.zeros((32, 32)).at[0, 1].set(1.0).at[2, 5].set(3.0)
    return grid.at[i, j].set(2.0) + x
"""
BASIS = """
def table(degree: int, dtype=jnp.float32):
    size = 2 * degree + 1
    u = jnp.zeros((size, size), dtype)
    for m in range(-degree, degree + 1):
        sign = (-1) ** m
        u = u.at[m + degree, abs(m) + degree].set(sign * coefficient(m))
    return u
"""


@pytest.mark.parametrize(
    ("rule", "code", "old", "new"),
    [
        pytest.param("blocks-by-at-set", STATIC, "static_argnums=(1, 2, 3)", "static_argnums=1", id="static arguments"),
        pytest.param("blocks-by-at-set", LENGTHS, "start += length", "start += ends[degree]", id="lengths added up"),
        pytest.param("chained-at-set", BOARD, "at[0, 1]", "at[i, 1]", id="all but the last"),
        pytest.param("chained-at-set", BASIS, "dtype=", "kinds=", id="a type among sizes"),
    ],
)
def test_what_is_handed_over_and_known_is_left_alone(rule: str, code: str, old: str, new: str) -> None:
    head = "import functools\nimport jax\nfrom jax import lax, numpy as jnp\n"
    scope = Scope((rule,))
    assert old in code
    assert not check_text((head + code).encode(), "m.py", scope)
    assert len(check_text((head + code.replace(old, new)).encode(), "m.py", scope)) == 1


RECORD = """
import jax
import jax.numpy as jnp
from flax import struct

@struct.dataclass
class State:
    alive: jax.Array{more}

@jax.jit
def began(key, given):
    state = State(alive={alive})
    alive = state.alive
    alive = alive.at[4, 0].set(1)
    alive = alive.at[5, 1].set(1)
    return alive, key
"""


@pytest.mark.parametrize(
    ("alive", "more", "count"),
    [
        ("jnp.zeros((8, 2), jnp.int32)", "", 0),
        ("given", "", 1),
        ("jnp.zeros((8, 2))", "\n\n    def __post_init__(self):\n        change(self)\n", 1),
    ],
    ids=["known", "handed in", "changed by the class"],
)
def test_a_record_that_is_made_there_holds_what_it_was_given(alive: str, more: str, count: int) -> None:
    code = RECORD.format(alive=alive, more=more)
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == count
