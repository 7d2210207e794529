"""The fix of a window that each element of a vmap cuts at a place of its own: the index takes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fixes
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlint.source.check import check_files, world_of
from fusionlint.source.fixing import fix_files
from fusionlint.source.scope import Scope

SCOPE = Scope(("vmapped-dynamic-slice",))
HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n\n"
CUT = HEAD + "def cut(x, start):\n    return lax.dynamic_slice({})\n\n\n@jax.jit\ndef run(x, starts):\n"
CUT += "    return jax.vmap(cut, in_axes=(None, 0))(x, starts)\n"


def fixed(code: str) -> str:
    return fixes.fixed("vmapped-dynamic-slice", code)


def result(code: str, *given: object) -> Any:
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax}
    exec(code, names)
    return names["run"](*given)


@pytest.mark.parametrize(
    ("axes", "cut"),
    [
        (1, "x, (start[0],), (4,)"),
        (1, "x, start[:1], (4,)"),
        (2, "x, (start[0], start[1]), (4, 3)"),
        (2, "x, start, (4, 2 * 2 - 1)"),
        (2, "x, (jnp.maximum(0, start[0]), jnp.asarray(start[1])), (4, 3)"),
        (3, "x, (start[0], start[1], 0), (4, 3, 2)"),
        (3, "x, (0, start[0], start[1]), (x.shape[0], 4, 3)"),
        (3, "x, (start[0], start[1], jnp.int32(0)), (4, 3, x.shape[2])"),
    ],
)
def test_the_index_takes_what_the_window_does_at_the_edge_as_well(axes: int, cut: str) -> None:
    before = CUT.format(cut)
    after = fixed(before)
    x, starts = np.random.default_rng(0).random((7,) * axes), np.arange(20, dtype=np.int32).reshape(10, 2)
    if "start[:1]" in cut:
        assert after == before  # an index of all places at once is no window
        return
    assert "dynamic_slice" not in after
    np.testing.assert_array_equal(result(before, x, starts), result(after, x, starts))


@pytest.mark.parametrize(
    "cut",
    [
        "x, start, x.shape",  # along how many axes?
        "x, (start[0], 0, start[1]), (4, 3, 3)",  # the indexed axes would come first
        "x, (start[0], start[1]), (4, 1)",
        "x, (start[0] - 2, start[1]), (4, 3)",  # a slice counts from the end where that is below zero
        "x, (start[0], start[1], start[2]), (4, 3, 3)",
        "jnp.pad(x, 2), (start[0], start[1]), (4, 3)",
        "x, (start[0],  # of the first axis\n        start[1]), (4, 3)",
    ],
)
def test_where_an_index_would_be_another_thing_or_hard_to_read_there_is_advice(cut: str) -> None:
    assert fixed(CUT.format(cut)) == CUT.format(cut)


def test_what_another_function_or_an_object_has_may_be_numpys() -> None:
    code = HEAD + "@jax.jit\ndef of(starts):\n    return outer(TABLE, starts)\n\n\ndef outer(x, starts):\n"
    code += "    return jax.vmap(lambda start: lax.dynamic_slice(x, (start,), (4,)))(starts)\n"
    assert fixed(code) == code
    code = code.replace("slice(x", "slice(y").replace(
        "    return jax.vmap", "    y = jnp.pad(x, 2)\n    return jax.vmap"
    )
    assert "y[jnp.clip(start, 0" in fixed(code)


def test_the_lines_before_are_in_the_block_of_the_statement_and_their_names_are_free() -> None:
    code = CUT.replace("    return lax", "    rows = 2\n    if x.ndim:\n        return rows * lax")
    after = fixed(code.format("x, start, (4, 3)"))
    assert "    if x.ndim:\n        rows_2 = jnp.clip(start[0], 0, x.shape[0] - 4) + jnp.arange(4)\n" in after
    assert "        return rows * x[rows_2[:, None], columns]\n" in after


def test_sizes_that_all_files_have_by_a_star_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text("SIZES = (4, 3)\n")
    (tmp_path / "m.py").write_text("from sizes import *\n" + CUT.format("x, start, SIZES"))
    paths = ["m.py", "sizes.py"]
    (after,) = fix_files(check_files(paths, SCOPE), SCOPE, world_of(paths), unsafe=True).files
    assert "x.shape[1] - SIZES[1]) + jnp.arange(SIZES[1])\n" in after.after.decode()
