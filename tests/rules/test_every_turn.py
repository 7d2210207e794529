"""What invariant-in-scan-body says of the compiled program: work that a loop does anew and need not, and no other."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.explained import Report
from fusionlint.rule import one_of_ours

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def normalised(w, x, y):
    def loss(w):
        scaled = (x - x.mean(0)) / x.std(0)
        return jnp.mean((scaled @ w - y) ** 2)
    return jax.lax.scan(lambda w, _: (w - 0.1 * jax.grad(loss)(w), None), w, None, length=50)[0]

def normalised_before(w, x, y):
    scaled = (x - x.mean(0)) / x.std(0)
    def loss(w):
        return jnp.mean((scaled @ w - y) ** 2)
    return jax.lax.scan(lambda w, _: (w - 0.1 * jax.grad(loss)(w), None), w, None, length=50)[0]

def cast(h, xs, w):
    def step(h, x):
        return jnp.tanh(x + (h.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)), None
    return jax.lax.scan(step, h, xs)[0]

def solved(x, a):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.tanh(jnp.linalg.solve(a, x)), x)

def solved_by_factors(x, a):
    factors = jax.scipy.linalg.lu_factor(a)
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.tanh(jax.scipy.linalg.lu_solve(factors, x)), x)

def filtered(x, kernel):
    def step(i, x):
        return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel), n=len(kernel))
    return jax.lax.fori_loop(0, 50, step, x)

def noisy(x, key):
    return jax.lax.fori_loop(0, 50, lambda i, x: x @ jax.random.normal(key, (64, 64)), x)

def distances(points, x):
    def step(x, _):
        squared = jnp.sum((points[:, None] - points) ** 2, axis=-1)
        return jnp.tanh(jnp.exp(-squared) @ x), None
    return jax.lax.scan(step, x, None, length=50)[0]

def of_the_inner(x, y):
    def outer(x, _):
        def inner(y, _):
            squared = jnp.sum((x[:, None] - x) ** 2, axis=-1)
            return jnp.tanh(jnp.exp(-squared) @ y), None
        return x + jax.lax.scan(inner, y, None, length=8)[0][:, None], None
    return jax.lax.scan(outer, x, None, length=4)[0]

def within(x, y):
    def outer(x, _):
        y2 = jax.lax.scan(lambda y, _: (jnp.tanh((x @ x.T) @ y), None), y, None, length=8)[0]
        return x + y2[:, None], None
    return jax.lax.scan(outer, x, None, length=4)[0]

def replaced(x, points):
    def step(carry, _):
        x, points = carry
        squared = jnp.sum((points[:, None] - points) ** 2, axis=-1)
        return (jnp.tanh(jnp.exp(-squared) @ x), points * 1.0 + 0 * x[:, None]), None
    return jax.lax.scan(step, (x, points), None, length=50)[0]

def in_a_branch(x, a):
    def step(i, x):
        return jax.lax.cond(i % 10 == 0, lambda x: jnp.linalg.cholesky(a) @ x, lambda x: x * 2, x)
    return jax.lax.fori_loop(0, 50, step, x)

def chosen_by_xla(x, points):
    def step(i, x):
        def now(x):
            return jnp.tanh(jnp.exp(-jnp.sum((points[:, None] - points) ** 2, axis=-1)) @ x)
        return jax.lax.cond(i % 10 == 0, now, lambda x: x * 2, x)
    return jax.lax.fori_loop(0, 50, step, x)

def of_constants(x):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.tril(jnp.ones((64, 64))) @ jnp.eye(64) @ x, x)

def few(x, w):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.cumsum(x / jnp.linalg.norm(w)), x)

def written_to(x, w, at):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.sin(w).at[at].add(x[:64]), x)

def start_of_a_loop(x, w):
    def step(i, x):
        return x + jax.lax.fori_loop(0, 8, lambda j, y: jnp.roll(jnp.tanh(y * x), 1), jnp.sin(w))
    return jax.lax.fori_loop(0, 50, step, x)

def jacobian(x, w):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.tanh(jax.jacfwd(lambda x: w @ x)(x).T @ x), x)

def of_jax(a, b):
    return jax.scipy.sparse.linalg.gmres(a, b)[0]

def interpolated(x, xs, ys):
    return jax.lax.fori_loop(0, 50, lambda i, x: jnp.interp(x, xs, ys), x)
"""
TWICE = "f32[64,8], f32[512,64], f32[512,8]"
BEFORE = "compute it once before it"
FACTORED = "factor the matrix once before it (jax.scipy.linalg.cho_factor, lu_factor), and solve by the factors"
LOUD = {
    f"normalised({TWICE})": (BEFORE, {7, 8}),
    "cast(f32[32,256], f32[64,32,256], f32[256,256])": (BEFORE, {19}),
    "solved(f32[64], f32[64,64])": (FACTORED, {23}),
    "filtered(f32[4096], f32[4096])": (BEFORE, {31}),
    "noisy(f32[64,64], key)": (BEFORE, {35}),
    "distances(f32[512,4], f32[512])": (BEFORE, {39}),
    "of_the_inner(f32[512,4], f32[512])": (BEFORE, {46}),
    # A small conditional becomes a select, of which both sides are computed.
    "chosen_by_xla(f32[512], f32[512,4])": (BEFORE, {72}),
    "within(f32[1024,512], f32[1024])": ("compute it before it", {53}),
}
QUIET = [
    f"normalised_before({TWICE})",
    "solved_by_factors(f32[64], f32[64,64])",
    "replaced(f32[512], f32[512,4])",
    "in_a_branch(f32[64], f32[64,64])",
    "of_constants(f32[64])",
    "few(f32[4096], f32[4])",
    "written_to(f32[4096], f32[4096], i32[64])",
    "start_of_a_loop(f32[4096], f32[4096])",
    "jacobian(f32[64], f32[64,64])",
    "of_jax(f32[128,128], f32[128])",
    "interpolated(f32[1024], f32[256], f32[256])",
    "within(f32[64,64], f32[64])",
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    specs = compilers.written(CODE, [*LOUD, *QUIET], tmp_path_factory.mktemp("turns"))
    return compilers.explained(specs, "h100", [one_of_ours("invariant-in-scan-body")])


@pytest.mark.parametrize("call", LOUD)
def test_what_is_the_same_in_every_turn_has_its_line_and_belongs_before_the_loop(
    call: str, reports: dict[str, Report]
) -> None:
    said = [one for one in reports[call].barriers if one.rule]
    write, lines = LOUD[call]
    assert {one.barrier.stack[0].line for one in said} == lines
    assert all(f": {write}" in one.advice for one in said)


@pytest.mark.parametrize("call", QUIET)
def test_of_what_changes_or_would_not_be_gained_nothing_is_said(call: str, reports: dict[str, Report]) -> None:
    assert compilers.told(reports[call]) == set()


def test_it_says_what_all_of_it_costs_and_which_loop_it_is_that_of(reports: dict[str, Report]) -> None:
    advice = {one.advice for one in reports[f"normalised({TWICE})"].barriers if one.rule}
    shared = "the same in every turn of the loop at code.py:9: compute it once before it "
    assert all(shared in one and one.endswith("(4 such kernels in it, 200 launches, 39.4 MB)") for one in advice)
    assert "what it is given, made in line 7:18, is " + shared in {one.partition("(")[0] for one in advice}
    (inner,) = {one.advice for one in reports["of_the_inner(f32[512,4], f32[512])"].barriers if one.rule}
    assert "of the loop at code.py:48: " in inner


def test_a_tpu_is_told_of_what_it_leaves_in_the_loop(tmp_path: Path) -> None:
    calls = ["distances(f32[512,4], f32[512])", "cast(f32[32,256], f32[64,32,256], f32[256,256])"]
    found = compilers.explained(
        compilers.written(CODE, calls, tmp_path), "v5e", [one_of_ours("invariant-in-scan-body")]
    )
    assert [bool(compilers.told(report)) for report in found.values()] == [True, False]
