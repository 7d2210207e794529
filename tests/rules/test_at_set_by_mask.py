"""at-set-by-mask: which of the values stands where, of masks of one axis and of tables."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp
import numpy as np

@jax.jit
def placed(x, values):
    m = np.tri(4, 3, dtype=bool)
    return jnp.sin(x).at[{place}].set(values)
"""


@pytest.mark.parametrize(
    ("place", "advice"),
    [
        ("m.T", "jnp.where(m.T, values[np.cumsum(m.T).reshape(m.T.shape) - 1], jnp.sin(x))"),
        ("m[0]", "jnp.where(m[0], values[np.cumsum(mask) - 1], jnp.sin(x)), the mask with a `[:, None]`"),
    ],
)
def test_numpy_counts_through_all_of_a_table(place: str, advice: str) -> None:
    (found,) = check_text(CODE.format(place=place).encode(), "m.py", Scope(("at-set-by-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(advice)


def test_what_is_advised_of_a_table_is_the_write() -> None:
    mask = np.tri(4, 3, dtype=bool).T
    x, values = jnp.zeros((3, 4)), jnp.arange(1.0, 1.0 + mask.sum())
    places = np.cumsum(mask).reshape(mask.shape) - 1
    np.testing.assert_array_equal(jnp.where(mask, values[places], x), x.at[mask].set(values))
