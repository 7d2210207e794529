"""update-without-donation in a compiled program: the copy of an argument that is to be written to."""

from __future__ import annotations

import compilers
import pytest

from fusionlint.explained import Report
from fusionlint.rules.update_without_donation import rule

pytestmark = pytest.mark.compilers

CODE = """
import functools
import jax
from jax import lax

def write(cache, row, position):
    cache = cache.at[position].set(row)
    return cache, cache @ row

def decode(cache, rows, position):
    def step(carry, row):
        cache, position = carry
        cache = lax.dynamic_update_slice(cache, row[None], (position, 0))
        return (cache, position + 1), jax.nn.softmax(cache @ row) @ cache
    return lax.scan(step, (cache, position), rows)

donated_write = jax.jit(write, donate_argnums=0)
donated_decode = jax.jit(decode, donate_argnums=0)
"""
GIVEN = {"write": "f32[4096,512], f32[512], i32[]", "decode": "f32[4096,512], f32[4,512], i32[]"}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    calls = [f"{way}{name}({given})" for name, given in GIVEN.items() for way in ("", "donated_")]
    names = [call.partition("(")[0] for call in calls]
    specs = compilers.written(CODE, calls, tmp_path_factory.mktemp("code"))
    return dict(zip(names, compilers.explained(specs, "h100", (rule,)).values(), strict=True))


@pytest.mark.parametrize(("name", "line"), [("write", 7), ("decode", 13)])
def test_the_copy_of_a_cache_is_the_dearest_and_the_advice_is_to_donate_it(
    reports: dict[str, Report], name: str, line: int
) -> None:
    first = reports[name].barriers[0]
    assert (first.barrier.cause, first.barrier.detail) == ("copy", "of an argument that is not donated")
    assert first.barrier.bytes == 4096 * 512 * 4
    assert first.barrier.stack[0].line == line
    assert first.rule == "update-without-donation"
    assert first.advice.startswith("donate `cache` (donate_argnums of jax.jit)")
    assert first.price
    copy = next(kernel for kernel in reports[name].kernels if kernel.name == first.barrier.writer)
    assert first.price.moving + first.price.launching == pytest.approx(copy.microseconds)


@pytest.mark.parametrize("name", GIVEN)
def test_a_donated_cache_is_not_copied_and_its_update_costs_what_it_writes(
    reports: dict[str, Report], name: str
) -> None:
    donated = reports[f"donated_{name}"]
    assert donated.launches == reports[name].launches - 1
    assert not any(told.rule for told in donated.barriers)
    assert not any(told.barrier.bytes > MEGABYTE for told in donated.barriers)
