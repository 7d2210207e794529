"""What explain says of an array that a loop of Python writes piece by piece, whatever goes into a piece."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp

def each_by_the_last(rows, force):
    for i in range(1, 8):
        rows = rows.at[i].set(rows[i - 1] * 0.5 + jnp.sin(force[i]))
    return rows * 2

def joined(rows, force):
    found = [rows[0]]
    for i in range(1, 8):
        found.append(found[-1] * 0.5 + jnp.sin(force[i]))
    return jnp.stack(found) * 2

def moved(entities, player):
    def of_one(entities, player):
        hits = jnp.array(0)
        for i in range(8):
            row = entities[i]
            hit = (row[0] == player) & (row[1] > 0)
            entities = entities.at[i].set(row * (1 - hit))
            hits = hits + hit
        return entities, hits
    return jax.vmap(of_one)(entities, player)
"""
BAD = {"each_by_the_last(f32[8,4096], f32[8,4096])": "tc", "moved(i32[1024,8,5], i32[1024])": "gtc"}
GOOD = "joined(f32[8,4096], f32[8,4096])"
LETTERS = {"h100": "g", "v5e": "t", "cpu": "c"}


@pytest.mark.parametrize("target", LETTERS)
def test_pieces_are_told_to_be_joined_once(target: str, tmp_path: Path) -> None:
    reports = compilers.explained(compilers.written(CODE, [*BAD, GOOD], tmp_path), target, all_rules())
    for call, where in BAD.items():
        advice = {one.advice for one in reports[call].barriers if one.rule == "chained-at-set"}
        assert any("jnp.stack" in one for one in advice) == (LETTERS[target] in where), (call, target)
    assert "chained-at-set" not in compilers.told(reports[GOOD])
