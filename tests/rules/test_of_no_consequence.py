"""Code that is nothing beside what it stands beside, or that nothing comes of, each beside a case that differs in that
alone: of the first nothing is said."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.finding import Finding
from fusionlint.source.fix import apply
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\nimport flax.linen as nn\nimport optax\n"


def findings(rule: str, code: str) -> list[Finding]:
    return list(check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,))))


SEARCH = """
@jax.jit
def stepped(times, t, x):
    i = jnp.searchsorted(times, t)
    return x * {what}
"""
RUNS = """
def fitted(key):
    x, loss = lax.while_loop(lambda s: s[1] > 1e-3, lambda s: (s[0] * 0.9, s[1] * 0.5), (jax.random.normal(key), 1.0))
    return Result(x, loss)

def costs(key):
    return Result(jax.random.normal(key), jax.random.uniform(key))

@jax.jit
def best(keys):
    results = jax.vmap({run})(keys)
    i = jnp.argmin(results.loss)
    return results.x[i], results.loss[i]
"""
MESH = """
@jax.jit
def density(cov, x):
    x = x.reshape({shape})
    return jnp.sum(jnp.linalg.inv(cov) @ x * x, axis=0)
"""
GATHERED = """
def evaluate(state, eval_step, batches, steps):
    seen = []
    for step in range(steps):
        {batch}
        seen.append(eval_step(state, batch))
    return jax.pmap(lambda x: lax.all_gather(x, "i"), "i")(seen)

def main(state, eval_step, batches):
    for epoch in range(100):
        evaluate(state, eval_step, batches, 10)
"""
HUNDRED = """
step = jax.jit(lambda state: state * 0.9)
state = jnp.ones(8)
for i in range({turns}):
    state = step(state)
    {then}
"""
TRIANGLE = """
def spread(x):
    return jnp.median((x[:, None] - x)[jnp.triu_indices(64, 1)])

{caller}
"""
LEVELS = """
@jax.jit
def quantiles(x, q=None):
    q = jnp.{levels} if q is None else jnp.atleast_1d(q)
    order = jnp.argsort(q)
    levels = q[order]
    return jnp.quantile(x, levels)[order]
"""
BOXES = """
class Head(nn.Module):
    @nn.compact
    def __call__(self, x, ref):
        boxes = {boxes}
        return jnp.concatenate([boxes[..., :2] + ref, boxes[..., 2:]], axis=-1)
"""
CENTRAL = """
def central_{what}():
    def made(key, shape, dtype=jnp.float32):
        kernel = jax.random.normal(key, shape, dtype)
        n = shape[0] // 2
        kernel = lax.stop_gradient(kernel).at[:, :n].set(0.0)
        return kernel.at[:, n + 1 :].set(0.0)
    return made
"""
PICTURES = """
def {name}(images, masks):
    images, masks = jnp.sin(images), jnp.cos(masks)
    return jnp.array([jnp.concatenate([image, mask], axis=0) for image, mask in zip(images, masks)])
"""
TABLES = """
class Rotary(nn.Module):
    def tables(self, angles):
        angles = jnp.concatenate([angles, angles], axis=-1)
        return jnp.cos(angles), jnp.sin(angles)

    def __call__(self, x, angles):
        {use}
"""
SWEPT = """
def edges(u, low, high):
    return jnp.sin(u).at[0].add(low).at[-1].add(high)

def thomas(diagonal, right):
    return lax.scan(lambda c, x: (c / x[0] + x[1], c), 0.0, (diagonal, right))[1]

@jax.jit
def implicit(u, diagonal, low, high):
    return thomas(diagonal, edges(u, low, high))

def residual(u, low, high):
    return edges(u, low, high) - u
{also}
"""
ALSO = """
def explicit(u, low, high):
    return lax.fori_loop(0, 100, lambda i, u: edges(u, low, high), u)
"""
MLP = """
from flax import nnx
from flax.training.train_state import TrainState

class MLP(nnx.Module):
    def __init__(self, din, dhidden, dout{default}, *, rngs):
        self.a = nnx.Param(jax.random.normal(rngs.params(), (din, dhidden)))
        self.b = nnx.Param(jax.random.normal(rngs.params(), (dhidden, dout)))

graphdef, params = nnx.split({made}, nnx.Param)
state = TrainState.create(apply_fn=None, params=params, tx=optax.adam(0.1))

@jax.jit
def train_step(state, batch):
    grads = jax.grad(lambda p: jnp.mean(nnx.merge(graphdef, p)(batch)))(state.params)
    return state.apply_gradients(grads=grads)

for i in range(10_000):
    state = train_step(state, jnp.ones(8))
"""
POPULATION = """
def add_noise(many, key):
    return many + jax.random.normal(key, many.shape)

def main(training_state, run_episode, keys):
    @jax.jit
    def update(training_state, key):
        many = add_noise({many}, key)
        scores = run_episode(many, key)
        return training_state + jax.grad(lambda p: jnp.sum(p * scores))(training_state)

    for key in keys:
        training_state = update(training_state, key)
    return training_state
"""


@pytest.mark.parametrize(
    ("rule", "code", "quiet", "loud"),
    [
        ("default-searchsorted", SEARCH, {"what": "2"}, {"what": "i"}),
        ("argmax-then-pick", RUNS, {"run": "fitted"}, {"run": "costs"}),
        ("argmax-then-pick", RUNS, {"run": "lambda key: fitted(key)"}, {"run": "lambda key: costs(key)"}),
        ("inverse-then-matmul", MESH, {"shape": "*x.shape[:-2], -1"}, {"shape": "8, 1"}),
        ("inverse-then-matmul", MESH, {"shape": "2, -1"}, {"shape": "-1, 1"}),
        ("jit-per-call", GATHERED, {"batch": "batch = next(batches)"}, {"batch": "batch = step"}),
        ("loop-over-jit", HUNDRED, {"turns": "100", "then": "pass"}, {"turns": "1000", "then": "pass"}),
        (
            "loop-over-jit",
            HUNDRED,
            {"turns": "100", "then": "if i % 20 == 0:\n        print(float(state[0]))"},
            {"turns": "100", "then": "if state[0] < 0.1:\n        state = state + 1.0"},
        ),
        (
            "triangle-indices-in-trace",
            TRIANGLE,
            {"caller": "def main(x):\n    print(spread(x))"},
            {"caller": "@jax.jit\ndef scaled(x):\n    return x / spread(x)"},
        ),
        ("argsort-then-gather", LEVELS, {"levels": "array([0.2, 0.5, 0.8])"}, {"levels": "linspace(0.0, 1.0, 4096)"}),
        ("arithmetic-by-concat", BOXES, {"boxes": "nn.Dense(4)(x)"}, {"boxes": "jnp.sin(x)"}),
        ("chained-at-set", CENTRAL, {"what": "initializer"}, {"what": "mask"}),
        ("loop-over-traced-array", PICTURES, {"name": "make_image_grid_from_video"}, {"name": "paired"}),
        (
            "rope-by-copies",
            TABLES,
            {"use": "return x * jnp.cos(angles)"},
            {"use": "cos, sin = self.tables(angles)\n        return x * cos + jnp.roll(x, 1) * sin"},
        ),
        ("boundary-writes", SWEPT, {"also": ""}, {"also": ALSO}),
        (
            "update-without-donation",
            MLP,
            {"default": "", "made": "MLP(din=1, dhidden=32, dout=1, rngs=nnx.Rngs(0))"},
            {"default": "", "made": "MLP(din=1, dhidden=4096, dout=1, rngs=nnx.Rngs(0))"},
        ),
        (
            "update-without-donation",
            MLP,
            {"default": "", "made": "MLP(1, 32, 1, rngs=nnx.Rngs(0))"},
            {"default": "=4096", "made": "MLP(1, 32, rngs=nnx.Rngs(0))"},
        ),
        (
            "update-without-donation",
            POPULATION,
            {"many": "jnp.repeat(training_state[None], 64, axis=0)"},
            {"many": "training_state[None]"},
        ),
    ],
)
def test_nothing_is_said_of_what_is_nothing_there(
    rule: str, code: str, quiet: dict[str, str], loud: dict[str, str]
) -> None:
    assert not findings(rule, code.format(**quiet))
    assert findings(rule, code.format(**loud))


def test_who_maps_an_interpolation_hands_it_all_points_at_once() -> None:
    code = """
    def main(points, xs, ys):
        for step in range(1000):
            points = jax.vmap(lambda z: jnp.interp(z, xs, ys))(points)
        print(float(points[0]))
    """
    (found,) = findings("eager-control-flow", code)
    assert found.suggestion is not None
    assert found.suggestion.text == "`jnp.interp(points, xs, ys)`"
    assert "by itself" not in found.message


@pytest.mark.parametrize(
    ("rule", "line", "fixed"),
    [
        (
            "argmax-then-pick",
            "i = jnp.argmin(x, axis=-1)\nreturn jnp.take_along_axis(x, i[..., None], axis=-1)[..., 0], i",
            "i = jnp.argmin(x, axis=-1)\nreturn jnp.min(x, axis=-1), i",
        ),
        (
            "argmax-then-pick",
            "i = jnp.argmax(x, axis=0)\nreturn jnp.take_along_axis(x, i[None], axis=0).squeeze(0), i",
            "i = jnp.argmax(x, axis=0)\nreturn jnp.max(x, axis=0), i",
        ),
        (
            "argmax-then-pick",
            "i = jnp.argmin(x, axis=-1)\nreturn jnp.take_along_axis(x, i[..., None], axis=-1)[0], i",
            "i = jnp.argmin(x, axis=-1)\nreturn jnp.min(x, axis=-1, keepdims=True)[0], i",
        ),
        (
            "solve-for-cholesky",
            "return jnp.linalg.solve(\n    x.T @ x + jnp.eye(4) * damping,\n    x.T @ y)",
            'return jax.scipy.linalg.solve(\n    x.T @ x + jnp.eye(4) * damping,\n    x.T @ y,\n    assume_a="pos")',
        ),
        (
            "solve-for-cholesky",
            "return jnp.linalg.solve(x.T @ x + jnp.eye(4) * damping, x.T @ y)",
            'return jax.scipy.linalg.solve(x.T @ x + jnp.eye(4) * damping, x.T @ y, assume_a="pos")',
        ),
        (
            "dynamic-program-without-unroll",
            "def step(of_the_state_before, a_matrix_and_what_is_seen):\n"
            "    return a_matrix_and_what_is_seen @ of_the_state_before, of_the_state_before\n"
            "return lax.scan(step, y, x)[1]",
            "def step(of_the_state_before, a_matrix_and_what_is_seen):\n"
            "    return a_matrix_and_what_is_seen @ of_the_state_before, of_the_state_before\n"
            'return lax.scan(step, y, x, unroll=4 if jax.default_backend() != "cpu" else 1)[1]',
        ),
        (
            "default-searchsorted",
            "return damping * jnp.searchsorted(x[:, 0] * jnp.exp(damping), y[0, :] + jnp.sin(damping), side='left')",
            "return damping * jnp.searchsorted(\n    x[:, 0] * jnp.exp(damping),\n    y[0, :] + jnp.sin(damping),\n"
            "    side='left',\n    method='scan_unrolled',\n)",
        ),
    ],
)
def test_a_fix_reads_as_one_would_write_it(rule: str, line: str, fixed: str) -> None:
    def function(body: str) -> str:
        return "@jax.jit\ndef f(x, y, damping):\n" + "".join(f"    {each}\n" for each in body.splitlines())

    (found,) = findings(rule, function(line))
    assert found.suggestion is not None
    assert apply(HEAD + function(line), found.suggestion.edits) == HEAD + function(fixed)


def test_a_number_that_is_read_often_gets_a_name() -> None:
    body = "    i = jnp.argmin(x)\n    return jnp.where(jnp.isinf(x[i]), -1, x[i]), jnp.where(x[i] < 0, -1, y[i])\n"
    code = f"{HEAD}@jax.jit\ndef f(x, y):\n{body}"
    found = list(check_text(code.encode(), "m.py", Scope(("argmax-then-pick",))))
    assert len(found) == 3
    assert len({one.suggestion.edits for one in found if one.suggestion is not None}) == 1
    assert found[0].suggestion is not None
    fixed = apply(code, found[0].suggestion.edits)
    assert fixed.endswith(
        "    x_min = jnp.min(x)\n    i = jnp.argmin(x)\n"
        "    return jnp.where(jnp.isinf(x_min), -1, x_min), jnp.where(x_min < 0, -1, y[i])\n"
    )


def test_what_stands_in_no_class_is_no_layer() -> None:
    code = "def added(x, s):\n    return jnp.concatenate([x[:, :1], jnp.logaddexp(x[:, 1:], s)], axis=-1)\n"
    assert findings("arithmetic-by-concat", code)
