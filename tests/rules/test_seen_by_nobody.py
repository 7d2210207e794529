"""Writes and draws that nobody sees: of a loop of two turns, in a branch that nobody takes, of which Python goes on, or
which nothing reads. What is next to them is found."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax, random\n"

GROUNDED = """
    @jax.jit
    def grounded(residual, y, step):
        if step.is_complex:
            places = [0, step.count]
        else:
            places = [0]

        def newton(y):
            total = step.residual(y)
            for place in places:
                total = total.at[place].add(1e9 * y[place])
            return total

        return newton(y)
    """
SAMPLED = """
    def sampled(self, state, n, jit=True):
        energies = jnp.zeros(100)
        if jit:
            body = lambda i, carry: self.kept(i, carry)
            state, energies = lax.fori_loop(0, 100, body, (state, energies))
        else:
            for i in range(100):
                state, energy = self.step(state)
                energies = energies.at[i].set(energy)
        return energies
    """
TURNED = """
    def turned(key, q):
        way = random.choice(key, jnp.array([-1, 1]))
        if way == -1:
            return q - 1
        return q + way
    """
PROPOSED = """
    @jax.jit
    def proposed(key, pool, p):
        taken = pool[random.choice(key, 8, p=p)]
        forward = 0.5 * p[random.choice(key, 8, p=p)]
        return taken
    """
LISTED = """
    @jax.jit
    def listed(y, x):
        places = []
        for place in range(3):
            places.append(place)
        for place in places:
            y = y.at[place].set(jnp.sin(x[place]) * 1e9)
        return y
    """
CASES = {
    "a loop of two turns": ("chained-at-set", GROUNDED, ("places = [0]", "places = [0, 1, 2, 3]"), 0),
    "a loop where the default is one of jax": ("chained-at-set", SAMPLED, ("jit=True", "jit=False"), 0),
    "a draw that Python goes by": ("choice-of-two", TURNED, ("if way == -1", "if q is None"), 0),
    "a draw that nothing reads": ("choice-with-probabilities", PROPOSED, ("return taken", "return taken, forward"), 1),
}


def found(rule: str, code: str) -> int:
    return len(check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_alone_and_what_is_next_to_it_is_found(name: str) -> None:
    rule, code, (written, otherwise), count = CASES[name]
    assert found(rule, code) == count
    assert found(rule, code.replace(written, otherwise)) == count + 1


def test_a_list_that_grows_is_not_two() -> None:
    assert found("chained-at-set", LISTED) == 1
