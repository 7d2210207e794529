"""A cache that a layer hands back longer, and the loop, in whatever file, that hands it round."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

LAYER = """
import jax.numpy as jnp

def attention(q, k, v, cache):
    k = jnp.concatenate([{old}, k], axis=1)
    {more}
    return q @ k.mT @ v, {back}
"""
LOOP = """
import {library}
from layer import attention

def {name}(q, k, v, cache, count):
    for _ in range(count):
        q, cache = attention(q, k, v, {handed})
    return q
"""


def _found(folder: Path, layer: str, loop: str) -> int:
    (folder / "layer.py").write_text(layer)
    (folder / "loop.py").write_text(loop)
    return len(check_files(sorted(folder.glob("*.py")), Scope(("array-grown-in-loop",))).findings)


@pytest.mark.parametrize(
    ("old", "more", "back", "number"),
    [
        ("cache[0]", "", "(k, v)", 1),
        ('cache["k"]', "", '{"k": k}', 1),
        ("cache.k[None, ...]", "kept = jnp.stack([k, v])", "Cache(kept)", 1),
        ("cache[0][:, 1:]", "", "(k, v)", 0),  # a window
        ("cache[0]", "k = k[:, -64:]", "(k, v)", 0),
        ("cache[0]", "", "v", 0),  # only read
        ("made(cache)", "", "(k, v)", 0),  # of any length
        ("q", "", "(k, v)", 0),
    ],
)
def test_what_is_longer_after_every_call(tmp_path: Path, old: str, more: str, back: str, number: int) -> None:
    layer = LAYER.format(old=old, more=more or "pass", back=back)
    assert _found(tmp_path, layer, LOOP.format(library="jax", name="generate", handed="cache")) == number


@pytest.mark.parametrize(
    ("library", "name", "handed", "number"),
    [
        ("jax", "generate", "cache", 1),
        ("jax", "main", "cache", 1),
        ("jax", "sample_tokens", "cache=cache", 1),
        ("torch", "generate", "cache", 0),  # of another model
        ("jax", "forward", "cache", 0),  # its layers, perhaps
        ("jax", "generate", "None", 0),
    ],
)
def test_the_loop_makes_one_token_after_the_other(
    tmp_path: Path, library: str, name: str, handed: str, number: int
) -> None:
    layer = LAYER.format(old="cache[0]", more="pass", back="(k, v)")
    assert _found(tmp_path, layer, LOOP.format(library=library, name=name, handed=handed)) == number


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("self.x = jnp.append(self.x, new(self.x))", 1),
        ("self.model.x = jnp.vstack([self.model.x, new])", 0),  # its own methods take all of it
        ("self.x = jnp.concatenate([self.x[1:], new])", 0),
        ("self.x = jnp.append(self.x, new)\n            self.x = self.x[-8:]", 0),
        ("if new:\n                self.x = jnp.append(self.x, new)", 0),
        ("self.x = jnp.append(self.y, new)", 0),
    ],
)
def test_what_an_object_keeps_is_longer_in_every_iteration(tmp_path: Path, body: str, number: int) -> None:
    code = "import jax.numpy as jnp\nclass Search:\n    def run(self, n, new):\n        for _ in range(n):\n"
    assert _found(tmp_path, f"{code}            {body}\n", "") == number
