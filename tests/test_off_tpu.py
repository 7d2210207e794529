"""Of a file that imports what has kernels for CUDA alone, or turns 64 bits on, nothing is said of a TPU."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

WINDOWS = """
import jax

def windows(x, starts):
    return jax.vmap(lambda row, start: jax.lax.dynamic_slice(row, (start,), (16,)))(x, starts)
"""
CLEAN = """
import jax, jax.numpy as jnp

def clean(x):
    return jnp.select([x > 0, x < 0], [x, -x], 0.0)
"""


def targets(code: str, rule: str) -> list[tuple[str, ...]]:
    return [finding.targets for finding in check_text(code.encode(), "m.py", Scope((rule,)))]


@pytest.mark.parametrize(
    ("imported", "count"),
    [
        ("import numpy as np\n", 1),
        ("from jax_finufft import nufft2\n", 0),
        ("import jax_triton as jt\n", 0),
        ("from mine.jax_triton import kernels\n", 1),
        ("def later():\n    import cupy\n", 1),
        ("import jax\njax.config.update('jax_enable_x64', True)\noutput = 1\n", 0),
        ('from jax import config\nconfig.update(\n    "jax_enable_x64", True)\n', 0),
        ("import jax\njax.config.update('jax_enable_x64', False)\n", 1),
        ("import jax\ndef later():\n    jax.config.update('jax_enable_x64', True)\n", 1),
        ("import jax\njax.config.update('jax_enable_x64', True)\non_tpu = jax.default_backend() == 'tpu'\n", 1),
    ],
)
def test_what_a_tpu_alone_is_harmed_by(imported: str, count: int) -> None:
    assert len(targets(imported + WINDOWS, "vmapped-dynamic-slice")) == count


def test_what_other_hardware_is_harmed_by_is_told_of_that() -> None:
    (told,) = targets(CLEAN, "select-or-piecewise")
    assert {"h100", "v5e"} <= {*told}
    (finding,) = check_text(("import jax_triton\n" + CLEAN).encode(), "m.py", Scope(("select-or-piecewise",)))
    assert finding.targets == tuple(one for one in told if one != "v5e")
    assert all(each.target != "v5e" for each in finding.evidence)
