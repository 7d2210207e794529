"""grid-per-element: one write leaves what the reduction over all the arrays leaves."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

@jax.jit
def joined(cells, grid):
    def mark(cell, grid):
        return {write}
    return jax.vmap(mark, in_axes=(0, None))(cells, grid).{reduction}(axis=0)
"""


@pytest.mark.parametrize(
    ("write", "reduction", "advice"),
    [
        ("grid.at[cell].set(True)", "any", "`grid.at[places].set(True)`"),
        ("grid.at[cell].max(cell > 3)", "any", "`grid.at[places].max(values)`, both of bools: a `set` keeps any of"),
        # What one element sets to False another may have set to True: neighbours of walls, of an inflated map.
        ("grid.at[cell].set(grid[cell])", "any", "`grid.at[places].max(values)`, both of bools"),
        ("grid.at[cell].set(grid[cell])", "max", "`grid.at[places].max(values)`"),
        ("grid.at[cell].add(2.0)", "sum", "`grid.at[places].add(values)`, where `grid` is all zeros"),
        ("jnp.zeros(8).at[cell].add(2.0)", "sum", "`x.at[places].add(values)`"),
    ],
)
def test_one_write_leaves_what_is_read_of_all_arrays(write: str, reduction: str, advice: str) -> None:
    code = CODE.format(write=write, reduction=reduction)
    (found,) = check_text(code.encode(), "m.py", Scope(("grid-per-element",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(f"the places and values of all elements at once, then one {advice}")
    assert advice.endswith(("of", "bools")) or found.suggestion.text.endswith(advice)
