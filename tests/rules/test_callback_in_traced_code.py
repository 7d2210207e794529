"""callback-in-traced-code: what is told to somebody once, and what every run hands to Python."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import warnings
import jax
import jax.numpy as jnp

def warn(is_open):
    '''Of what nobody draws.'''
    if is_open:
        warnings.warn("the mesh is open")

def keep(x):
    HISTORY.append(x)

@jax.jit
def {name}(x):
    {told}
    return x / x.sum()

def rollout(x):
    {loop}
"""


@pytest.mark.parametrize(
    ("name", "told", "count"),
    [
        ("edges_of", "jax.debug.callback(warn, x.sum() > 1)", 0),
        ("edges_of", 'jax.debug.callback(lambda x: print("sum", x), x.sum())', 0),
        # Whatever the step finds is told in each.
        ("step", "jax.debug.callback(warn, x.sum() > 1)", 1),
        # What is kept on the host, or sent somewhere, is what the callback is for.
        ("step", "jax.debug.callback(keep, x.sum())", 0),
        ("step", "jax.debug.callback(HISTORY.append, x.sum())", 0),
        ("precompile", 'jax.debug.print("compiled")', 0),
        ("potential", 'jax.debug.print("ignores the line of sight")', 1),
        ("precompile", 'jax.debug.print("sum {}", x.sum())', 1),
    ],
)
def test_a_warning_of_what_runs_once_is_to_be_read(name: str, told: str, count: int) -> None:
    code = CODE.format(name=name, told=told, loop="return x")
    assert len(check_text(code.encode(), "m.py", Scope(("callback-in-traced-code",)))) == count


def test_what_a_loop_asks_is_told_in_each_turn() -> None:
    code = CODE.format(
        name="goes_on",
        told="jax.debug.callback(warn, x.sum() > 1)",
        loop="return jax.lax.while_loop(goes_on, jnp.sin, x)",
    )
    rules = Scope(("callback-in-traced-code", "callback-in-loop-body"))
    assert len(check_text(code.encode(), "m.py", rules)) == 1


@pytest.mark.parametrize(
    ("run", "count"), [("jax.lax.scan(lambda x, _: (jnp.sin(x), x), x, None, 64)[0]", 0), ("jnp.sin(x)", 1)]
)
def test_what_is_told_of_a_whole_run_is_cheap_beside_it(run: str, count: int) -> None:
    code = f"""
import jax
import jax.numpy as jnp

def played(x):
    return {run}

@jax.jit
def evaluate(x):
    found = played(x)
    jax.debug.print("won {{}}", found.mean())
    return found
"""
    assert len(check_text(code.encode(), "m.py", Scope(("callback-in-traced-code",)))) == count
