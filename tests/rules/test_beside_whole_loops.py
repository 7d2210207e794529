"""What is done once for each run of a whole loop of jax.lax, in the same program, is little beside it."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

FIT = """
import jax
import jax.numpy as jnp

def simulate(x, n):
    return jax.lax.fori_loop(0, n, lambda i, x: x + 0.01 * jnp.sin(x), x)

def grow(x):
    return 2 * jnp.sin(x)

def at(where, track):
    def of(k):
        return jnp.interp(where, track[0], track[k])

    return jax.vmap(of)(jnp.arange(1, 5))

@jax.jit
def loss(x, where):
    {made}
    {found}
    return jnp.sum(found)

@jax.jit
def other(track, where):
    return {other}
"""


@pytest.mark.parametrize(
    ("made", "found", "other", "count"),
    [
        ("track = simulate(x, 1000)", "found = at(where, track)", "0", 0),
        ("track = jax.vmap(lambda x: simulate(x, 10))(x)", "found = at(where, track)", "0", 0),
        # Arithmetic alone, or a caller that runs no loop: the search is much of it.
        ("track = grow(x)", "found = at(where, track)", "0", 1),
        ("track = simulate(x, 1000)", "found = at(where, track)", "at(where, track)", 1),
        # What a loop of the same function repeats is done as often as its steps.
        ("track = simulate(x, 9)", "found = jax.lax.map(lambda each: at(each, track), where)", "0", 1),
        ("track = simulate(x, 9)", "found = [at(each, track) for each in where]", "0", 1),
    ],
)
def test_a_search_beside_a_simulation_in_one_program_is_left(made: str, found: str, other: str, count: int) -> None:
    code = FIT.format(made=made, found=found, other=other)
    assert len(check_text(code.encode(), "m.py", Scope(("default-searchsorted",)))) == count


SCHEDULE = """
import jax.numpy as jnp

class {name}:
    def value(self, epoch):
        return self.values[jnp.searchsorted(jnp.array(self.{table}), epoch, side="right")]
"""


@pytest.mark.parametrize(
    ("name", "table", "count"),
    [
        ("PiecewiseSchedule", "boundaries", 0),
        ("SequentialScheduler", "milestones", 0),
        ("Histogram", "boundaries", 1),
        # That of a diffusion has a time for each of its steps.
        ("FlowScheduler", "timesteps", 1),
    ],
)
def test_the_milestones_of_a_schedule_are_a_few_numbers(name: str, table: str, count: int) -> None:
    code = SCHEDULE.format(name=name, table=table)
    assert len(check_text(code.encode(), "m.py", Scope(("default-searchsorted",)))) == count
