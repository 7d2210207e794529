"""small-matmul: which products are with a small matrix of each element's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

HELPER = """
import jax.numpy as jnp

def rotation(angle):
    return {matrix}
"""
USES = """
import jax
import jax.numpy as jnp
from turns import rotation

def turned(angle, points, center):
    first = {product}
    return first, points @ rotation(angle)

def all_turned(angles, points, centers):
    return jax.vmap(turned)(angles, points, centers)
"""
TURN = "jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])"


@pytest.mark.parametrize(
    ("matrix", "product", "message"),
    [
        (TURN, "rotation(angle) @ points", "2 by 2 matrix of its own, here and 1 more"),
        (TURN, "points + center", "2 by 2 matrix of its own: "),
        ("jnp.array([[angle, 0, 0], [0, angle, 0], [0, 0, 1]])", "points + center", "3 by 3 matrix of its own: "),
        ("jnp.array([[0, 1], [1, 0]])", "points + center", None),
        ("jnp.array([[angle, 1, 0], [0, angle, 0]])", "points + center", None),
        ("jnp.outer(angle, angle)", "points + center", None),
    ],
)
def test_a_helper_of_another_file_makes_the_matrix(
    tmp_path: Path, matrix: str, product: str, message: str | None
) -> None:
    (tmp_path / "turns.py").write_text(HELPER.format(matrix=matrix))
    (tmp_path / "uses.py").write_text(USES.format(product=product))
    found = check_files(sorted(tmp_path.glob("*.py")), Scope(("small-matmul",))).findings
    assert [message in each.message for each in found] == ([True] if message else [])
