"""Code that looks like a case of a rule and is none, by what it asks or goes through: found in public packages."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import time\nimport jax\nimport jax.numpy as jnp; from jax import lax\n"


def findings(rule: str, code: str) -> list[Finding]:
    return check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,)))


DIAGONALS = """
@jax.jit
def banded(values, n):
    out = jnp.zeros(16)
    for j in range(3):
        places = {places}
        out = out.at[places].set(values[j])
    return out
"""


def test_ranges_of_other_lengths_are_neither_stacked_nor_mapped() -> None:
    assert not findings("chained-at-set", DIAGONALS.format(places="j + 5 * jnp.arange(4 - j)"))
    assert len(findings("chained-at-set", DIAGONALS.format(places="j + 5 * jnp.arange(4)"))) == 1


ROWS = """
@jax.jit
def factored(m):
    def step(row, k):
        def processed(row):
            row = row.at[k].set(row[k] / m[k])
            return {result}
        return jax.lax.cond(m[k] != 0, processed, lambda row: row, row), None
    return jax.lax.scan(step, m, jnp.arange(8))[0]
"""


def test_a_branch_that_goes_through_all_of_what_it_wrote_is_no_write_of_a_place() -> None:
    assert not findings("cond-around-a-write", ROWS.format(result="jax.vmap(lambda j: row[j] - row[k])(jnp.arange(8))"))
    assert len(findings("cond-around-a-write", ROWS.format(result="row"))) == 1


SMOOTHED = """
def smoothed(x, kernel):
    if {test}:
        return jnp.fft.irfftn(kernel * jnp.fft.rfftn(x))
    return jnp.zeros(1)

def made(x, kernel):
    if {test}:
        of = lambda x: jnp.fft.irfftn(kernel * jnp.fft.rfftn(x))
    else:
        of = lambda x: jnp.fft.ifftn(kernel * jnp.fft.fftn(x)).real
    return of(x)
"""


def test_a_transform_of_what_the_code_knows_to_be_complex_is_none_of_real_data() -> None:
    assert not findings("complex-fft-of-real", SMOOTHED.format(test="x.dtype != jnp.complex64"))
    assert len(findings("complex-fft-of-real", SMOOTHED.format(test="x.size > 8"))) == 1


TIMES = """
def timings(fn, args, runs):
    times = jnp.zeros((runs, 2))
    for j in range(runs):
        times = times.at[j].set(measured(fn, args))
    return times

def measured(fn, args):
    begin = {clock}
    value = fn(*args)
    return {clock} - begin, value
"""


def test_what_reads_a_clock_is_host_code() -> None:
    assert not findings("chained-at-set", TIMES.format(clock="time.perf_counter()"))
    assert len(findings("chained-at-set", TIMES.format(clock="jnp.sum(args[0])"))) == 1


BASES = """
def {name}(selected):
    counted = jnp.cumsum(selected)
    basis = jnp.zeros((8, 8))
    for i in range(64):
        basis = basis.at[i, {place}].set(1.0)
    return basis
"""


def test_what_asks_an_array_for_items_is_host_code() -> None:
    assert not findings("chained-at-set", BASES.format(name="basis_of", place="counted[i].item()"))
    assert len(findings("chained-at-set", BASES.format(name="basis_of", place="counted[i]"))) == 1


def test_what_a_factory_reads_it_reads_once() -> None:
    place = "int(counted[i].item())"
    assert not findings("iterating-device-array", BASES.format(name="factory", place=place))
    assert len(findings("iterating-device-array", BASES.format(name="basis_of", place=place))) == 1


LEVEL = """
def parse(level, width):
    mask = jnp.asarray(level) == 1
    assert {asked}
    row, column = jnp.where(mask, size=1)
    return row[0], column[0]
"""


@pytest.mark.parametrize(
    ("asked", "number"),
    [("mask.sum() == 1", 0), ("jnp.any(mask)", 0), ("mask.ndim == 2", 1), ("len(level) == width", 1)],
)
def test_what_asserts_something_of_an_array_is_host_code(asked: str, number: int) -> None:
    assert len(findings("nonzero-as-mask", LEVEL.format(asked=asked))) == number


COMPILED = """
class Bench:
    def step(self, fn, x):
        @jax.jit
        def _fn(x):
            return fn * x

        {begin}
        {call}

def main(bench, fn, xs):
    for x in xs:
        bench.step(fn, x)
"""


def test_a_compilation_that_is_measured_is_meant() -> None:
    waited = {"begin": "begin = time.perf_counter()", "call": "return jax.block_until_ready(_fn(x)), begin"}
    assert not findings("jit-per-call", COMPILED.format(**waited))
    assert len(findings("jit-per-call", COMPILED.format(**(waited | {"begin": "begin = 0"})))) == 1
