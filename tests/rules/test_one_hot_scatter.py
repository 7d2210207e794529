"""one-hot-scatter: what a module keeps, and a one-hot that is added to it."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import flax.linen as nn
import jax
import jax.numpy as jnp

class Attention(nn.Module):
    @nn.compact
    def __call__(self, key, n):
        cached = self.variable("cache", "key", jnp.zeros, (4, n))
        place = self.variable("cache", "place", lambda: jnp.array(0))
        hot = jax.nn.one_hot(place.value, n)
        wide = jnp.expand_dims(jnp.expand_dims(hot, 1), axis=1)
        hot_too = place.value == jnp.arange(n)
        kept = {added}
        cached.value = kept
        return kept
"""


@pytest.mark.parametrize(
    ("added", "count"),
    [
        ("cached.value + key * hot", 1),
        ("cached.value + hot * key", 1),
        ("cached.value + key * wide", 1),
        ("cached.value + key * place.value", 0),
        ("cached.value - key * hot", 0),
        ("key + cached.value * hot", 0),
        ("key.value + key * hot", 0),
        ("jnp.where(hot_too, key, cached.value)", 0),
    ],
)
def test_a_one_hot_added_to_a_variable_goes_through_all_of_it(added: str, count: int) -> None:
    assert len(check_text(CODE.format(added=added).encode(), "m.py", Scope(("one-hot-scatter",)))) == count


def test_the_place_is_said() -> None:
    (found,) = check_text(CODE.format(added="cached.value + key * hot").encode(), "m.py", Scope(("one-hot-scatter",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("jax.lax.dynamic_update_slice_in_dim(cached.value, key, place.value, axis)")


def test_a_place_below_0_is_left_out_by_a_one_hot_and_counted_from_the_end_by_at() -> None:
    code = """
import jax
import jax.numpy as jnp

@jax.jit
def aligned(mask, places):
    moved = jax.nn.one_hot(places, mask.shape[0])
    return jnp.einsum("bn,nm->bm", mask, moved)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("one-hot-scatter",)))
    assert found.suggestion is not None
    assert "places below 0, for which a one-hot has no 1, sent past the end" in found.suggestion.text
