"""A permutation in a helper that is mapped over a tree: of one key for all leaves, along the first axis."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import functools
import jax
import jax.numpy as jnp

def shuffled(PARAMETERS):
    x = jax.random.permutation(key, xAXIS)
    return x.reshape(8, -1, *x.shape[1:])

@jax.jit
def update(state, key, data):
    keys = jax.tree.map(lambda x: key, data)
    return CALL
"""
LAMBDA = "jax.tree.map(lambda x: shuffled(x, key), data)"
FORMS = {
    "in a lambda": ("x, key", "", LAMBDA, "random.permutation(key, n)"),
    "by a keyword": ("x, key", "", "jax.tree.map(lambda x: shuffled(x, key=state), data)", "random.permutation(state"),
    "the first axis": ("x, key", ", axis=0", LAMBDA, "axis=0"),
    "a partial": ("key, x", "", "jax.tree.map(functools.partial(shuffled, state), data)", "random.permutation(state"),
    "a partial by a keyword": ("x, key", "", "jax.tree.map(functools.partial(shuffled, key=key), data)", "sort"),
    "rows as they are": ("x, key", ", independent=False", LAMBDA, "sort"),
    "each column apart": ("x, key", ", independent=True", LAMBDA, None),
    # All leaves have several axes then, and XLA merges the sorts of the indices: the programs are the same.
    "a further axis": ("x, key", ", axis=2", LAMBDA, None),
    "the last axis": ("x, key", ", axis=-1", LAMBDA, None),
    "an axis by a name": ("x, key, axis=0", ", axis=axis", LAMBDA, None),
    "a key for each leaf": ("x, key", "", "jax.tree.map(shuffled, data, keys)", None),
    "a key for each lambda": ("x, key", "", "jax.tree.map(lambda x, key: shuffled(x, key), data, keys)", None),
    "one array by many keys": ("x, key", "", "jax.tree.map(lambda key: shuffled(data, key), keys)", None),
    "one array": ("x, key", "", "shuffled(data, key)", None),
    "a partial of one": ("key, x", "", "functools.partial(shuffled, key)(data)", None),
}


@pytest.mark.parametrize(("parameters", "axis", "call", "said"), FORMS.values(), ids=FORMS)
def test_a_helper_that_is_mapped(parameters: str, axis: str, call: str, said: str | None) -> None:
    code = CODE.replace("PARAMETERS", parameters).replace("AXIS", axis).replace("CALL", call)
    found = check_text(code.encode(), "m.py", Scope(("permutation-per-leaf",)))
    assert [said in str(finding) for finding in found] == [True] * (said is not None)


LEAF = """
import jax
import jax.numpy as jnp

@jax.jit
def update(key, data):
    def shuffled(x):
        x = FIRST
        x = x.reshape(-1, *x.shape[2:])
        return jax.random.permutation(key, x)
    return jax.tree.map(shuffled, data)
"""
# The third axis that a leaf is seen to have stays behind those that were made one: XLA merges the sorts of indices.
FIRSTS = {
    "jnp.swapaxes(x, 1, 2)": 0,
    "x.swapaxes(1, 2)": 0,
    "jnp.moveaxis(x, 3, 0)": 0,
    "jnp.swapaxes(x, 0, 1)": 1,
    "x.swapaxes(0, 1)": 1,
    "x * 2": 1,
}


@pytest.mark.parametrize(("first", "count"), FIRSTS.items())
def test_leaves_that_all_have_several_axes(first: str, count: int) -> None:
    code = LEAF.replace("FIRST", first)
    assert len(check_text(code.encode(), "m.py", Scope(("permutation-per-leaf",)))) == count


MAPPED_BEFORE = """
import functools
import jax
import jax.numpy as jnp

@jax.jit
def train(carry, data):
    def step(carry, unused, data):
        key, scale = carry

        def shuffled(x):
            x = jax.random.permutation(key, x)
            return jnp.reshape(x, (8, -1) + x.shape[1:])

        return carry, jax.tree_util.tree_map(shuffled, data)

    data = jax.tree_util.tree_map(lambda x: FIRST, data)
    data = jax.tree_util.tree_map(lambda x: jnp.reshape(x, (-1,) + x.shape[2:]), data)
    data = data.replace(reward=data.reward * 2)
    return jax.lax.scan(functools.partial(step, data=data), carry, (), length=4)
"""


@pytest.mark.parametrize(("first", "count"), [("jnp.swapaxes(x, 1, 2)", 0), ("jnp.swapaxes(x, 0, 1)", 1), ("x * 2", 1)])
def test_leaves_that_a_map_before_left_several_axes(first: str, count: int) -> None:
    """As compiled: of leaves of two axes XLA makes one sort of indices in both forms, on each target."""
    code = MAPPED_BEFORE.replace("FIRST", first)
    assert len(check_text(code.encode(), "m.py", Scope(("permutation-per-leaf",)))) == count
