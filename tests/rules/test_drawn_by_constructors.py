"""A draw in a method that constructors alone call is made once."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax

class Grid:
    def sampled(self, key, p):
        return jax.random.choice(key, 8, p=p)

class Metric:
    def __init__(self, env, key, p):
        self.test_set = {kept}

    def update(self, env, key, p):
        return {updated}
"""


@pytest.mark.parametrize(
    ("kept", "updated", "count"),
    [
        ("env.sampled(key, p)", "p", 0),
        ("env.sampled(key, p)", "env.sampled(key, p)", 1),
        ("[env.sampled(k, p) for k in key]", "p", 1),  # a draw for each of many
        ("p", "p", 1),  # a user may call it
    ],
)
def test_what_constructors_alone_draw_is_drawn_once(kept: str, updated: str, count: int) -> None:
    code = CODE.format(kept=kept, updated=updated)
    assert len(check_text(code.encode(), "m.py", Scope(("choice-with-probabilities",)))) == count
