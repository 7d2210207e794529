"""Writes to one array behind Python's `if`s: chained-at-set and boundary-writes see one path through them."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("boundary-writes", "chained-at-set"))
HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n@jax.jit\ndef f(x, i, j, k, a, b, c, d, n):\n"


def found(body: str, head: str = HEAD) -> list[Finding]:
    code = head + indent(dedent(body), "    ")
    return list(check_text(code.encode(), "m.py", SCOPE))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x = x.at[i].set(a)\nif c:\n    x = x.at[j].set(b)\nreturn x", id="one more write in a branch"),
        pytest.param("if c:\n    x = x.at[i].set(a)\nx = x.at[j].set(b)\nreturn x", id="one before in a branch"),
        pytest.param(
            "x = 2 * x\nif c:\n    x = x.at[i].set(a)\nif d:\n    x = x.at[j].set(b)\nreturn x", id="two branches"
        ),
        pytest.param("x = x.at[i].set(a)\nif c:\n    return x.at[j].set(b)\nreturn x", id="a branch that returns"),
        pytest.param(
            "x = x.at[i].set(a)\nif c:\n    if d:\n        x = x.at[j].set(b)\nreturn x", id="an if inside another"
        ),
        pytest.param("if c:\n    x = x.at[i].set(a)\nif c:\n    x = x.at[j].set(b)\nreturn x", id="asked twice"),
    ],
)
def test_writes_on_one_path_are_a_chain(body: str) -> None:
    (finding,) = found(body)
    assert finding.rule == "chained-at-set"
    assert "2 times in a row on one path" in finding.message
    assert finding.suggestion is not None
    assert finding.suggestion.text.startswith("behind the `if`s")
    assert not finding.suggestion.edits


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if c:\n    x = x.at[i].set(a)\nelse:\n    x = x.at[j].set(b)\nreturn x", id="either or"),
        pytest.param(
            "if c:\n    x = x.at[i].set(a)\nelif d:\n    x = x.at[j].set(b)\nelse:\n    x = x.at[k].set(b)\nreturn x",
            id="one of three",
        ),
        pytest.param("if c:\n    x = x.at[i].set(a)\nif not c:\n    x = x.at[j].set(b)\nreturn x", id="c, and not c"),
        pytest.param(
            "if n is None:\n    x = x.at[i].set(a)\nif n is not None:\n    x = x.at[j].set(b)\nreturn x",
            id="None, and not None",
        ),
        pytest.param(
            "if n == 'l':\n    x = x.at[i].set(a)\nif n == 'r':\n    x = x.at[j].set(b)\nreturn x",
            id="one of its values",
        ),
        pytest.param("if c:\n    return x.at[i].set(a)\nreturn x.at[j].set(b)", id="one of them returns"),
        pytest.param(
            "x = x.at[i].set(a)\nif c:\n    x = jnp.sort(x)\nx = x.at[j].set(b)\nreturn x", id="a sort in between"
        ),
        pytest.param(
            "x = x.at[i].set(a)\ny = x.sum()\nif c:\n    x = x.at[j].set(b)\nreturn x, y", id="read in between"
        ),
        pytest.param(
            "x = x.at[i].set(a)\nif c:\n    y = x.at[j].set(b)\n    x = x + y\nreturn x", id="needed beside the second"
        ),
        pytest.param(
            "x = x.at[i].set(a)\nf = lambda: x\nif c:\n    x = x.at[j].set(b)\nreturn x, f", id="kept by a closure"
        ),
        pytest.param("x = x.at[i].set(a)\nreturn lax.cond(c, lambda x: x.at[j].set(b), lambda x: x, x)", id="lax.cond"),
        pytest.param("try:\n    x = x.at[i].set(a)\nexcept TypeError:\n    pass\nreturn x.at[j].set(b)", id="a try"),
    ],
)
def test_writes_of_which_a_path_has_one_alone_are_none(body: str) -> None:
    assert found(body) == []


def test_of_branches_that_end_one_path_each_the_last_is_told_of() -> None:
    body = """
    d = 2 * x
    if a is not None:
        d = d.at[0].set(a)
    else:
        d = d.at[0].set(c)
    if b is not None:
        d = d.at[-1].set(b)
    else:
        d = d.at[-1].set(c)
    return d
    """
    assert [(f.rule, f.location.line, f.location.end_line) for f in found(body)] == [("boundary-writes", 12, 16)]


def test_a_branch_that_returns_is_another_path() -> None:
    assert len(found("x = x.at[i].set(a)\nif c:\n    return x\nreturn x.at[j].set(b)")) == 1


def test_a_branch_goes_on_from_the_one_that_asked_the_same() -> None:
    """`else` of the first and the last `if` are never both taken."""
    body = """
    if c:
        x = x.at[i].set(a)
    else:
        x = x.at[k].set(b)
    if c:
        x = x.at[j].set(b)
    return x
    """
    assert [(f.location.line, f.location.end_line) for f in found(body)] == [(9, 13)]


def test_an_if_on_what_is_in_an_array_is_no_trace() -> None:
    head = "import jax.numpy as jnp\nfrom jax import lax\n\ndef f(x, i, j, a, b):\n"
    body = "x = jnp.sin(x).at[i].set(a)\nif {}:\n    x = x.at[j].set(b)\nreturn x"
    assert found(body.format("jnp.any(x > 0)"), head) == []
    assert len(found(body.format("len(j) > 0"), head)) == 1


@pytest.mark.parametrize(
    ("places", "read", "count"),
    [("jnp.nonzero(c, size=4)[0]", "k", 0), ("j", "jnp.concatenate([j, k])[:-1]", 0), ("j", "k", 1)],
)
def test_what_one_path_may_have_written_no_value_on_it_is_made_of_before(places: str, read: str, count: int) -> None:
    """Of numbers a choice can be told what the last is made of; where arrays meet nobody can."""
    before = f"i = {places}\nk = {read}\nif a is not None:\n    x = x.at[i].set(b)\n"
    body = f"{before}return x.at[k].set(jnp.where(d, 0.0, x[k]))"
    assert len(found(body)) == count


def test_what_the_next_turn_of_a_loop_reads_these_writes_have_not_left() -> None:
    body = "for k in n:\n    row = x[:, 0]\n    x = x.at[c].mul(1 - a)\n    x = x.at[c].add(row * a)\nreturn x"
    assert len(found(body)) == 1
