"""Loops of jax.lax that look like a case of a rule and are none: what the pages have no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"
SERIES = """\
def bessel(zs, tol, last):
    def add(state):
        _, n, term, total = state
        term = -term * last / (n * n)
        return {done}, n + 1.0, term, total + term

    def of(z):
        return jax.lax.while_loop(lambda state: ~state[0], add, (jnp.array(False), 1.0, z, 1.0 + z))[3]

    return jax.vmap(of)(zs)
"""
DRAWS = """\
def draws(key, rates):
    def draw(key, rate):
        key, sub = jax.random.split(key)
        return key, jax.random.{sampler}

    return jax.lax.scan(draw, key, rates)[1]
"""
ADVANCED = """\
def advanced(key, n):
    def discard(i, key):
        key, _ = jax.random.split(key)
        return {returned}

    return jax.lax.fori_loop(0, n, discard, key)
"""
ABUNDANCES = """\
import tables

def abundances(species, given):
    solar = jnp.array(10 ** {numbers})
    mass = 2.0 * solar

    def step(total, one):
        return total + one, total * mass[one] / jnp.sum(mass)

    return jax.lax.scan(step, 0.0, species)[1]
"""


def rules(code: str, *names: str) -> list[str]:
    return [f.rule for f in check_text((HEAD + code).encode(), "m.py", Scope(names))]


@pytest.mark.parametrize(
    ("done", "count"),
    [
        pytest.param("jnp.abs(term) < jnp.abs(total) * tol", 0, id="a tolerance"),
        pytest.param("(1e-6 > jnp.abs(term)) | (n > 1000)", 0, id="a small number"),
        pytest.param("term < last", 1, id="a bound"),
        pytest.param("jnp.abs(term) < last", 1, id="a distance"),
    ],
)
def test_a_series_goes_on_until_its_terms_are_small(done: str, count: int) -> None:
    assert rules(SERIES.format(done=done), "while-loop-under-vmap") == ["while-loop-under-vmap"] * count


@pytest.mark.parametrize(
    ("sampler", "count"),
    [("poisson(sub, rate)", 0), ("gamma(sub, rate)", 0), ("normal(sub) * rate", 1), ("bernoulli(sub, rate)", 1)],
)
def test_a_draw_by_rejection_is_a_large_step(sampler: str, count: int) -> None:
    assert rules(DRAWS.format(sampler=sampler), "key-split-in-scan") == ["key-split-in-scan"] * count


def test_a_loop_that_only_moves_the_key_on() -> None:
    assert rules(ADVANCED.format(returned="key"), "key-split-in-scan") == []
    assert rules(DRAWS.format(sampler="normal(sub)"), "key-split-in-scan") != []


@pytest.mark.parametrize(
    ("numbers", "count"),
    [("tables.read()['solar']", 0), ("given['solar']", 1), ("tables.read(given)", 1)],
)
def test_what_nothing_given_goes_into_is_known_to_a_trace(numbers: str, count: int) -> None:
    found = rules(ABUNDANCES.format(numbers=numbers), "invariant-in-scan-body")
    assert found == ["invariant-in-scan-body"] * count


@pytest.mark.parametrize(
    ("count", "is_few"),
    [
        pytest.param("8", True, id="eight"),
        pytest.param("n // 8 * 8", False, id="whole batches"),
        pytest.param("steps * 8", False, id="whole batches by name"),
        pytest.param("n - n % 8", False, id="all but the rest"),
        pytest.param("n // 8", True, id="an eighth"),
    ],
)
def test_an_epoch_shuffles_all_of_its_data(count: str, is_few: bool) -> None:
    code = f"""\
def train(params, keys, data, n):
    steps = n // 8

    def epoch(params, key):
        order = jax.random.permutation(key, n)
        return params + data[order[:{count}]].sum(), None

    return jax.lax.scan(epoch, params, keys)[0]
"""
    assert rules(code, "choice-without-replacement") == ["choice-without-replacement"] * is_few


@pytest.mark.parametrize(("part", "count"), [("edge[:, 0]", 0), ("edge[0]", 1)])
def test_a_level_of_a_tree_is_no_element(part: str, count: int) -> None:
    code = f"""\
def substituted(solved, edges, lower):
    def level(index, solved):
        edge = edges[index]
        child = {part}
        return solved.at[child].add(-lower[child] * solved[child])

    return jax.lax.fori_loop(0, 8, level, solved)
"""
    assert rules(code, "scalar-loop") == ["scalar-loop"] * count


@pytest.mark.parametrize(("axes", "count"), [("", 0), (", in_axes=(None, 0)", 1)])
def test_what_asks_for_its_own_number_under_a_vmap(axes: str, count: int) -> None:
    code = f"""\
def layers(masks, n):
    def layer(i, mask):
        return jax.lax.cond(i % 2 == 0, lambda m: 1 - m, lambda m: m, mask)

    return jax.vmap(layer{axes})(jnp.arange(n), masks)
"""
    assert rules(code, "cond-for-where") == ["cond-for-where"] * count


@pytest.mark.parametrize(("test", "count"), [("residual > tol", 0), ("count < 1000", 1)])
def test_a_loop_that_goes_on_by_what_it_computes_waits_anyway(test: str, count: int) -> None:
    code = f"""\
improve = jax.jit(lambda x: (0.5 * x, jnp.abs(x).sum()))

def main(x, tol, residual, seen, count=0):
    while {test}:
        x, residual = improve(x)
        count += 1
        seen.append(float(residual))
    return x
"""
    assert rules(code, "host-sync-in-step-loop") == ["host-sync-in-step-loop"] * count


@pytest.mark.parametrize(("carried", "count"), [("carry", 0), ("carry + 1", 0), ("jnp.maximum(carry, x)", 1)])
def test_a_scan_that_hands_on_what_it_was_handed_is_a_vmap(carried: str, count: int) -> None:
    code = f"""
def counted(rows, mask):
    def step(carry, x):
        return {carried}, jnp.sum(mask & (rows <= x))

    return jax.lax.scan(step, 0.0, rows)[1]
"""
    assert rules(code, "scan-without-unroll") == ["scan-without-unroll"] * count


@pytest.mark.parametrize(
    ("made", "count"), [("np.array(nested(jnp.array(parts)))", 0), ("nested(jnp.array(parts))", 1)]
)
def test_a_scan_whose_result_numpy_takes_runs_where_the_host_waits_for_it(made: str, count: int) -> None:
    code = f"""
import numpy as np

def nested(parts):
    def step(left, part):
        return left - part, part / left

    return jax.lax.scan(step, 1.0, parts)[1]

def start(parts):
    return {made}
"""
    assert rules(code, "scan-without-unroll") == ["scan-without-unroll"] * count


@pytest.mark.parametrize(
    ("helper", "count"),
    [
        ("jnp.where(x > 0, x, 0.5 * x)", 1),
        ("smooth(x) + x", 1),
        ("x @ weights", 0),
        ("smooth(x @ weights)", 0),
        ("decay(x)", 0),  # by nothing but itself
        ("unseen(x)", 0),
        (" + ".join(["jnp.tanh(x) * x"] * 20), 0),
    ],
)
def test_a_step_is_as_small_as_what_it_calls(helper: str, count: int) -> None:
    code = f"""
def smooth(x):
    return 0.5 * x / (1 + jnp.abs(x))

def decay(x):
    return {helper}

def filtered(rows, first):
    def step(carry, x):
        carry = 0.9 * decay(carry) + x
        return carry, carry

    return jax.lax.scan(step, first, rows)[1]
"""
    assert rules(code, "scan-without-unroll") == ["scan-without-unroll"] * count
