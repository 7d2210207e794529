"""Writes that are nothing beside what makes their values, and functions that nobody asks for: each beside a case."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import functools\nimport jax\nimport jax.numpy as jnp; from jax import lax\nimport matplotlib.pyplot as plt\n"

PIECES = """
@jax.jit
def filled(self, params, x, parts):
    out = jnp.zeros((len(parts), 8))
    for i, part in enumerate(parts):
        value = {value}
        out = out.at[i].set(value)
    return out
"""
BLOCKS = """
@jax.jit
def filled(parts):
    out = jnp.zeros((4, 8, 8))
    for i, part in enumerate(parts):
        value = {value}
        out = out.at[i, : value.shape[0]].set(value)
    return out
"""
NESTED = """
@jax.jit
def total(x, rows):
    def with_writes(x):
        return x.at[0, 1].set(rows[0]).at[2, 1].set(rows[1])

    def with_one(x):
        return x * rows[0]

    return {asked}(x)
"""
NEAREST = """
@jax.jit
def spanned(costs):
    def step(seen, _):
        def more(seen):
            found = jnp.argmin({costs})
            return seen.at[found].set(True)

        return jax.lax.cond(jnp.all(seen), lambda s: s, more, seen), None

    return jax.lax.scan(step, jnp.zeros(64, bool), length=64)[0]
"""
DRAWN = """
def main(rows, width):
    img = jnp.zeros((len(rows), width))
    for i, row in enumerate(rows):
        img = img.at[i, row].set(50)
    {last}
"""

NAMED = """
@jax.jit
def updated(potentials, updates, starts):
    {before}
    for group, data in {over}:
        first = group.variables[0]
        start = starts[first]
        potentials = potentials.at[start : start + 8].set(jnp.sin(data))
    return potentials
"""
PICKED = """
def scaled(params, bonds, ring, scale):
    places = [i for i, bond in enumerate(bonds){asked}]
    return params.at[places, 0].mul(scale).at[places, 2].mul(jnp.sqrt(scale))
"""
MESH = """
def {name}(mesh, coordinates):
    def gradient(element):
        shape = jnp.zeros((3, 2))
        for e in range(3):
            shape = shape.at[jnp.array([e, (e + 1) % 3])].add(element[e])
        return shape

    {last}
"""
ADDED = """
@jax.jit
def matrix(weights, here, there):
    x = jnp.zeros((64, 64))
    x = x.at[jnp.diag_indices(64)].{method}(weights)
    x = x.at[here, here].{method}(weights)
    return x.at[here, there].{method}(-weights)
"""


def found(rule: str, code: str) -> int:
    return len(check_text((HEAD + code).encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("jnp.sin(part)", 1),
        ("self.decoder(part)", 0),
        ("jax.scipy.linalg.lu_solve(params[i], part)", 0),
        ("module.apply(params, part)", 0),
        ("paged_attention_kernel(part, x)", 0),
        ("x.at[0].apply(jnp.sin)", 1),
        ("jnp.apply_along_axis(jnp.sum, 0, part)", 1),
    ],
)
def test_a_write_beside_a_network_is_nothing(value: str, number: int) -> None:
    assert found("chained-at-set", PIECES.format(value=value)) == number


@pytest.mark.parametrize(("value", "number"), [("jnp.sin(part)", 1), ("jnp.linalg.svd(part)[1]", 0)])
def test_a_block_beside_a_decomposition_is_nothing(value: str, number: int) -> None:
    assert found("blocks-by-at-set", BLOCKS.format(value=value)) == number


@pytest.mark.parametrize(("place", "number"), [("i", 1), ("jnp.argmax(part)", 1), ("rows_of(part)", 0)])
def test_blocks_at_places_that_may_be_arrays_are_not_joined(place: str, number: int) -> None:
    code = BLOCKS.format(value="jnp.sin(part)").replace(".at[i, :", ".at[place, :")
    assert found("blocks-by-at-set", code.replace("        out =", f"        place = {place}\n        out =")) == number


@pytest.mark.parametrize(("asked", "number"), [("with_writes", 1), ("with_one", 0)])
def test_a_function_inside_another_that_nobody_asks_for_never_runs(asked: str, number: int) -> None:
    assert found("chained-at-set", NESTED.format(asked=asked)) == number


@pytest.mark.parametrize(
    ("costs", "number"), [("jnp.min(jnp.where(seen, costs, 9.0), axis=0)", 0), ("jnp.where(seen, 9.0, 1.0)", 1)]
)
def test_a_branch_that_goes_through_a_matrix_takes_longer_than_its_buffer(costs: str, number: int) -> None:
    assert found("cond-around-a-write", NEAREST.format(costs=costs)) == number


@pytest.mark.parametrize(("last", "number"), [("plt.imshow(img)", 0), ("print(img)", 1)])
def test_what_is_drawn_takes_longer(last: str, number: int) -> None:
    assert found("eager-at-set-loop", DRAWN.format(last=last)) == number


@pytest.mark.parametrize(
    ("before", "over", "number"),
    [
        ("limit = 1.0", "updates.items()", 0),
        ("potentials = jnp.zeros(64)", "updates.items()", 1),
        ("limit = 1.0", "zip(starts, updates)", 1),
    ],
)
def test_parts_that_somebody_names_come_in_any_order(before: str, over: str, number: int) -> None:
    code = NAMED.format(before=before, over=over)
    findings = check_text((HEAD + code).encode(), "m.py", Scope(("chained-at-set", "blocks-by-at-set")))
    assert len(findings) == number


@pytest.mark.parametrize(("asked", "number"), [(" if bond in ring", 0), ("", 1)])
def test_places_that_python_picks_are_set_up(asked: str, number: int) -> None:
    assert found("chained-at-set", PICKED.format(asked=asked)) == number
    assert found("chained-at-set", f"@jax.jit{PICKED.format(asked=asked)}") == 1


@pytest.mark.parametrize(
    ("name", "last", "number"),
    [
        ("construct_space", "return jax.vmap(gradient)(coordinates)", 0),
        ("construct_space", "return Space(gradients=jax.vmap(gradient)(coordinates))", 0),
        ("construct_space", "return jax.vmap(gradient)", 1),
        ("construct_space", "return Space(gradient=gradient)", 1),
        ("gradients", "return jax.vmap(gradient)(coordinates)", 1),
    ],
)
def test_what_a_maker_maps_runs_once_but_for_what_it_hands_on(name: str, last: str, number: int) -> None:
    assert found("chained-at-set", MESH.format(name=name, last=last)) == number


@pytest.mark.parametrize(
    ("method", "told"), [("add", "one `x.at[...].add(...)`"), ("set", "one jnp.where with a mask")]
)
def test_places_that_may_be_there_twice_are_added_up_by_one_write(method: str, told: str) -> None:
    findings = check_text((HEAD + ADDED.format(method=method)).encode(), "m.py", Scope(("chained-at-set",)))
    assert [told in str(finding.suggestion) for finding in findings] == [True]


@pytest.mark.parametrize(("fill", "number"), [(".at[:].set(0)", 0), (".at[0].set(0)", 1)])
def test_what_fills_an_array_begins_anew(fill: str, number: int) -> None:
    code = f"@jax.jit\ndef first(dl, x, i):\n    dl = (2 * dl){fill}\n    return dl.at[i].set(x)\n"
    assert found("chained-at-set", code) == number
    assert found("chained-at-set", code.replace(".set(x)", ".set(x).at[i + 2].set(x)")) == 1
    assert found("chained-at-set", "@jax.jit\ndef first(dl, x):\n    return dl.at[0].set(x).at[...].set(x)\n") == 0
    assert found("chained-at-set", "@jax.jit\ndef first(dl, x):\n    return dl.at[:].set(x)\n") == 0


@pytest.mark.parametrize(("name", "number"), [("ref_paged_attention", 0), ("ref_positions", 1)])
def test_what_a_kernel_is_held_against_is_left_alone(name: str, number: int) -> None:
    assert found("chained-at-set", f"def {name}(x, a, b):\n    return x.at[0, 1].set(a).at[2, 1].set(b)\n") == number


FOCK = """
@jax.jit
def relaxed(h, x):
    h = h.at[0].set((h[0] + h[0].T) / 2)
    h = h.at[1].set((h[1] + h[1].T) / 2)

    def step(x, _):
        return jnp.tanh(h[0] @ x + h[1] @ x), None

    x, _ = lax.scan(step, x, length=30)
    return {returned}
"""
SOLVED = """
@jax.jit
def imposed(u, a, b, free, fixed, values):
    {solve}
    u = u.at[fixed].set(values)
    u = u.at[free].set(x)
    return u
"""


@pytest.mark.parametrize(("returned", "count"), [("x", 0), ("h * x", 1)])
def test_what_the_steps_of_a_loop_alone_read_is_written_once(returned: str, count: int) -> None:
    found = check_text((HEAD + FOCK.format(returned=returned)).encode(), "m.py", Scope(("chained-at-set",)))
    assert len(found) == count


@pytest.mark.parametrize(("solve", "count"), [("x, _ = jax.scipy.sparse.linalg.cg(a, b)", 0), ("x = a @ b", 1)])
def test_what_is_put_around_an_iterative_solution_is_nothing_beside_it(solve: str, count: int) -> None:
    found = check_text((HEAD + SOLVED.format(solve=solve)).encode(), "m.py", Scope(("chained-at-set",)))
    assert len(found) == count


PLAYED = """
class Evaluation:
    @functools.partial(jax.jit, static_argnums=(0, 1))
    def rollout(self, env, state):
        return {played}

    @functools.partial(jax.jit, static_argnums=0)
    def run(self, state):
        wins = jnp.zeros(len(self.envs))
        for i, env in enumerate(self.envs):
            wins = wins.at[i].set(jnp.mean(self.rollout(env, state)))
        return wins
"""


@pytest.mark.parametrize(
    ("played", "number"),
    [("jax.lax.scan(env.step, state, length=1000)[1]", 0), ("jnp.sin(state)", 1), ("play(state)", 1)],
)
def test_a_write_beside_a_scan_in_each_turn_is_nothing(played: str, number: int) -> None:
    assert found("chained-at-set", PLAYED.format(played=played)) == number
