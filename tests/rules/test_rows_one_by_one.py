"""rows-one-by-one: what a loop's number may say, and what has to be told by hand all the same."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

def made(f, key, x: jax.Array, rows, labels, cells, n):
    first, second, last = [], [], x[0]
    for i in range(n):
        {turn}
    return {joined}
"""


def is_told(turn: str, joined: str = "jnp.stack(first)") -> bool:
    code = CODE.format(turn=turn.replace("\n", "\n        "), joined=joined)
    return bool(check_text(code.encode(), "m.py", Scope(("rows-one-by-one",))))


@pytest.mark.parametrize(
    "turn",
    [
        "first.append(jnp.sort(x[i]))",
        "row = x[i]\nfirst.append(jnp.cumsum(row) * labels)",
        "row = jnp.where(labels == i, x[0], 0.0)\nrow = jnp.sort(row)\nfirst.append(row)",
        "first.append(jax.jvp(f, (x,), (jnp.zeros(n).at[i].set(1.0),))[1])",
        "first.append(jnp.sort(rows[i, 0] * rows.shape[0] + rows[i][0]))",
        "first.append(jnp.cumsum((labels == i) & (jnp.arange(len(labels)) < 5)))",
        "first.append(jnp.argsort(x[i] + jax.random.normal(jax.random.fold_in(key, i))))",
        "a, b = jnp.linalg.eigh(x[i])\nfirst.append(a)",
    ],
)
def test_a_number_says_which_part_is_worked_on(turn: str) -> None:
    assert is_told(turn)


def test_what_goes_into_two_lists_is_told_once() -> None:
    turn = "row = jnp.sort(x[i])\nfirst.append(row)\nsecond.append(row[0])"
    assert is_told(turn, "jnp.stack(first), jnp.array(second)")


@pytest.mark.parametrize(
    "turn",
    [
        "first.append(labels[i] * x[i] @ x[i])",  # nothing that XLA does not put together
        "first.append(jnp.sort(cells[i]))",  # perhaps a list
        "first.append(jnp.sort(x[i, :i]))",  # of another length each time
        "first.append(jnp.sort(x[i]) * i)",  # a number as any
        "first.append(jnp.sort(x[i + 1]))",
        "last = jnp.sort(last + x[i])\nfirst.append(last)",
        "if i > 2:\n    first.append(jnp.sort(x[i]))",
        "first.append(jnp.sort(x[i]) if i == 0 else x[i])",
        "first.append(f(jnp.sort(x[i])))",  # whatever that is
        "first.append(float(jnp.sort(x[i])[0]))",
    ],
)
def test_what_one_map_may_not_do_is_left_alone(turn: str) -> None:
    assert not is_told(turn)


def test_a_range_may_begin_anywhere() -> None:
    code = CODE.format(turn="first.append(jnp.sort(x[i]))", joined="jnp.stack(first)").replace(
        "range(n)", "range(1, n)"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("rows-one-by-one",)))
    assert found.suggestion is not None
    assert found.suggestion.text.endswith("over jnp.arange(1, n)")


def test_a_list_that_stays_one_is_left_alone() -> None:
    assert not is_told("first.append(jnp.sort(x[i]))", "first")


@pytest.mark.parametrize(("module", "count"), [("jnp", 1), ("jnp if on_device else np", 0)])
def test_nothing_is_mapped_where_numpy_may_run_the_same_lines(module: str, count: int) -> None:
    code = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
    code += f"def moved(field, shift, on_device):\n    xp = {module}\n"
    code += "    parts = [xp.fft.irfftn(xp.fft.rfftn(field[..., d]) * shift) for d in range(field.shape[-1])]\n"
    code += "    return xp.stack(parts, axis=-1)\n\nmapped = jax.vmap(moved, (0, None, None))\n"
    assert len(check_text(code.encode(), "m.py", Scope(("rows-one-by-one",)))) == count


@pytest.mark.parametrize(("made", "count"), [("one_hot(x[:, i], sizes[i])", 0), ("one_hot(x[:, i] % sizes[i], 8)", 1)])
def test_rows_that_a_trace_has_to_know_are_numbers_of_python(made: str, count: int) -> None:
    code = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef encoded(x: jax.Array, sizes):\n"
    code += f"    return jnp.concatenate([jax.nn.{made} for i in range(sizes.shape[0])], axis=1)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("rows-one-by-one",)))) == count


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("low <= x < high", 0),
        ("row[0] > 0", 0),
        ("row.shape[0] > 2", 1),
        ("len(row) > 2", 1),
        ("high > 2", 1),
    ],
)
def test_what_python_asks_of_a_row_no_trace_knows(test: str, count: int) -> None:
    code = f"""
import jax.numpy as jnp

def score(row, low, high):
    x, y = row
    if {test}:
        return jnp.sort(row)
    return row

def scores(points, low, high):
    found = []
    for i in range(points.shape[0]):
        found.append(score(points[i], low, high))
    return jnp.stack(found)
"""
    assert len(check_text(code.encode(), "m.py", Scope(("rows-one-by-one",)))) == count
