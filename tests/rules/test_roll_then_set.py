"""roll-then-set: what is joined has the axes of what it is joined to."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ROLLED = """
import jax
import jax.numpy as jnp

@jax.jit
def before(dones, new):
    return {write}
"""


@pytest.mark.parametrize(
    ("write", "joined"),
    [
        ("jnp.roll(dones, 1, axis=0).at[0].set(False)", "[jnp.full_like(dones[:1], False), dones[:-1]]"),
        ("jnp.roll(dones, -2, axis=0).at[-2:].set(0.0)", "[dones[2:], jnp.full_like(dones[:2], 0.0)]"),
        ("jnp.roll(dones, 1, axis=0).at[0].set(new)", "[jnp.expand_dims(new, 0), dones[:-1]]"),
        ("jnp.roll(dones, -1, axis=0).at[-1:].set(new)", "[dones[1:], jnp.broadcast_to(new, dones[:1].shape)]"),
        ("jnp.roll(dones, 2, axis=0).at[:2].set(new)", "[jnp.broadcast_to(new, dones[:2].shape), dones[:-2]]"),
        ("jnp.roll(dones, 2, axis=0).at[0:2].set(new)", "[jnp.broadcast_to(new, dones[:2].shape), dones[:-2]]"),
        ("jnp.roll(dones, 2, axis=0).at[:2].set(new[-2:])", "[new[-2:], dones[:-2]]"),
        ("jnp.roll(dones, 1, axis=0).at[:1].set(new[-1:])", "[new[-1:], dones[:-1]]"),
        ("jnp.roll(dones, -1, axis=0).at[-1:].set(new[None])", "[dones[1:], new[None]]"),
    ],
)
def test_a_number_at_the_end_is_as_wide_as_the_rows_are(write: str, joined: str) -> None:
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text == f"jnp.concatenate({joined}): one kernel"


def test_without_an_axis_only_what_has_one_is_joined() -> None:
    """Of two axes, `jnp.roll(x, -1)` moves single elements from row to row, and a concatenate whole rows."""
    write = "jnp.roll(dones, -1).at[-1].set(0.0)"
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    assert ": one kernel, where the array has one axis" in found.suggestion.text
