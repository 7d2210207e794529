"""varying-length-in-loop: what is written instead, by what the hits are looked up in."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


@pytest.mark.parametrize(("made", "begins"), [("np.zeros", "numpy's own"), ("jnp.zeros", "a mask")])
def test_what_goes_into_an_array_of_numpy_is_asked_of_numpy(made: str, begins: str) -> None:
    code = f"""
import jax.numpy as jnp
import numpy as np

def grouped(sizes, chosen):
    sets = {made}(len(sizes))
    for size in range(16):
        found = jnp.where(sizes == size)[0]
        print(sets[found], chosen[found])
    return sets
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("varying-length-in-loop",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(begins)
