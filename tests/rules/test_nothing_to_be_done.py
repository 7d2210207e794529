"""What a compiler drops, what somebody looks at, what runs once: nothing is said; of what stands next to it, it is."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "from jax import lax\nimport functools, jax, h5py, scipy.optimize\nimport jax.numpy as jnp\nimport numpy as np\n"

SIZES = """
@jax.jit
def deposit(tiles, q):
    rows, columns = tiles.shape[:2]
    active = rows * 4 > 1
    return jax.lax.cond(active, lambda x: x + 1, lambda x: x * 2, q)
"""
ASKED = """
@jax.jit
def deposit(x, q, active):
    y = jax.lax.cond(active, lambda x: x + 1, lambda x: x * 2, q)
    if active and len(x) > 2:
        y = y * 2
    return y
"""
HANDED = """
PERIODIC = 0

@jax.jit
def step(x, n):
    return wrap(x, PERIODIC), wrap(x + 1, 2)

def wrap(x, border):
    return jax.lax.cond(border == PERIODIC, lambda x: x % 8, lambda x: x, x)
"""
IDENTITY = """
@jax.jit
def masked(x, n, masks=None):
    return jax.lax.cond((n == 0) & (masks is None), lambda x: x + 1, lambda x: x * 2, x)
"""
ABSTRACT = """
class Loss:
    def _far(self, x):
        BODY

    @jax.jit
    def loss(self, x, n):
        return x + jax.lax.cond(n > 0, lambda x: self._far(x), lambda x: x * 2.0, x)
"""
SHOWN = """
@jax.jit
def update(x):
    return x * 2, x.sum()

def fit(x, bar):
    for i in range(1000):
        x, loss = update(x)
        bar.set_description(f"{loss}")
        show(render(x))
    return x
"""
SOLVED = """
@jax.jit
def update(x):
    return x * 2, x.sum()

def fit(x, bar, f):
    for i in range(1000):
        x, loss = update(x)
        bar.set_description(f"{loss}")
        y = scipy.optimize.minimize(f, i)
    return x
"""
SIMULATED = """
@jax.jit
def act(x, i):
    return x * i, x.sum()

def roll(env, x):
    actions = np.zeros(1000)
    for i in range(1000):
        y, action = act(x, i)
        env.step(action)
        actions[i] = action
    return actions
"""
OFFSETS = """
def parts(arrays, sizes):
    starts = jnp.cumsum(jnp.array([0] + sizes))
    return [a[int(starts[i]):] for i, a in enumerate(arrays)]
"""
EARLY = """
def parts(x):
    with jax.ensure_compile_time_eval():
        starts = jnp.cumsum(x)
        return [int(starts[i]) for i in range(len(x))]
"""
ALIASED = """
@jax.jit
def step(state, old, batch):
    return state.apply_gradients(grads=jax.grad(loss)(state.params, old, batch))

def train(train_state, batches):
    for batch in batches:
        old = train_state.params
        train_state = step(train_state, old, batch)
    return train_state
"""
FEW = """
def loss(x, batch):
    return x["mass"] * batch.sum()

@jax.jit
def step(params, batch):
    return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss)(params, batch))

def train(batches, weights):
    params, seen = {"mass": jnp.asarray(1.0)}, []
    for batch in batches:
        params = step(params, batch)
    return params
"""
CHASED = """
def path(parent, start):
    def turn(carry):
        i, here, seen = carry
        after = jnp.where(here == 0, -1, parent[here])
        return i + 1, after, seen + here

    def goes_on(carry):
        i, here, seen = carry
        return (here >= 0) & (i < 100)

    return jax.lax.while_loop(goes_on, turn, (0, start, 0))

found = jax.jit(jax.vmap(path, (None, 0)))
"""
LEVELS = """
def find(tree, target):
    def turn(carry):
        i, target = carry
        left = target < tree[2 * i]
        return jnp.where(left, 2 * i, 2 * i + 1), jnp.where(left, target, target - tree[2 * i])

    def goes_on(carry):
        i, target = carry
        return i < 1024

    return jax.lax.while_loop(goes_on, turn, (1, target))

found = jax.jit(jax.vmap(find, (None, 0)))
"""
SORTED = """
@jax.jit
def nearest(d):
    return jnp.argsort(d)[0], jnp.argsort(d)[1]
"""
REASON = """
@jax.jit
def spectrum(xs):
    # vmap cannot be used here
    return jax.lax.map(lambda x: x * 2 + 1, xs)
"""
SINGLE = """
@jax.jit
def norm(x):
    return jax.lax.map(lambda x: x * 2 + 1, jnp.reshape(x, (1, 8, -1)))
"""
PRODUCT = """
WEIGHTS = jnp.ones((64, 64))

def row(v):
    return jnp.sin(WEIGHTS @ v)

@jax.jit
def totals(x):
    def total(a):
        rows = jax.vmap(row)
        return MAPPED(a).sum()
    return jax.lax.map(total, x)
"""
WINDOWS = """
def patch(center):
    return jax.lax.dynamic_slice(PICTURE, (center[0], center[1]), (7, 7))

PATCHES = jax.vmap(patch)(PLACES)
"""
QUARTERS = """
@jax.jit
def merge(x):
    n = x.shape[0]
    return (x * 2).reshape(n // 4, 4, 8)

def merged(x, levels):
    for i in range(levels):
        x = merge(x)
    return x
"""
ROWS = """
@jax.jit
def far(x):
    return jnp.sin(x)

def prepare(data, n):
    for i in range(n):
        y = far(data["x"][i])
        data["y"][i] -= y
    return data
"""
KEYS = """
@functools.partial(jax.jit, static_argnames=("place",))
def measured(x, place):
    return x * targets[place]

def train(x, targets):
    for i in range(100):
        x = measured(x, place=i)
    return x
"""
DATA = """
def generate_regression_data(key, n):
    cov = jax.random.normal(key, (n, n))
    return jnp.linalg.inv(cov) @ jax.random.normal(key, (n,))
"""
CHECKED = """
class Basis:
    def step(self, arrays):
        return _check_arrays(arrays)

def _check_arrays(arrays):
    return all(jnp.all(a >= 0) for a in jax.tree.leaves(arrays))
"""
LEFT = """
class Collector:
    def write(self, name, value):
        if name not in self.shown:
            return
        value = value * 2
        jax.debug.print("{}", value)
"""
ENDED = """
class Task:
    def on_train_end(self, state):
        share = state.sum()
        jax.debug.print("share {x}", x=share)
        return state * share
"""
PROGRESS = """
def sample(x, logger):
    def show_progress(i):
        logger.info(f"step {i}")

    def step(x, i):
        jax.debug.callback(show_progress, i)
        return x * 2, x

    return jax.lax.scan(step, x, jnp.arange(8))
"""
SUMMARY = """
def train(x, keep):
    def rollout(x):
        return jax.lax.scan(lambda x, i: (x * 2, x), x, jnp.arange(100))

    def update(x, i):
        x, seen = rollout(x)
        jax.experimental.io_callback(keep, None, (seen.sum() / jnp.maximum(x.sum(), 1.0), i - 1))
        return x, seen

    return jax.lax.scan(update, x, jnp.arange(8))
"""
FILED = """
@jax.jit
def update(x):
    return x * 2, x.sum(axis=0)

def fit(x, path):
    for i in range(1000):
        x, rows = update(x)
        with h5py.File(path, "a") as f:
            kept = f["rows"]
            kept.append(np.array(rows))
    return x
"""
MASK = """
@jax.jit
def place(m):
    return jnp.argwhere(m, size=1)[0]
"""
PIECES = """
@jax.jit
def f(x):
    return jnp.piecewise(x, [x < 0, x > 1], [low, 1.0, high])
"""

CASES = {
    "sizes under names": ("cond-for-where", SIZES, ("rows * 4 > 1", "q[0] > 1")),
    "what Python asks for": ("cond-for-where", ASKED, ("if active and len(x) > 2", "if len(x) > 2")),
    "constants that all hand": ("cond-for-where", HANDED, ("wrap(x, PERIODIC)", "wrap(x, n)")),
    "identity": ("cond-for-where", IDENTITY, ("(masks is None)", "(x[0] > 1)")),
    "a method that a subclass makes": ("cond-for-where", ABSTRACT, ("BODY", "return x + 1.0")),
    "a picture in each turn": ("host-sync-in-step-loop", SHOWN, ("show(render(x))", "pass")),
    "a solver in each turn": ("host-sync-in-step-loop", SOLVED, ("scipy.optimize.minimize(f, i)", "i")),
    "a simulator of the host": ("host-sync-in-step-loop", SIMULATED, ("env.step(action)", "env.step(i)")),
    "where parts begin": ("iterating-device-array", OFFSETS, ("jnp.array([0] + sizes)", "jnp.sin(arrays[0])")),
    "known early": ("iterating-device-array", EARLY, ("with jax.ensure_compile_time_eval():", "if True:")),
    "another argument holds it": ("update-without-donation", ALIASED, ("old = train_state.params", "old = 1")),
    "a few numbers": ("update-without-donation", FEW, ('{"mass": jnp.asarray(1.0)}', "weights")),
    "what leads to the next": ("while-loop-under-vmap", CHASED, ("parent[here]", "here - parent[here]")),
    "the levels of a tree": ("while-loop-under-vmap", LEVELS, ("i < 1024", "tree[i] < target")),
    "other places of the order": ("sort-for-max", SORTED, ("jnp.argsort(d)[1]", "jnp.sum(d)")),
    "a reason": ("lax-map-for-vmap", REASON, ("# vmap cannot be used here", "# of all")),
    "a single element": ("lax-map-for-vmap", SINGLE, ("(1, 8, -1)", "(8, 8, -1)")),
    "a product behind a map": ("lax-map-for-vmap", PRODUCT.replace("MAPPED", "jax.vmap(row)"), ("WEIGHTS @", "2.0 *")),
    "a product behind a map's name": ("lax-map-for-vmap", PRODUCT.replace("MAPPED", "rows"), ("WEIGHTS @", "2.0 *")),
    "windows that are cut once": ("vmapped-dynamic-slice", WINDOWS, ("jax.vmap(patch)(PLACES)", "jax.vmap(patch)")),
    "behind a setting": ("callback-in-traced-code", LEFT, ("if name not in self.shown", "if value.ndim == 0")),
    "at the end": ("callback-in-traced-code", ENDED, ("on_train_end", "on_step_end")),
    "how far it is": ("callback-in-loop-body", PROGRESS, ("logger.info", "logger.keep")),
    "numbers of many steps": ("callback-in-loop-body", SUMMARY, ("x, seen = rollout(x)", "seen = x")),
    "a file": ("host-sync-in-step-loop", FILED, ("h5py.File", "locked")),
    "a quarter in each turn": ("loop-over-jit", QUARTERS, (".reshape(n // 4, 4, 8)", "")),
    "rows of its own": ("loop-over-jit", ROWS, ('far(data["x"][i])', 'far(data["y"])')),
    "a key of a dict": ("varying-static-argument", KEYS, ("targets[place]", "place")),
    "a data set": ("inverse-then-matmul", DATA, ("generate_regression_data", "regression")),
    "what is checked": ("reads-one-by-one", CHECKED, ("_check_arrays", "_are_positive")),
}  # fmt: skip


def found(rule: str, code: str) -> int:
    return len(check_text((HEAD + code).encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, (written, otherwise) = CASES[name]
    assert written in code
    assert found(rule, code.replace("BODY", "pass")) == 0
    assert found(rule, code.replace(written, otherwise)) > 0


def advice(rule: str, code: str) -> str:
    (one,) = check_text((HEAD + code).encode(), "m.py", Scope((rule,)))
    assert one.suggestion is not None
    return one.suggestion.text


def test_the_first_hit_of_a_mask_is_said_for_more_axes_too() -> None:
    write = advice("nonzero-as-mask", MASK)
    assert write.endswith("jnp.unravel_index(jnp.argmax(m), m.shape) where it has more")


def test_functions_that_are_written_for_one_number_are_vectorized() -> None:
    assert "jnp.vectorize" in advice("select-or-piecewise", PIECES)
    assert "vectorize" not in advice(
        "select-or-piecewise", PIECES.replace("[low, 1.0, high]", "[0.0, 1.0, lambda x: x]")
    )


def test_weights_beside_a_few_numbers_are_to_be_donated() -> None:
    beside = (
        FEW.replace("def step(params, batch):", "def step(weights, params, batch):")
        .replace("return jax.tree.map(", "return weights - batch, jax.tree.map(")
        .replace("params = step(params, batch)", "weights, params = step(weights, params, batch)")
        .replace("return params\n", "return weights, params\n")
    )
    assert found("update-without-donation", beside) == 1


NUMPYS = """
def table(names, x):
    matrix = {made}
    places = {{name: i for i, name in enumerate(names)}}
    for i, name in enumerate(names):
        {inner}
    matrix = matrix.at[x[0], 0].set(x[1])
    return matrix.at[x[1], 1].set(x[2])
"""


@pytest.mark.parametrize(
    ("made", "times"), [("np.zeros((9, 9))", 0), ("jnp.zeros((9, 9))", 2), ("jnp.asarray(np.zeros((9, 9)))", 2)]
)
def test_an_array_of_numpy_has_no_at(made: str, times: int) -> None:
    inner = "matrix = matrix.at[i, x[i]].set(x[i])"
    code = HEAD + NUMPYS.format(made=made, inner=inner)
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == times


@pytest.mark.parametrize(("made", "times"), [("np.zeros((9, 2))", 0), ("jnp.zeros((9, 2))", 1)])
def test_neither_in_its_columns(made: str, times: int) -> None:
    code = f"{HEAD}\ndef f(a, b):\n    x = {made}\n    x = x.at[:, 0].set(a)\n    return x.at[:, 1].set(b)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("columns-by-at-set",)))) == times


ONCE = """
def responses(flow, p, a, b):
    {comment}
    def helm(p):
        p = p.at[..., 0].set(a).at[..., -1].set(b)
        return flow.solve(p)
    return helm(p)
"""


@pytest.mark.parametrize(
    ("comment", "times"),
    [
        ("# mode-outer layout, transposed at the end (run once; see derive)", 0),
        ("# This is called only once.", 0),
        ("# run once per step", 1),
        ("# runs once each iteration", 1),
        ("# Python's loop runs once, during tracing", 1),
        ('"""What it does."""\n    # kept small: it is called once.\n    q = p', 0),
        ("q = p\n    # the encoder is run once.\n", 1),
        ("# one solve", 1),
    ],
)
def test_a_comment_says_that_a_function_runs_once(comment: str, times: int) -> None:
    code = HEAD + ONCE.format(comment=comment)
    assert len(check_text(code.encode(), "m.py", Scope(("columns-by-at-set",)))) == times


@pytest.mark.parametrize(
    ("place", "value", "times"),
    [("i, i + 1", "1", 0), ("n - 1, i", "1", 1), ("i, x[i] + 1", "1", 1), ("i, i + 1", "x[i]", 1)],
)
def test_numbers_at_places_that_a_loop_counts_are_folded_whatever_is_written_later(
    place: str, value: str, times: int
) -> None:
    code = f"""{HEAD}
def design(x, n):
    F = jnp.zeros((n, n))
    for i in range(n - 1):
        F = F.at[{place}].set({value})
    return F * x
"""
    later = code.replace("    return F", "    F = F.at[n - 1, 0].set(x[0])\n    return F")
    found = check_text(later.encode(), "m.py", Scope(("chained-at-set",)))
    assert len([one for one in found if "piece by piece" in one.message]) == times
