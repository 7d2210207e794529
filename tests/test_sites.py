"""The stack of a step is that of the call that it belongs to, also where jax prints that of an earlier call first."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.explained import explain
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.sites import at_their_calls

pytest.importorskip("jax")

CODE = """
import jax
import jax.numpy as jnp

def draws(key, x):
    key = moved_on(key)
    return noise(key, x)

def moved_on(key):
    return jax.random.split(key)[0]

def noise(key, x):
    one, two = jax.random.split(key)
    whole = jax.random.randint(two, x.shape, 0, 9)
    return x + jax.random.normal(one, x.shape) + whole

@jax.jit
def squared(x):
    return jnp.cumsum(x * x)

def twice(x):
    x = squared(x)
    return squared(x + 1)

def loops(key, x):
    def outer(carry, _):
        def inner(carry, _):
            key, x = carry
            key, own = jax.random.split(key)
            return (key, x + jax.random.normal(own, x.shape)), None
        key, x = jax.lax.scan(inner, carry, None, length=4)[0]
        key, own = jax.random.split(key)
        return (key, x * jax.random.normal(own, x.shape)), None
    return jax.lax.scan(outer, (key, x), None, length=3)[0]

def summed(x):
    def body(x, row):
        return jnp.cumsum(x) + row, x.sum()
    return jax.lax.scan(body, x, x)[0]

def ordered(x):
    def body(x, row):
        return jnp.sort(x) * row, x.max()
    return jax.lax.scan(body, x, x)[0] - 1

def until(x):
    def both(x):
        x = summed(x)
        return ordered(x)
    return jax.lax.while_loop(lambda x: x.sum() < 9, both, x)

def sampled(key, x):
    one, two = jax.random.split(key)
    return jax.random.gamma(two, x) * one[0]

def mapped(key, x):
    key, one, two = jax.random.split(key, 3)
    return key, jax.random.normal(one, x.shape), jax.vmap(drawn)(jax.random.split(two, 16))

def drawn(key):
    first, second, third = jax.random.split(key, 3)
    return jax.random.uniform(first, (4,)) + jax.random.normal(third, (4,))
"""
SPECS = {
    "mapped": "key, f32[16,4]",
    "draws": "key, f32[64]",
    "twice": "f32[64]",
    "loops": "key, f32[64]",
    "until": "f32[64]",
    "sampled": "u32[2], f32[64]",
}
LINES = CODE.splitlines()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artifacts]:
    calls = (f"{name}({given})" for name, given in SPECS.items())
    specs = compilers.written(CODE, calls, tmp_path_factory.mktemp("code"))
    return dict(zip(SPECS, compilers.compiled(specs, "cpu").values(), strict=True))


def modules(artifacts: Artifacts) -> tuple[hlo.Module, hlo.Module]:
    return hlo.parse(artifacts.after), hlo.parse(artifacts.before)


def paths(module: hlo.Module, function: str) -> set[tuple[str, ...]]:
    """The lines of code, innermost first, that lead to what stands in a jitted function of that name."""
    items = [item for part in module.computations.values() for item in part.instructions.values()]
    found = (item.stack for item in items if f"jit({function})" in item.op_name and item.stack)
    return {tuple(LINES[frame.line - 1].strip() for frame in stack) for stack in found}


def test_each_call_of_a_function_that_jax_lowers_once_has_its_own_line(compiled: dict[str, Artifacts]) -> None:
    after, before = modules(compiled["draws"])
    innermost = {path[0] for path in paths(at_their_calls(after, before), "_threefry_split")}
    assert innermost == {"return jax.random.split(key)[0]", "one, two = jax.random.split(key)", LINES[13].strip()}
    for path in paths(at_their_calls(after, before), "_threefry_split"):
        caller = "key = moved_on(key)" if path[0].startswith("return") else "return noise(key, x)"
        assert path[1:2] == (caller,)


def test_a_function_that_is_lowered_anew_for_a_vmap_is_called_where_it_stands(compiled: dict[str, Artifacts]) -> None:
    """It was told of a line that nothing called from there: that of the first trace, without a vmap."""
    after, before = modules(compiled["mapped"])
    first, split = "key, one, two = jax.random.split(key, 3)", "first, second, third = jax.random.split(key, 3)"
    around = "return key, jax.random.normal(one, x.shape), jax.vmap(drawn)(jax.random.split(two, 16))"
    assert {(first,), (split, around), (around,)} == paths(at_their_calls(after, before), "_threefry_split")
    assert (first, split, around) in paths(after, "_threefry_split")


def test_what_a_function_of_jaxs_own_calls_is_called_by_the_line_that_called_that(
    compiled: dict[str, Artifacts],
) -> None:
    """The keys that gamma splits in its loop were split by the line above, which it called."""
    after, before = modules(compiled["sampled"])
    split, gamma = "one, two = jax.random.split(key)", "return jax.random.gamma(two, x) * one[0]"
    assert paths(at_their_calls(after, before), "_threefry_split") == {(split,), (gamma,)}
    assert (split, gamma) in paths(after, "_threefry_split")


def test_the_lines_inside_a_function_of_the_users_stay(compiled: dict[str, Artifacts]) -> None:
    after, before = modules(compiled["twice"])
    assert at_their_calls(after, before) == after
    calls = {path[1] for path in paths(after, "squared") if len(path) > 1}
    assert calls == {"x = squared(x)", "return squared(x + 1)"}


def test_what_an_outer_loop_draws_is_not_drawn_by_the_inner_one(compiled: dict[str, Artifacts]) -> None:
    after, before = modules(compiled["loops"])
    split, scan = "key, own = jax.random.split(key)", "return jax.lax.scan(outer, (key, x), None, length=3)[0]"
    inner = "key, x = jax.lax.scan(inner, carry, None, length=4)[0]"
    whole = {path for path in paths(at_their_calls(after, before), "_threefry_split") if path.count(scan) == 1}
    assert whole == {(split, scan), (split, inner, scan)}
    assert (split, split, scan) in paths(after, "_threefry_split")


def test_a_scan_in_a_loop_is_called_where_it_stands(compiled: dict[str, Artifacts]) -> None:
    """jax prints the lines of such a scan, and of the loop around it, three times."""
    after, before = modules(compiled["until"])
    items = [
        item for part in at_their_calls(after, before).computations.values() for item in part.instructions.values()
    ]
    told = {tuple(LINES[frame.line - 1].strip() for frame in item.stack) for item in items if item.stack}
    loop = "return jax.lax.while_loop(lambda x: x.sum() < 9, both, x)"
    for line, scan, call in (
        ("return jnp.cumsum(x) + row, x.sum()", "return jax.lax.scan(body, x, x)[0]", "x = summed(x)"),
        ("return jnp.sort(x) * row, x.max()", "return jax.lax.scan(body, x, x)[0] - 1", "return ordered(x)"),
    ):
        inside = {path for path in told if line in path}
        assert inside == {(line, scan, call, loop)}
        assert {path for path in told if path[0] == scan} == {(scan, call, loop)}


def test_barriers_are_told_at_the_lines_of_the_calls(compiled: dict[str, Artifacts]) -> None:
    stacks = [one.barrier.stack for one in explain(compiled["draws"]).barriers]
    drawn = {LINES[stack[0].line - 1].strip() for stack in stacks if stack}
    assert {"return jax.random.split(key)[0]", "one, two = jax.random.split(key)"} <= drawn


def test_a_program_without_calls_stays_as_it_is() -> None:
    text = (Path(__file__).parent / "hlo" / "scan_cpu_jax0.10.2.txt").read_text()
    assert at_their_calls(hlo.parse(text), hlo.parse(text)) == hlo.parse(text)
