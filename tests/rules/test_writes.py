"""columns-by-at-set and chained-at-set: what their pages have no room for."""

from __future__ import annotations

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("chained-at-set", "columns-by-at-set"))
HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\n"


def found(code: str) -> list[Finding]:
    return list(check_text((HEAD + code).encode(), "m.py", SCOPE))


def rules(code: str) -> list[str]:
    return [f.rule for f in found(code)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return x.at[i].set(1)", id="one write"),
        pytest.param("x = x.at[i].set(1)\n    return x.sum(), x.at[j].set(2)", id="read in between"),
        pytest.param("y = x.at[i].set(1)\n    return y, y.at[j].set(2)", id="both are returned"),
        pytest.param("y = x.at[i].set(1)\n    f = lambda: y\n    return f, y.at[j].set(2)", id="kept by a closure"),
        pytest.param("return x.at[i].set(1), x.at[j].set(2)", id="two results"),
        pytest.param(
            "x = x.at[i].set(1)\n    x = jnp.sort(x)\n    return x.at[j].set(2)", id="something else in between"
        ),
        pytest.param("x = x.at[i].set(1)\n    return x.at[j].set(x.max())", id="all of it is needed"),
        pytest.param("return x.at[x > 0].set(1).at[x < i].set(2)", id="masks"),
        pytest.param("return x.at[i].get() + x.at[j].get()", id="reads"),
        pytest.param(
            "y = x.at[i].set(1)\n    v = jnp.where(c, y[i], 0)\n    return v.sum(), y.at[j].set(v)",
            id="a part of it is needed elsewhere under a name",
        ),
        pytest.param(
            "y = x.at[i].set(1)\n    v = jnp.sin(y)\n    return y.at[j].set(v[0])", id="all of it under a name"
        ),
        pytest.param(
            "y = x.at[i].set(1)\n    v = y[j] + 1\n    return y.at[j].set(v)", id="what the place before it may be"
        ),
        pytest.param("x.at[i] = 1\n    x.at[j] = 2\n    return x", id="another library's at"),
        pytest.param("return x.at(i).set(1).at(j).set(2)", id="a method called at"),
        pytest.param("return jnp.zeros(3).at[0].set(1).at[1].set(-2.0)", id="folded"),
        pytest.param("for _ in range(9):\n        x = g(x).at[0].set(0.0)\n    return x", id="steps in time"),
        pytest.param("return x.at[jnp.diag_indices(3)].add(c).at[jnp.tril_indices(3)].add(c)", id="unlike places"),
    ],
)
def test_chains_that_are_none_are_quiet(body: str) -> None:
    assert rules(f"@jax.jit\ndef f(x, i, j, c):\n    {body}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return x.at[i].set(1).at[j].set(2)", id="expression"),
        pytest.param("x = x.at[i].set(1)\n    x = x.at[j].set(2)\n    return x", id="statements"),
        pytest.param("y = x.at[i].set(1)\n    return y.at[j].set(2)", id="another name"),
        pytest.param("x: object = x.at[i].set(1)\n    return x.at[j].set(2)", id="annotated"),
        pytest.param("x = x.at[i].set(1)\n    return x.at[j].set(x[i])", id="a part of it is needed"),
        pytest.param(
            "y = x.at[i].set(1)\n    v = jnp.where(c, 1, y[i])\n    return y.at[i].set(v)",
            id="a part of it under a name",
        ),
        pytest.param(
            "y = x.at[i].set(1)\n    v = y[i] + 1\n    w = jnp.sin(v)\n    return y.at[j].set(w)", id="under two names"
        ),
        pytest.param(
            "x = x.at[i].set(x[i] | 1)\n    x = x.at[j].set(x[j] | 1)\n    return x", id="a part of it each time"
        ),
        pytest.param("x = x.at[i].set(1).at[j].set(2)\n    return x.at[c].add(1)", id="both ways"),
        pytest.param("return x.at[(i, j)].set(1).at[j, i].set(2)", id="tuple"),
        pytest.param("return c.x.at[i].set(1).at[j].set(2)", id="attribute"),
        pytest.param("with jax.named_scope('a'):\n        x = x.at[i].set(1)\n    return x.at[j].set(2)", id="with"),
        pytest.param(
            "for _ in c:\n        x = g(x).at[i].set(0)\n        x = x.at[j].set(1)\n    return x", id="in a time loop"
        ),
        pytest.param("return jnp.where(c, x.at[i].set(1).at[j].set(2), x)", id="inside a call"),
        pytest.param("return x.at[::2].set(i).at[1::2].set(j)", id="slices"),
        pytest.param("return x.at[i].set(x[j]).at[j].set(x[i])", id="swap"),
    ],
)
def test_chains_are_found_once(body: str) -> None:
    assert rules(f"@jax.jit\ndef f(x, i, j, c):\n    {body}\n") == ["chained-at-set"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param("for i in range(3):\n        x = x.at[i].set(y[i])\n    return x", 1, id="plain"),
        pytest.param("for i, v in enumerate(y):\n        x = x.at[i].set(v)\n    return x", 1, id="enumerate"),
        pytest.param(
            "for i in y:\n        k = i + 1\n        x = x.at[k, 0].add(1)\n    return x", 1, id="derived index"
        ),
        pytest.param(
            "for i in y:\n        x = x.at[i].set(1)\n        x = x.at[i + 1].set(2)\n    return x", 1, id="chain"
        ),
        pytest.param(
            "for i in y:\n        x = x.at[i].set(1)\n        y = y.at[i].set(2)\n    return x, y", 1, id="two arrays"
        ),
        pytest.param(
            "for i in y:\n        for j in y:\n            x = x.at[i, j].set(1)\n    return x", 1, id="nested"
        ),
        pytest.param("for i in y:\n        x = jnp.where(y[i], x.at[i].set(1), x)\n    return x", 1, id="where"),
        pytest.param("for i in y:\n        x = x.at[0].set(i)\n    return x", 0, id="one place"),
        pytest.param(
            "for i in y:\n        k = jnp.argmin(x[i])\n        x = x.at[k].set(0)\n    return x", 0, id="greedy"
        ),
        pytest.param("for i in y:\n        x = x.at[i].set(x.sum())\n    return x", 0, id="needs all"),
        pytest.param("for i in y:\n        z = x.at[i].set(1)\n        g(z)\n    return x", 0, id="not carried"),
        pytest.param("for i in y:\n        x = h(x).at[i].set(1)\n    return x", 0, id="of something else"),
        pytest.param("return [x.at[i].set(1) for i in y]", 0, id="comprehension"),
        pytest.param("for i in y:\n        x[i] = x[i].at[0].set(1)\n    return x", 0, id="a list of arrays"),
        pytest.param("for i in y:\n        self.x = self.x.at[i].set(1)\n    return self", 0, id="an attribute"),
    ],
)
def test_loops_that_write_piece_by_piece(body: str, count: int) -> None:
    assert rules(f"@jax.jit\ndef f(self, x, y):\n    {body}\n") == ["chained-at-set"] * count


@pytest.mark.parametrize(
    "body",
    [
        "x = x.at[:, 0].set(y)\n    x = x.at[:, 1].set(y)\n    return x",
        "return x.at[..., 0].add(y).at[..., -1].multiply(y)",
        "return x.at[:, :, 0].set(y).at[:, :, 3].set(y)",
        "x = x.at[:, 0].set(y)\n    return x.at[:, 1].set(x[:, 0] + y)",
    ],
)
def test_columns_are_told_by_one_rule_alone(body: str) -> None:
    assert rules(f"@jax.jit\ndef f(x, y):\n    {body}\n") == ["columns-by-at-set"]


def test_a_number_is_no_column_to_be_stacked() -> None:
    (columns,) = found("@jax.jit\ndef f(y):\n    return jnp.ones((9, 2)).at[:, 0].set(25).at[:, 1].set(y)\n")
    assert columns.suggestion is not None
    assert columns.suggestion.text == "jnp.stack([jnp.full(n, 25), y], axis=1), each as long as a column"


def test_columns_among_other_writes_are_one_chain() -> None:
    assert rules("def f(x, y):\n    return x.at[:, 0].set(y).at[:, 1].set(y).at[0].set(1)\n") == ["chained-at-set"]


def test_numbers_beside_an_array_of_places_are_one_write_among_themselves() -> None:
    code = "def f(mask, ids, a, b):\n    mask = mask.at[ids].set(True)\n    mask = mask.at[3].set(mask[3] | a)\n"
    assert rules(f"{code}    return mask\n") == []
    (finding,) = found(f"{code}    mask = mask.at[7].set(mask[7] | b)\n    return mask.at[ids].set(True)\n")
    assert (finding.location.line, finding.location.end_line) == (5, 6)


def test_one_column_twice_is_no_two_columns() -> None:
    (finding,) = found("def f(x, y):\n    return x.at[:, 0].set(y).at[:, 0].add(y)\n")
    assert finding.rule == "chained-at-set"


def test_host_code_is_quiet() -> None:
    assert rules("x = jnp.zeros(3)\nx = x.at[0].set(len('a'))\nx = x.at[1].set(len('b'))\n") == []
    assert rules("def main(i, j):\n    return jnp.zeros(3).at[i].set(1).at[j].set(2)\n") == []
    assert rules("class A:\n    def __init__(self, x, i, j):\n        self.x = x.at[i].set(1).at[j].set(2)\n") == []


def test_messages_name_the_array() -> None:
    (finding,) = found("def f(v, x, y):\n    obs = jnp.zeros((3, 2)).at[:, 0].set(x).at[:, 1].set(y)\n    return obs\n")
    assert finding.message.startswith("the columns of `obs` are")
    assert finding.suggestion is not None
    assert finding.suggestion.text == "jnp.stack([x, y], axis=1), each as long as a column"
    (finding,) = found("def f(s, i, j):\n    return s.grid.at[i, j].set(1).at[j, i].set(1)\n")
    assert finding.message.startswith("`s.grid` is written 2 times")
    assert finding.suggestion is not None
    assert finding.suggestion.text == "s.grid.at[jnp.array([i, j]), jnp.array([j, i])].set(1)"


def test_no_array_is_advised_to_be_written_with_its_own_later_value() -> None:
    (finding,) = found("def f(x, i, j):\n    x = x.at[i].set(1)\n    return x.at[j].set(x[i])\n")
    assert finding.suggestion is not None
    assert finding.suggestion.text.startswith("compute the values first")


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("jnp.zeros((8, 2)).at[:, 0].set(a[:, 1]).at[:, 1].set(-a[:, 0])", "jnp.stack([a[:, 1], -a[:, 0]], axis=1)"),
        ("jnp.zeros((8, 2)).at[:, -1].set(a[:, 1]).at[:, 0].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].set(a[:, 1]).at[:, -1].set(a[:, 0])", "jnp.stack([a[:, 1], a[:, 0]], axis=1)"),
        (
            "jnp.empty((n, 2), jnp.int32).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])",
            "jnp.stack([a[:, 1], a[:, 0]], axis=1, dtype=jnp.int32)",
        ),
        ("jnp.zeros((8, 3)).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, n)).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2, 4)).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].set(n).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].set(1.0).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].set(a[:, 1] @ n).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].add(a[:, 1]).at[:, 1].set(a[:, 0])", None),
        ("jnp.zeros((8, 2)).at[:, 0].set(a[:, 1], mode='drop').at[:, 1].set(a[:, 0])", None),
        ("zeros((8, 2)).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])", None),
    ],
)
def test_columns_are_stacked_only_where_they_are_all_there(code: str, fix: str | None) -> None:
    (finding,) = found(f"from jax.numpy import zeros\ndef f(a, n):\n    return {code}\n")
    assert finding.suggestion is not None
    assert [edit.text for edit in finding.suggestion.edits] == ([fix] if fix else [])
    assert not finding.suggestion.safe


@pytest.mark.parametrize(
    ("place", "count"),
    [
        pytest.param("i : 9 - i, i : 9 - i", 0, id="squares one inside the other"),
        pytest.param("i:", 0, id="from here on"),
        pytest.param("2, :i", 0, id="up to here"),
        pytest.param("3 * i : 3 * i + 3", 1, id="side by side"),
        pytest.param("i : i + 1", 1, id="rows"),
        pytest.param("at : at + i", 1, id="of other lengths, side by side"),
    ],
)
def test_pieces_that_go_over_one_another_are_joined_by_nothing(place: str, count: int) -> None:
    write = f"y = y.at[{place}].set(x[i])\n        at += i"
    loop = f"y, at = jnp.zeros((9, 9)), 0\n    for i in range(3):\n        {write}\n    return y"
    code = f"{HEAD}@jax.jit\ndef f(x):\n    {loop}\n"
    assert len(check_text(code.encode(), "m.py", Scope(("blocks-by-at-set", "chained-at-set")))) == count


@pytest.mark.parametrize(("result", "count"), [("x", 0), ("x * y.size", 0), ("x * y[0]", 1), ("x, y", 1)])
@pytest.mark.parametrize(
    "writes", ["for i in range(3):\n        y = y.at[i].set(x[i])", "y = y.at[2].set(x[0])\n    y = y.at[x[0]].set(1)"]
)
def test_what_is_never_read_is_dropped_with_its_writes(writes: str, result: str, count: int) -> None:
    code = f"@jax.jit\ndef f(x):\n    y = jnp.sin(x)\n    {writes}\n    return {result}\n"
    assert rules(code) == ["chained-at-set"] * count


@pytest.mark.parametrize(("result", "count"), [("x", 0), ("x, y", 1)])
def test_blocks_that_are_never_read_are_dropped_with_their_array(result: str, count: int) -> None:
    blocks = "y = jnp.zeros(2 * n)\n    y = y.at[:n].set(x[::-1])\n    y = y.at[n:].set(-x)"
    code = f"{HEAD}@jax.jit\ndef f(x, n):\n    {blocks}\n    return {result}\n"
    assert len(check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))) == count


def test_to_ask_for_a_type_in_between_reads_nothing() -> None:
    code = """
@jax.jit
def f(x, i, j):
    x = x.at[i].set(1)
    y = (i + j).astype(x.dtype)
    return x.at[j].set(y)
"""
    (chained,) = found(code)
    assert chained.suggestion is not None
    assert not chained.suggestion.text.startswith("compute the values first")
    assert rules(code.replace("x.dtype", "x.sum().dtype")) == []


def test_what_is_left_at_one_place_is_made_first() -> None:
    code = """
@jax.jit
def f(x, i, j, c):
    y = x.at[i, j].set(jnp.where(c > 0, 1, x[i, j]))
    left = jnp.where(c > 1, 2, y[i, j])
    return y.at[i, j].set(left)
"""
    (one,) = found(code)
    assert one.suggestion is not None
    assert one.suggestion.text == "one `.set` of what the writes make of x[i, j]"
    (other,) = found(code.replace("    left =", "    j = j + 1\n    left ="))
    assert other.suggestion is not None
    assert "one after the other" in other.suggestion.text
    (last,) = found(code.replace("    return y", "    j = j + 1\n    return y"))
    assert last.suggestion is not None
    assert "values first" in last.suggestion.text


ENVIRONMENT = """
class Maze:
    def reset(self, key):
        return mark(key)

    def step(self, state, action):
        return mark(state)

"""
MARK = """
def mark(x):
    return x.at[x[0], x[1]].set(x[2]).at[x[3], x[4]].set(x[5])
"""


@pytest.mark.parametrize(
    ("around", "count"),
    [
        ("", 0),
        ("start = jax.jit(jnp.cumsum)\n", 0),
        ("from jax import lax\n", 1),
        ("def total(x):\n    return jax.lax.psum(x, 'i')\n", 1),
        ("import flax.linen as nn\n\nclass Net(nn.Module):\n    width: int\n", 1),
        ("@partial(jax.custom_jvp, nondiff_argnums=0)\ndef angle(i, x):\n    return jnp.arccos(x[i])\n", 1),
        (ENVIRONMENT, 1),
        ("step = jax.jit(lambda x: mark(x))\n", 1),
    ],
    ids=["nothing", "another is jitted", "imports lax", "uses lax", "a network", "derivatives", "an environment",
         "seen to be traced"],
)  # fmt: skip
def test_a_function_that_nobody_is_seen_to_trace_is_looked_at_where_its_file_is_written_for_traces(
    around: str, count: int
) -> None:
    code = f"import jax\nimport jax.numpy as jnp\nfrom functools import partial\n{around}{MARK}"
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == count


DIAGONALS = """
import flax
import jax
import jax.numpy as jnp

@flax.struct.dataclass
class Sparse:
    offsets: tuple = flax.struct.field(pytree_node=False)
    diags: jax.Array

{above}
    out = jnp.zeros_like({diags})
    for i, offset in enumerate(offsets):
        out = out.at[i].set(jnp.roll({diags}[-i], offset))
    return out
"""


@pytest.mark.parametrize(
    ("above", "diags", "count"),
    [
        ("def moved(offsets: tuple[int, ...], diags: jax.Array):", "diags", 1),
        ("def moved(offsets, diags: jax.Array):\n    scaled = 2.0 * diags", "scaled", 1),
        ("def moved(offsets, diags: jax.Array | None):\n    diags = jnp.conj(diags)", "diags", 1),
        ("def moved(offsets, of: Sparse):", "of.diags", 1),
        ("def moved(offsets, diags):", "diags", 0),
        ("def moved(offsets, diags):\n    diags = diags.at[0].set(1.0)", "diags", 0),
        ("def moved(offsets, diags: list[float]):", "jnp.array(diags)", 0),
        ("def moved(offsets, key: jax.Array):", "jnp.ones((4, 4))", 0),
        ("def moved(offsets, other: jax.Array):", "jnp.ones(other.shape)", 0),
    ],
)
def test_so_is_what_works_on_an_array_that_is_said_to_be_handed_in(above: str, diags: str, count: int) -> None:
    code = DIAGONALS.format(above=above, diags=diags)
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == count
