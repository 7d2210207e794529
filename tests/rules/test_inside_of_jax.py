"""No rule gives advice about the inside of a function of jax's own, which the user only called."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import compilers
import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.round import joins
from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp
from jax.experimental.ode import odeint

def gamma(key):
    return jax.random.gamma(key, 2.0, (512,))

def binomial(key):
    return jax.random.binomial(key, 10, 0.3, (512,))

def chosen(key):
    return jax.random.choice(key, 4096, (10,), replace=False)

def in_a_scan(keys):
    return jax.lax.scan(lambda total, key: (total + jax.random.gamma(key, 2.0, (512,)), None), jnp.zeros(512), keys)[0]

def levels(a, b):
    return jax.lax.associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a * 2.0, b))

def solve(a, b):
    return jnp.linalg.solve(a, b)

def padded(x):
    return jnp.pad(x * 1.5, (2, 2), mode="wrap") * 2.0

def integral(x):
    return jax.scipy.special.expi(x)

def path(x):
    return odeint(lambda y, t: -y, x, jnp.linspace(0.0, 1.0, 5))

def ranks(x):
    return jax.scipy.stats.rankdata(x)

def fifth(x):
    def body(c, _):
        c = jnp.sin(c)
        return c, c
    return jax.lax.scan(body, x, None, length=100)[1][5]
"""
INSIDE = (
    "gamma(key)", "binomial(key)", "chosen(key)", "in_a_scan(key[20])", "levels(f32[1024],f32[1024])",
    "solve(f32[64,64],f32[64])", "padded(f32[64,64])", "integral(f32[512])", "path(f32[16])", "ranks(f32[512])",
    "fifth(f32[512])",
)  # fmt: skip
OWN = """
import jax
import jax.numpy as jnp

def solve(key, x):
    def body(carry, _):
        key, x = carry
        key, own = jax.random.split(key)
        return (key, x + jax.random.normal(own, x.shape)), None
    return jax.lax.scan(body, (key, x), None, length=64)[0]

def gamma(x):
    return jax.jit(largest)(x * 2.0)

def largest(x):
    return jnp.sort(x)[-1]

def last(x):
    def body(c, _):
        c = jnp.sin(c)
        return c, c
    return jax.lax.scan(body, x, None, length=100)[1][-1]
"""
RETURNED = """
import jax

def rolled(x, moves):
    return jax.vmap(lambda x, us: jax.lax.scan(lambda x, u: (x + u, (x * x).sum()), x, us))(x, moves)
"""
OF_THE_USER = {
    "solve(key,f32[512])": "key-split-in-scan",
    "gamma(f32[512])": "sort-for-max",
    "last(f32[512])": "scan-keeps-all-outputs",
}


@pytest.mark.parametrize("name", ["h100", "v5e", "cpu"])
def test_what_stands_inside_of_a_function_of_jax_is_no_advice(name: str, tmp_path: Path) -> None:
    """But for the rules that are about the call: what a choice sorts is told by no rule about sorts, and a scan of the
    user's own is told to take several steps at once, which helps an accelerator alone."""
    about_the_call = {"chosen(key)": {"choice-without-replacement"}}
    if name != "cpu":
        about_the_call["fifth(f32[512])"] = {"scan-without-unroll"}
    assert _told(CODE, INSIDE, name, tmp_path) == {spec: set() for spec in INSIDE} | about_the_call


@pytest.mark.parametrize("name", ["h100", "cpu"])
def test_the_same_in_a_function_of_the_user_is_told_whatever_its_name(name: str, tmp_path: Path) -> None:
    told = _told(OWN, OF_THE_USER, name, tmp_path)
    assert all(rule in told[spec] for spec, rule in OF_THE_USER.items()), told


def _told(code: str, calls: Iterable[str], name: str, folder: Path) -> dict[str, set[str]]:
    reports = compilers.explained(compilers.written(code, calls, folder), name, all_rules())
    return {call: compilers.told(report) for call, report in reports.items()}


@pytest.mark.parametrize("name", ["h100", "cpu"])
def test_outputs_that_are_the_result_are_kept_for_somebody(name: str, tmp_path: Path) -> None:
    (told,) = _told(RETURNED, ["rolled(f32[256,4],f32[256,100,4])"], name, tmp_path).values()
    assert "scan-keeps-all-outputs" not in told


def test_a_jitted_method_under_a_transform_is_the_users_own(tmp_path: Path) -> None:
    """`jax.vmap(env.step)`: what is explained and the method are both called `step`, and one of them has a frame."""
    code = """
import functools
import jax
import jax.numpy as jnp

class Environment:
    @functools.partial(jax.jit, static_argnums=0)
    def step(self, state):
        return jnp.zeros((4, 4)).at[jnp.arange(4), jnp.argsort(state)].add(state) * 2

play = jax.vmap(Environment().step)
"""
    (made,) = compilers.compiled(compilers.written(code, ["play(f32[512,4])"], tmp_path), "cpu").values()
    module = hlo.parse(made.after)
    assert [is_of_jax(step) for step in module.every("scatter")] == [False]
    assert {is_of_jax(step) for step in module.every("sort")} == {True}


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [("concatenate", True), ("jit(stack)/concatenate", True), ("gather", False), ("scatter-add", False)],
)
def test_places_that_a_vmap_joins_for_a_look_up_are_no_join_of_the_users(name: str, is_theirs: bool) -> None:
    at = f'metadata={{op_name="jit(f)/vmap()/{name}" source_file="f.py" source_line=1}}'
    module = hlo.parse(
        "HloModule jit_f\n\nENTRY %main (x: s32[8,1]) -> s32[8,2] {\n  %x = s32[8,1]{1,0} parameter(0)\n"
        f"  ROOT %y = s32[8,2]{{1,0}} concatenate(%x, %x), dimensions={{1}}, {at}\n}}\n"
    )
    assert joins(module.computations["main"].instructions["y"], module) == is_theirs
