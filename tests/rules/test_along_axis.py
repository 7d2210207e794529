"""vmapped-dynamic-slice: windows along one axis, by the functions of jax.lax that are named for it."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


def told(body: str) -> list[str]:
    head = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n"
    code = f"{head}@jax.jit\ndef f(x, xs, u, i):\n    return {body}\n"
    found = check_text(code.encode(), "m.py", Scope(("vmapped-dynamic-slice",)))
    return [one.suggestion.text.split("; ")[0] for one in found if one.suggestion is not None]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("jax.vmap(lambda k: lax.dynamic_slice_in_dim(x, k, 6))(i)", "x[k + jnp.arange(6)], one gather"),
        ("jax.vmap(lambda k: lax.dynamic_slice_in_dim(x, k, 6, axis=1))(i)", "x[:, k + jnp.arange(6)], one gather"),
        (
            "jax.vmap(lambda y, v, k: lax.dynamic_update_slice_in_dim(y, v, k, axis=0))(xs, u, i)",
            "y.at[k + jnp.arange(v.shape[0])].set(v)",
        ),
        ("jax.vmap(lambda y, v, k: lax.dynamic_update_index_in_dim(y, v, k, 0))(xs, u, i)", "y.at[k].set(v)"),
        ("jax.vmap(lax.dynamic_slice_in_dim, (None, 0, None))(x, i, 6)", "x[start + jnp.arange(n)], one gather"),
    ],
)
def test_a_window_of_one_axis_is_an_index(body: str, instead: str) -> None:
    assert told(body) == [instead]


@pytest.mark.parametrize(
    "body",
    [
        "jax.vmap(lambda y, k: lax.dynamic_slice_in_dim(y, k, 6))(xs, i)",
        "jax.vmap(lambda k: lax.dynamic_slice_in_dim(x, k, 1))(i)",
        "jax.vmap(lambda y: lax.dynamic_update_index_in_dim(y, u, i, 0))(xs)",
        "jax.vmap(lax.dynamic_slice_in_dim, (0, 0, None))(xs, i, 6)",
    ],
    ids=["of each its own", "one element", "one place for all", "mapped itself, of each its own"],
)
def test_what_a_tpu_makes_no_loop_of_is_left_alone(body: str) -> None:
    assert told(body) == []


def test_what_is_spread_over_devices_is_moved_by_each_on_its_own() -> None:
    put = "jax.vmap(lambda y, v, k: lax.dynamic_update_slice_in_dim(y, v, k, axis=0))(xs, u, {})"
    assert told(put.format("i"))
    assert told(put.format("shard_by_stage(i)")) == []
