"""Writes that nobody would change: nothing beside what is around them, in an order, or of two kinds that nothing
joins. What is next to them and is a case is found."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom solvers import solve\n"
HEAD += "import diffrax\nfrom jax.experimental.ode import odeint\n\n@jax.jit\n"
LISTED = """
def blocks(R, Q, T):
    J = jnp.array([solve(R(t)) for t in range(T)])
    J = J.at[0].add(Q)
    J = J.at[1:].add(2 * Q)
    return J
"""
SWAPPED = """
def exchanged(params, spins, signed_network, i, j):
    xx = spins.at[i].set(spins[j])
    xx = xx.at[j].set(spins[i])
    return signed_network(params, xx)
"""
MESH = """
def mesh(states, agent, Xs, Ys):
    plot_states = states[None].repeat(20, axis=0)
    plot_states = plot_states.at[:, agent, 0].set(Xs)
    plot_states = plot_states.at[:, agent, 1].set(Ys)
    return plot_states
"""
FACES = """
def exchanged(f, a, b, coming_ids, leaving_ids):
    f = f.at[coming_ids, :1].set(a)
    f = f.at[leaving_ids, -1:].set(b)
    return f
"""
SEEN = """
def seen(obs, entities, H):
    for kind in entities:
        row, col = entities[kind].position[..., 0], entities[kind].position[..., 1]
        row = jnp.where(row >= 0, row, H)
        obs = obs.at[row, col].set(entities[kind].symbol, mode="drop")
    return obs
"""
CLIPPED = """
def clipped(xi, a, low, high):
    xi = jnp.where(low, xi.at[0].set(xi[0] / a), xi)
    xi = jnp.where(high, xi.at[1].set(1.0 + xi[0]), xi)
    return xi
"""
GIVEN = """
def refined(start, xs, positions, n):
    last, (blocks, counts) = jax.lax.scan(inspected, start, xs)
    grid = jnp.full(n, jnp.nan)
    grid = grid.at[positions].set(blocks.ravel(), mode="drop")
    final, = (last[3],)
    return grid.at[counts.sum()].set(final, mode="drop")
"""
TRIDIAGONAL = """
def full(d, e, j):
    return jnp.zeros((8, 8)).at[j, j].set(d).at[j[1:], j[:-1]].set(e)

@jax.jit
def energies(d, e, j):
    return jnp.linalg.eigh(full(d, e, j))

@jax.jit
def modes(d, e, j):
    return jax.scipy.linalg.eigh(full(d, e, j), eigvals_only=False)
"""
TRACED = """
def paths(y0, f):
    y0 = y0.at[:, 0].set(jnp.cos(y0[:, 1])).at[:, 1].set(jnp.sin(y0[:, 1]))
    return jax.vmap(path, in_axes=(0, None))(y0, f)

def path(y0, f):
    return diffrax.diffeqsolve(diffrax.ODETerm(f), diffrax.Tsit5(), 0.0, 1.0, 0.1, y0).ys
"""
FIELD = """
def path(y0, ts):
    def field(y, t):
        return {field}
    y0 = {start}
    return odeint(field, y0, ts)
"""
CACHES = """
def decoded(h, blocks, caches):
    def step(carry, t):
        h, caches = carry
        for i in range(4):
            h, cache = blocks[i].decode(h, caches[i], t)
            caches = caches.at[i].set(cache)
        return (h, caches), h
    return jax.lax.scan(step, (h, caches), jnp.arange(64))
"""


def found(rule: str, code: str) -> int:
    return len(list(check_text((HEAD + dedent(code).lstrip()).encode(), "m.py", Scope((rule,)))))


@pytest.mark.parametrize(
    ("rule", "code", "old", "new"),
    [
        pytest.param("chained-at-set", LISTED, "range(T)", "range(3)", id="a list that is written out"),
        pytest.param("chained-at-set", LISTED, "solve(R(t))", "jnp.sin(R[t])", id="a list of arithmetic"),
        pytest.param("chained-at-set", SWAPPED, "signed_network(params, xx)", "jnp.sin(xx)", id="arithmetic behind"),
        pytest.param("chained-at-set", SWAPPED, "(params, xx)", "(params, xx), xx", id="that is read elsewhere too"),
        pytest.param("chained-at-set", MESH, "plot_states", "plotted_states_of_all", id="no picture"),
        pytest.param("chained-at-set", FACES, "-1:", ":1", id="one face"),
        pytest.param("chained-at-set", FACES, ("[coming_ids", "[leaving_ids"), ("[0", "[1"), id="planes"),
        pytest.param("chained-at-set", SEEN, "jnp.where(row >= 0, row, H)", "row % H", id="what may be known"),
        pytest.param("chained-at-set", SEEN, "entities[kind].symbol", "1", id="one number, in any order"),
        pytest.param("chained-at-set", SEEN, ".set(", ".add(", id="sums, in any order"),
        pytest.param("chained-at-set", GIVEN, "jnp.full(n, jnp.nan)", "xs", id="into an array that is there"),
        pytest.param("chained-at-set", GIVEN, "set(final", "set(xs[0]", id="what no loop gave"),
        pytest.param("chained-at-set", GIVEN, "jax.lax.scan(inspected, start", "inspected(start", id="of a function"),
        pytest.param("chained-at-set", TRIDIAGONAL, "jnp.linalg.eigh(full(d, e, j))", "full(d, e, j)", id="as it is"),
        pytest.param("chained-at-set", TRIDIAGONAL, "return jnp.zeros", "x = jnp.zeros", id="not what is returned"),
        pytest.param("chained-at-set", TRIDIAGONAL, "jax.scipy.linalg.eigh(", "solve(", id="of anybody"),
        pytest.param("columns-by-at-set", TRACED, "diffrax.diffeqsolve", "diffrax.step", id="no solver"),
        pytest.param("columns-by-at-set", TRACED, "jax.vmap(path,", "jax.vmap(f,", id="of another"),
        pytest.param("chained-at-set", CACHES, "h, cache =", "_, cache =", id="of which none needs the one before"),
        pytest.param("chained-at-set", CACHES, "h, caches[i], t", "h, t", id="made of nothing that was there"),
        pytest.param("chained-at-set", CACHES, "set(cache)", "add(cache)", id="what is added"),
        pytest.param("chosen-at-set", CLIPPED, "1.0 + xi[0]", "1.0 + xi[1]", id="of its own place"),
    ],
)
def test_what_nobody_would_change_is_left_alone(rule: str, code: str, old: object, new: object) -> None:
    assert found(rule, code) == 0
    pairs = zip(old, new, strict=True) if isinstance(old, tuple) and isinstance(new, tuple) else [(old, new)]
    for was, now in pairs:
        assert str(was) in code
        code = code.replace(str(was), str(now))
    assert found(rule, code) == 1


@pytest.mark.parametrize(("is_asked_in_each_step", "number"), [(False, 0), (True, 1)])
def test_columns_are_nothing_beside_a_solver_but_in_what_it_asks(is_asked_in_each_step: bool, number: int) -> None:
    columns = "{}.at[:, 0].set(1 - {}[:, 1]).at[:, 1].set(0.5)".replace("{}", "y" if is_asked_in_each_step else "y0")
    field, start = (columns, "y0") if is_asked_in_each_step else ("-y", columns)
    assert found("columns-by-at-set", FIELD.format(field=field, start=start)) == number


@pytest.mark.parametrize(
    ("first", "second", "place", "number"),
    [
        pytest.param("min", "max", "[i, j]", 0, id="two ways where several may meet"),
        pytest.param("min", "min", "[i, j]", 1, id="one way"),
        pytest.param("min", "max", "[0, 1]", 1, id="one number"),
        pytest.param("set", "min", "[i, j]", 0, id="what is there is wiped out before"),
        pytest.param("set", "min", "[0, 1]", 1, id="at one place"),
    ],
)
def test_the_least_and_the_most_of_what_meets_at_a_place_are_no_one_write(
    first: str, second: str, place: str, number: int
) -> None:
    body = f"    return x.at{place}.{first}(a).at{place}.{second}(b)\n"
    code = f"import jax\n\n@jax.jit\ndef f(x, i, j, a, b):\n    i, j = i.ravel(), j.ravel()\n{body}"
    assert len(list(check_text(code.encode(), "m.py", Scope(("chained-at-set",))))) == number
