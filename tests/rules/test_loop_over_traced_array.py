"""loop-over-traced-array: rows of an array that Python goes through, where no turn needs another."""

from __future__ import annotations

from textwrap import indent

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = (
    "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef f(x, w, layers, n):\n    x, w = jnp.tanh(x), jnp.sin(w)\n"
)


def found(body: str) -> tuple[Finding, ...]:
    code = HEAD + indent(f"total, out = 0.0, []\n{body}\nreturn total, out\n", "    ")
    return check_text(code.encode(), "m.py", Scope(("loop-over-traced-array",)))


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for row in x:\n    out.append(jnp.sin(row))", id="put in a list"),
        pytest.param("for row in x:\n    total = total + jnp.sin(row)", id="added up"),
        pytest.param("for row in x:\n    total += jnp.sum(row)", id="added up in place"),
        pytest.param("for a, b in zip(x, w):\n    total = total + a * jnp.outer(b, b)", id="two arrays side by side"),
        pytest.param("for row in x:\n    y = jnp.sin(row)\n    out.append(y * y)", id="by a name"),
        pytest.param("for row in x:\n    out.append(jnp.sin(row))\n    total += jnp.sum(row)", id="both"),
    ],
)
def test_the_same_work_on_every_row_is_found(loop: str) -> None:
    (finding,) = found(loop)
    assert finding.pair == 1
    assert finding.suggestion is not None
    assert "jax.vmap of what a turn makes, over x" in finding.suggestion.text
    assert ("sum" in finding.suggestion.text) == ("total" in loop)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for row in x:\n    total = jnp.sin(total) + jnp.sum(row)", id="a turn needs the one before"),
        pytest.param("for row in x:\n    total = total + jnp.sum(row) * total", id="the sum is read in between"),
        pytest.param("for row in x:\n    out.append(jnp.sin(row) + len(out))", id="the list is read in between"),
        pytest.param("last = x\nfor row in x:\n    out.append(last * jnp.cos(row))\n    last = row", id="the last row"),
        pytest.param("for row in x:\n    if n:\n        out.append(jnp.sin(row))", id="a branch of Python"),
        pytest.param("for row in x:\n    out.append(float(jnp.sum(row)))", id="a number of Python"),
        pytest.param("for row in x:\n    print(jnp.sum(row))", id="nothing is kept"),
        pytest.param("for layer in layers:\n    out.append(jnp.sin(layer))", id="perhaps a list"),
        pytest.param("for a, b in zip(x, layers):\n    out.append(jnp.sin(a) * b)", id="one of them perhaps a list"),
        pytest.param("few = jnp.array([n, 2.0])\nfor row in few:\n    out.append(jnp.sin(row))", id="two numbers"),
    ],
)
def test_turns_that_cannot_be_made_at_once_are_left_alone(loop: str) -> None:
    assert found(loop) == ()


def test_host_code_goes_through_rows_as_it_likes() -> None:
    code = (
        HEAD.replace("@jax.jit\ndef f(", "def main(")
        + "    out = []\n    for row in x:\n        out.append(jnp.sin(row))\n"
    )
    assert check_text(code.encode(), "m.py", Scope(("loop-over-traced-array",))) == ()


@pytest.mark.parametrize(("names", "count"), [("a, b, c = ", 0), ("rows = ", 1)])
def test_a_stack_that_is_taken_apart_again_is_none(names: str, count: int) -> None:
    assert len(found(f"{names}jnp.stack([-row * jnp.sin(w) for row in x])")) == count
