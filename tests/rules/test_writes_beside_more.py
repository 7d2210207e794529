"""Writes that XLA makes part of what reads them, and those that come once before much more: silent, or told for the
targets that lose by them. The next case to each is found."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
WEIGHTS = """
@jax.jit
def picked(key, v, w, rows):
    p = jnp.zeros(65)
    p = p.at[1:].set(jnp.sin(v))
    p = p.at[0].set(w)
    return {read}
"""
SCALED = """
def scale(v, w):
    s = jnp.zeros(65)
    s = s.at[1:].set(jnp.sin(v))
    s = s.at[0].set(w)
    return s

def layer(x, v, w):
    return {read}
"""
NOISE = """
@jax.jit
def tried(best, a, b):
    n = len(a)
    noise = 0.0 * best
    noise = noise.at[1 : 1 + n].set(jnp.sin(a))
    noise = noise.at[1 + n : 1 + 2 * n].set(jnp.cos(b))
    return {read}
"""
BEGUN = """
@jax.jit
def accumulated(jac, lag, now, added):
    jac = jac.at[0, :, 0].add(now)
    jac = jac.at[1, :, 0].add(lag)
    return {read}
"""
SPECTRUM = """
@jax.jit
def spectrum(c, d, keys):
    i = jnp.arange(8)
    c = c.at[i, i].set(d)
    return {read}
"""
RATES = """
@jax.jit
def rates(parts):
    total = jnp.zeros((8, 8))
    for i in range(4):
        total = total.at[i, i].add(parts[i])
        total = total.at[i, i + 1].add(-parts[i])
    return {read}
"""
GEOMETRY = """
def static(bonds):
    return jnp.zeros(9).at[:-1].add(bonds).at[1:].add(bonds)

def geometry(areas):
    areas = np.asarray(areas)
    return static({handed})
"""
WORLD = """
from mujoco import mjx

class World:
    def reset(self, key):
        data = self._placed(mjx.make_data(self.model), key)
        return mjx.forward(self.model, data)

    def step(self, data, action):
        {step}
        return mjx.step(self.model, data)

    def _placed(self, data, key):
        for i in range(self.count):
            data = data.at[self.places[i]].set(jax.random.normal(jax.random.fold_in(key, i)))
        return data
"""
FORCED = """
@jax.jit
def through_time(table, rows, is_forced{said}):
    def step(table, row):
        return jax.lax.cond(is_forced, lambda t: t, lambda t: t.at[0].set(row), table), None

    return jax.lax.scan(step, table, rows)
"""


def targets(rule: str, code: str) -> list[tuple[str, ...]]:
    return [one.targets for one in check_text((HEAD + code).encode(), "m.py", Scope((rule,)))]


@pytest.mark.parametrize(
    ("read", "is_one_kernel"),
    [
        ("jnp.full((65, 65), p)", True),
        ("jnp.full((65, 65), fill_value=p)", True),
        ("jnp.broadcast_to(p, (9, 65))", True),
        ("jax.random.categorical(key, p)", True),
        ("jax.vmap(lambda each: rows * each)(p)", True),
        ("jax.vmap(lambda row, each: row * each)(rows, p)", True),
        ("jax.vmap(lambda row, all: row @ all, in_axes=(0, None))(rows, p)", False),
        ("jnp.sort(p)", False),
        ("rows @ p", False),
    ],
)
def test_blocks_of_a_vector_are_one_kernel_with_what_takes_its_numbers(read: str, is_one_kernel: bool) -> None:
    (told,) = targets("blocks-by-at-set", WEIGHTS.format(read=read))
    assert told == (("v5e",) if is_one_kernel else ("cpu", "h100", "v5e"))


@pytest.mark.parametrize(
    ("read", "is_one_kernel"),
    [("x * scale(v, w)", True), ("x @ scale(v, w)", False), ("scale(v, w)", False), ("x", False)],
)
def test_so_are_those_that_all_callers_do_arithmetic_on(read: str, is_one_kernel: bool) -> None:
    (told,) = targets("blocks-by-at-set", SCALED.format(read=read))
    assert told == (("v5e",) if is_one_kernel else ("cpu", "h100", "v5e"))


@pytest.mark.parametrize(("read", "is_one_kernel"), [("best + noise", True), ("noise", False), ("noise @ a", False)])
def test_slices_that_arithmetic_reads_are_no_cost_on_a_gpu(read: str, is_one_kernel: bool) -> None:
    (told,) = targets("chained-at-set", NOISE.format(read=read))
    assert ("h100" not in told) == is_one_kernel


@pytest.mark.parametrize(
    ("read", "number"),
    [
        ("jax.lax.fori_loop(0, 900, added, jac)", 0),
        ("jax.lax.fori_loop(0, 900, added, (jac, now))", 0),
        ("jax.lax.fori_loop(0, 900, added, jac) + jac", 1),
        ("added(jac)", 1),
    ],
)
def test_what_a_loop_of_jax_begins_with_is_nothing_beside_its_steps(read: str, number: int) -> None:
    assert len(targets("chained-at-set", BEGUN.format(read=read))) == number


@pytest.mark.parametrize(
    ("read", "number"),
    [
        ("jnp.linalg.eigh(c)", 0),
        ("jnp.linalg.svd(jnp.minimum(c, 1e8))", 0),
        ("jnp.linalg.cholesky(c)", 1),
        ("c", 1),
    ],
)
def test_a_diagonal_is_nothing_beside_a_decomposition(read: str, number: int) -> None:
    assert len(targets("write-on-diagonal", SPECTRUM.format(read=read))) == number


@pytest.mark.parametrize(("read", "number"), [("jnp.linalg.svd(total)", 0), ("total", 1)])
def test_so_is_what_a_loop_writes(read: str, number: int) -> None:
    assert len(targets("chained-at-set", RATES.format(read=read))) == number


@pytest.mark.parametrize(
    ("handed", "number"), [("jnp.asarray(areas[1:] + areas[:-1])", 0), ("areas", 1), ("jnp.asarray(other)", 1)]
)
def test_what_numpy_hands_over_is_set_up(handed: str, number: int) -> None:
    assert len(targets("blocks-by-at-set", GEOMETRY.format(handed=handed))) == number


@pytest.mark.parametrize(("step", "number"), [("pass", 0), ("data = self._placed(data, action)", 1)])
def test_what_a_reset_writes_is_nothing_beside_the_bodies_that_are_simulated(step: str, number: int) -> None:
    assert len(targets("chained-at-set", WORLD.format(step=step))) == number


@pytest.mark.parametrize(("name", "number"), [("domain_randomize", 0), ("perturbed", 1)])
def test_nor_is_what_varies_the_model_once(name: str, number: int) -> None:
    code = WORLD.format(step="data = self._placed(data, action)").replace("_placed", name)
    assert len(targets("chained-at-set", code)) == number


def test_another_simulation_may_be_as_small_as_a_write() -> None:
    assert len(targets("chained-at-set", WORLD.format(step="pass").replace("mjx.", "game."))) == 1


@pytest.mark.parametrize(("said", "number"), [(": bool", 0), ("", 1), (": jax.Array", 1)])
def test_a_flag_of_python_around_a_loop_is_no_condition(said: str, number: int) -> None:
    assert len(targets("cond-around-a-write", FORCED.format(said=said))) == number
