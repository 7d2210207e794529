"""What a fix leaves without a reader goes with it; what somebody else may still read stays."""

from __future__ import annotations

import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

HEAD = "import jax\nimport jax.numpy as jnp\n\n"


def fixed(rule: str, code: str) -> str:
    """The code behind the imports after `check --fix --unsafe-fixes`."""
    data, scope = (HEAD + code).encode(), Scope((rule,))
    after = fix_text("m.py", data, check_text(data, "m.py", scope), scope, join({}), unsafe=True).after
    return after.decode().removeprefix(HEAD)


def test_places_that_only_the_pick_read_are_searched_for_no_more() -> None:
    code = "def least(x):\n    d = jnp.sqrt(x)\n    i = jnp.argmin(d)\n    return d[i]\n"
    assert fixed("argmax-then-pick", code) == "def least(x):\n    d = jnp.sqrt(x)\n    return jnp.min(d)\n"


def test_the_indices_of_a_diagonal_go_with_the_write() -> None:
    head = "def damped(a, rate):  # of a global fit\n    k = a @ a.T\n"
    code = f"{head}    i = jnp.arange(k.shape[0])\n    return k.at[i, i].add(rate)\n"
    after = f"{head}    return jnp.where(jnp.eye(k.shape[0], dtype=bool), k + rate, k)\n"
    assert fixed("write-on-diagonal", code) == after


@pytest.mark.parametrize(
    "kept",
    [
        "    i = jnp.argmin(d)\n    best = d[i]\n    return i, best\n",
        "    i = jnp.argmin(d)\n    best = d[i]\n    return lambda y: y[i] + best\n",
        "    i = jnp.argmin(d)  # the nearest\n    best = d[i]\n    return best\n",
        "    i = jnp.argmin(d); j = i\n    best = d[i]\n    return best, j\n",
        "    global i\n    i = jnp.argmin(d)\n    best = d[i]\n    return best\n",
        "    i = k = jnp.argmin(d)\n    best = d[i]\n    return best, k\n",
    ],
)
def test_a_line_that_something_else_may_read_or_says_more_stays(kept: str) -> None:
    code = f"def least(x):\n    d = jnp.sqrt(x)\n{kept}"
    assert fixed("argmax-then-pick", code) in (code, code.replace("d[i]", "jnp.min(d)"))


def test_the_only_line_of_a_block_stays() -> None:
    code = "def least(x, flag):\n    d = jnp.sqrt(x)\n    if flag:\n        i = jnp.argmin(d)\n    return d[i]\n"
    assert "        i = jnp.argmin(d)\n" in fixed("argmax-then-pick", code)


def test_a_length_that_only_the_draw_read_goes_with_it() -> None:
    code = "@jax.jit\ndef pick(key, p: jax.Array):\n    n = p.shape[0]\n    return jax.random.choice(key, n, p=p)\n"
    after = "@jax.jit\ndef pick(key, p: jax.Array):\n    return jax.random.categorical(key, jnp.log(p))\n"
    assert fixed("choice-with-probabilities", code) == after


NUMPY = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"


@pytest.mark.parametrize(
    ("more", "is_left"),
    [("", False), ("\n\nZERO = np.zeros(3)\n", True), ('\n\n__all__ = ["np", "damped"]\n', True)],
)
def test_an_import_of_numpy_goes_with_the_last_that_read_it(more: str, is_left: bool) -> None:
    code = f"def damped(u, v, tau):\n    u = u @ v.T + u.T\n    return u.at[np.diag_indices(u.shape[0])].set(tau){more}"
    data, scope = (NUMPY + code).encode(), Scope(("write-on-diagonal",))
    after = fix_text("m.py", data, check_text(data, "m.py", scope), scope, join({}), unsafe=True).after.decode()
    assert "jnp.where(jnp.eye(" in after
    assert ("import numpy" in after) is is_left
