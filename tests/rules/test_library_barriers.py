"""What the compiled program says of functions of jax's own: searches in a loop, draws by a search, factorizations."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def search(a, v):
    return jnp.searchsorted(a, v) * 2

def unrolled(a, v):
    return jnp.searchsorted(a, v, method="scan_unrolled") * 2

def interpolated(x, xp, fp):
    return jnp.interp(x, xp, fp) * 2

def draw(key, p):
    return jax.random.choice(key, 64, (8,), p=p)

def searched_for_draws(key, sums):
    u = jax.random.uniform(key, (8,))
    return jnp.searchsorted(sums, u)

def walk(key, p):
    def body(carry):
        key, total = carry
        key, sub = jax.random.split(key)
        return key, total + jax.random.choice(sub, 64, p=p)
    return jax.lax.while_loop(lambda carry: carry[1] < 10000, body, (key, 0))

def drawn_in_two_places(key, p):
    one = lambda key: jax.random.choice(key, 64, p=p)
    first, *keys = jax.random.split(key, 21)
    step = lambda total, key: (total + one(key), None)
    return jax.lax.scan(step, one(first), jnp.stack(keys))[0]

def counted_walk(key, x):
    def step(carry, _):
        key, x = carry
        key, sub = jax.random.split(key)
        return (key, x + jax.random.normal(sub, x.shape)), None
    return jax.lax.scan(step, (key, x), None, length=100)

def solved(a, b):
    return jnp.linalg.solve(a, b[..., None])[..., 0] * 2

def inverted(a):
    return jnp.exp(jnp.linalg.inv(a))

def applied(a, b):
    return jnp.tanh(jnp.linalg.inv(a + 1) @ b)

def kept(a):
    inverse = jnp.linalg.inv(a)
    return inverse, inverse @ a[:, 0]

def spread(a, b):
    return jnp.linalg.inv(a) @ b
"""
SAID = {
    "search(f32[1000], f32[500])": {"default-searchsorted"},
    "unrolled(f32[1000], f32[500])": set(),
    "interpolated(f32[500], f32[100], f32[100])": {"default-searchsorted"},
    "draw(key, f32[64])": {"choice-with-probabilities"},
    "searched_for_draws(key, f32[64])": {"default-searchsorted"},
    "walk(key, f32[64])": {"choice-with-probabilities"},  # how many keys to split nobody knows
    "drawn_in_two_places(key, f32[64])": {"choice-with-probabilities"},  # jax lowers the search of both as one
    "counted_walk(key, f32[64])": {"key-split-in-scan"},
    "solved(f32[100,2,2], f32[100,2])": {"small-linear-algebra"},
    "solved(f32[16,8,8], f32[16,8])": set(),
    "inverted(f32[100,3,3])": {"small-linear-algebra"},
    "applied(f32[64,64], f32[64])": {"inverse-then-matmul"},
    "kept(f32[64,64])": set(),
    "spread(f32[16,16], f32[16,1000])": set(),  # more columns than rows: a solve costs as much
}
# Where the page's tables show no harm, or the clock says otherwise; a TPU inverts in blocks, which it multiplies.
UNCLAIMED = {
    "cpu": {"default-searchsorted", "choice-with-probabilities"},
    "h100": set(),
    "v5e": {"inverse-then-matmul"},
}
OF_INTERP = "interpolated(f32[500], f32[100], f32[100])"


@pytest.mark.parametrize("name", ["h100", "v5e", "cpu"])
def test_what_jax_makes_of_its_own_functions_is_told_by_their_rules(name: str, tmp_path: Path) -> None:
    reports = compilers.explained(compilers.written(CODE, SAID, tmp_path), name, all_rules())
    expected = {call: rules - UNCLAIMED[name] for call, rules in SAID.items()}
    if name == "v5e":  # written out, an interpolation takes a TPU more launches than it saves
        expected[OF_INTERP] = set()
    assert {call: compilers.told(report) for call, report in reports.items()} == expected


def test_the_size_of_a_small_matrix_is_said(tmp_path: Path) -> None:
    calls = ["inverted(f32[100,3,3])", "solved(f32[100,2,2], f32[100,2])"]
    reports = compilers.explained(compilers.written(CODE, calls, tmp_path), "h100", all_rules())
    advice = [{one.advice for one in report.barriers if one.rule} for report in reports.values()]
    assert [len(each) for each in advice] == [1, 1]
    assert ["3 by 3" in advice[0].pop(), "2 by 2" in advice[1].pop()] == [True, True]
