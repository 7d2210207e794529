"""tree-cut-in-loop: which loops cut a tree into its elements, which trees, and what for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import numpy as np

@jax.jit
def rollout(x):
    return {{"x": x}}

def collected(x, renderer, n):
    {made}
    frames = []
    for i in {over}:
        {body}
    return frames
"""
CUT = "jax.tree.map(lambda leaf: leaf[i], states)"


def found(body: str = f"frames.append({CUT})", made: str = "states = rollout(x)", over: str = "range(n)") -> int:
    code = CODE.format(made=made, over=over, body=body.replace("\n", "\n        "))
    return len(check_text(code.encode(), "m.py", Scope(("tree-cut-in-loop",))))


@pytest.mark.parametrize(("over", "count"), [("range(n)", 1), ("np.arange(0, n, 2)", 1), ("range(3)", 0), ("x", 0)])
def test_a_loop_counts_by_python_or_by_numpy(over: str, count: int) -> None:
    assert found(over=over) == count


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"frames.append(renderer.render({CUT}))", 1),
        (f"data = {CUT}\nrenderer.update_scene(data)\nframes.append(renderer.render())", 1),
        (f"frames.append(rollout({CUT}))", 0),
    ],
)
def test_a_part_is_kept_or_drawn(body: str, count: int) -> None:
    assert found(body) == count


@pytest.mark.parametrize(
    ("tree", "count"), [("states.data", 1), ("states['x']", 1), ("states[0]", 0), ("states[i]", 0), ("read(n)", 0)]
)
def test_a_field_of_what_is_there_is_cut_as_well(tree: str, count: int) -> None:
    assert found(f"frames.append({CUT.replace('states', tree)})") == count


@pytest.mark.parametrize("made", ["states = jax.device_get(rollout(x))", "states = x"])
def test_what_is_fetched_or_of_nobody_knows_where_is_left_alone(made: str) -> None:
    assert found(made=made) == 0
