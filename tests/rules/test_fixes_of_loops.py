"""Fixes of loops that write an array place by place, and of draws number by number: what they write, and that it
computes the same."""

from __future__ import annotations

import inspect
from typing import Any

import fixes
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

X = jnp.arange(12.0).reshape(4, 3)


def fixed(rule: str, code: str) -> str:
    return fixes.fixed(rule, inspect.cleandoc(code) + "\n")


def assert_same(code: str, after: str, *args: Any) -> None:
    """That shapes and dtypes are the same too."""
    code = inspect.cleandoc(code)
    one, other = fixes.returned(code, *args), fixes.returned(after, *args)
    assert jax.tree.map(lambda a: (a.shape, a.dtype), one) == jax.tree.map(lambda a: (a.shape, a.dtype), other)
    fixes.assert_same(code, after, *args)


LOOP = """
    import jax
    import jax.numpy as jnp

    def seen(row):
        return jnp.cumsum(row)

    @jax.jit
    def run(x):
        n, width = 4, 3
        {made}
        for i in range({over}):
            {write}
        return jax.lax.sort(out)
"""


@pytest.mark.parametrize(
    ("made", "over", "write", "lines"),
    [
        pytest.param(
            "out = jnp.zeros((n, width))",
            "n",
            "out = out.at[i].set(seen(x[i]))",
            ["out = jnp.stack([jnp.broadcast_to(seen(x[i]), (width,)) for i in range(n)], dtype=float)"],
            id="rows whose shape nobody sees",
        ),
        pytest.param(
            "out = jnp.zeros((n, width), dtype=jnp.int32)",
            "n",
            "row = x[i, :].astype(int)\n            out = out.at[i].set(row * 2)",
            ["out_values = []", "    out_values.append(row * 2)", "out = jnp.stack(out_values, dtype=jnp.int32)"],
            id="rows of another dtype",
        ),
        pytest.param(
            "rows, columns = x.shape\n        out = jnp.zeros((2, rows, columns))",
            "2",
            "row = (x == i).astype(float)\n            out = out.at[i].set(row)",
            ["    out_values.append(row)", "out = jnp.stack(out_values)"],
            id="sizes taken from the shape of what is worked on",
        ),
        pytest.param(
            "out = jnp.zeros((n, 7))",
            "n",
            "row = jax.lax.cond(x[i, 0] > 4, lambda: jnp.sort(jnp.arange(7.0)), lambda: jnp.zeros(7))\n"
            "            out = out.at[i].set(row)",
            ["    out_values.append(row)", "out = jnp.stack(out_values, dtype=float)"],
            id="a branch makes rows of the size",
        ),
        pytest.param(
            "out = jnp.zeros((width, n))",
            "n",
            "row = x[i, :] / 2\n            out = out.at[:, i].set(row)",
            ["out_values = []", "    out_values.append(row)", "out = jnp.stack(out_values, axis=1)"],
            id="columns",
        ),
        pytest.param(
            "out = jnp.zeros(n)",
            "1, n + 1",
            "out = out.at[i - 1].set(jnp.sqrt(jnp.sum(x[i - 1])))",
            ["out = jnp.array([jnp.sqrt(jnp.sum(x[i - 1])) for i in range(1, n + 1)])"],
            id="numbers counted from one",
        ),
        pytest.param(
            "out = jnp.empty_like(x)",
            "x.shape[0]",
            "total = x[i].sum()\n            out = out.at[i].set(x[i] * total)",
            ["out_values = []", "    out_values.append(x[i] * total)", "out = jnp.stack(out_values, dtype=x.dtype)"],
            id="as long as another",
        ),
        pytest.param(
            "out = jnp.ones((5, 3))",
            "4",
            "row = x[i, :]\n            out = out.at[i].set(row)",
            ["out_values = []", "    out_values.append(row)", "out = out.at[:4].set(jnp.stack(out_values))"],
            id="no more than a part",
        ),
    ],
)
def test_a_new_array_that_a_loop_writes_all_of_is_a_stack(made: str, over: str, write: str, lines: list[str]) -> None:
    code = LOOP.format(made=made, over=over, write=write)
    after = fixed("chained-at-set", code)
    for line in lines:
        assert f"    {line}\n" in after
    assert ("out = jnp.ones" in after) == ("ones" in made)
    assert_same(code, after, X)


@pytest.mark.parametrize(
    "write",
    [
        "out = out.at[i].set(x[i] * 2)\n            out = out.at[0].add(1.0)",
        "out = out.at[i].set(x[i] + out[0])",
    ],
)
def test_what_is_written_and_read_otherwise_is_no_stack(write: str) -> None:
    code = LOOP.format(made="out = jnp.zeros((n, width))", over="n", write=write)
    data = inspect.cleandoc(code).encode() + b"\n"
    for found in check_text(data, "m.py", Scope(("chained-at-set",))):
        assert not (found.suggestion and found.suggestion.edits)


TABLE = """
    import jax.numpy as jnp

    def run(x, names):
        n = len(names)
        table = jnp.zeros((n, n))
        for i in range(n):
            row = x[i]
            for j in range(n):
                table = table.at[i, j].set(jnp.sum(row * x[j]))
        return table / float(jnp.sum(table))
"""


def test_a_table_that_two_loops_fill_is_a_list_of_its_numbers() -> None:
    after = fixed("eager-at-set-loop", TABLE)
    assert "    table_values = []\n" in after
    assert "            table_values.append(jnp.sum(row * x[j]))\n" in after
    assert "    table = jnp.array(table_values, dtype=float).reshape(n, n)\n    return table" in after
    assert_same(TABLE, after, X, "abcd")


PLACES = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        n = 4
        places = x.astype(int)
        out = jnp.zeros((5, 13))
        for i in range(1, n):
            {write}
        return jax.lax.sort(out)
"""


@pytest.mark.parametrize(
    "write",
    ["out = out.at[i, i - 1].set(x[0, 1])", "out = out.at[i, places[i, 0]].set(x[i, 1] * 2 + i)"],
)
def test_single_numbers_are_written_by_an_array_of_all_turns(write: str) -> None:
    code = PLACES.format(write=write)
    after = fixed("chained-at-set", code)
    assert f"    i = jnp.arange(1, n)\n    {write}\n    return" in after
    assert_same(code, after, X)


ROWS = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        n = x.shape[0]
        u = jnp.zeros(n + 1)
        u = u.at[1].set(x[0, 0])
        for j in range(2, n + 1):
            u = u.at[j].set(x[j - 1, 1] / 2 - u[j - 1])
        for j in range(n - 1, 0, -1):
            u = u.at[j].set(u[j] - x[j, 0] * u[j + 1])
        return u
"""


def test_numbers_made_of_the_number_before_need_no_shape() -> None:
    after = fixed("recurrence-by-at-set", ROWS)
    assert "    u_values = [u[1]]\n" in after
    assert "        u_values.append(x[j - 1, 1] / 2 - u_values[-1])\n" in after
    assert "    u = u.at[1:n + 1].set(jnp.array(u_values))\n" in after
    assert "    u_values = [u[n]]\n" in after
    assert "    u = u.at[1:n + 1].set(jnp.array(u_values[::-1]))\n" in after
    assert_same(ROWS, after, X)


STEPS = """
    import jax
    import jax.numpy as jnp

    SIZE = 4

    @jax.jit
    def run(x, m):
        places = x.astype(int)
        out = jnp.zeros((4, 13), int)
        return jax.lax.fori_loop({bounds}, lambda k, out: out.at[{place}].add({value}), out)
"""


@pytest.mark.parametrize(
    ("bounds", "place", "value"),
    [
        ("0, SIZE", "k, places[k][0]", "1"),
        ("1, SIZE", "k // 2, (k + 1) % 3", "(places[k, 0] > 2) | (k == 3)"),
        ("0, x.shape[0]", "k", "2"),
    ],
)
def test_the_steps_of_a_loop_are_written_at_once(bounds: str, place: str, value: str) -> None:
    code = STEPS.format(bounds=bounds, place=place, value=value)
    found = check_text(inspect.cleandoc(code).encode(), "m.py", Scope(("write-in-fori-loop",)))
    if "[k]" in place or "[k, 0]" in value:  # rows of a table may be read by that
        assert [one.suggestion.edits for one in found if one.suggestion] == [()]
        return
    after = fixed("write-in-fori-loop", code)
    assert f"    return out.at[{place}].add({value})\n" in after
    assert_same(code, after, X, 3)


def test_steps_that_only_the_device_counts_are_left() -> None:
    code = STEPS.format(bounds="0, m", place="k, 0", value="1")
    assert "fori_loop" in fixed("write-in-fori-loop", code)


DRAWN = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(key):
        def step(key, _):
            {split}
            a = jax.random.uniform(k1{shape}, minval=-1.0)
            b = jax.random.uniform(k2{shape}, maxval=2.0)
            c = jax.random.uniform(k3{shape})
            return key, (a, b, c{more})
        return jax.lax.scan(step, key, None, 4096)[1]
"""


@pytest.mark.parametrize(
    ("split", "shape", "more", "lines"),
    [
        (
            "key, k1, k2, k3 = jax.random.split(key, 4)",
            "",
            "",
            [
                "key, k1 = jax.random.split(key)",
                "a, b, c = jax.random.uniform(",
            ],
        ),
        (
            "key, k1, k2, k3, k4 = jax.random.split(key, 5)",
            ", (2,)",
            ", jax.random.normal(k4)",
            ["key, k1, k4 = jax.random.split(key, 3)", "a, b, c = jax.random.uniform("],
        ),
    ],
)
def test_keys_that_nobody_draws_by_are_not_split_off(split: str, shape: str, more: str, lines: list[str]) -> None:
    code = DRAWN.format(split=split, shape=shape, more=more)
    after = fixed("draws-one-by-one", code)
    for line in lines:
        assert line in after
    for one, other in zip(
        fixes.returned(inspect.cleandoc(code), jax.random.key(0)), fixes.returned(after, jax.random.key(0)), strict=True
    ):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.mean(), other.mean(), atol=0.1)
        np.testing.assert_allclose(one.std(), other.std(), atol=0.1)


TURNS = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x, labels):
        sums = []
        for i in range(x.shape[1] + 5):
            order = jnp.argsort(jnp.where(labels == i, x[:, 0], 0.0))
            {appended}
        {joined}
"""


@pytest.mark.parametrize(
    ("appended", "joined", "after"),
    [
        ("sums.append(x[order])", "return jnp.stack(sums, axis=1)", "return jax.vmap(of_i, out_axes=1)(jnp.arange("),
        (
            "sums.append(\n                jnp.sum(\n                    x[order, 0] * x[:, 1],\n"
            "                )\n            )",
            "return jnp.array(sums)",
            "return jax.vmap(of_i)(jnp.arange(x.shape[1] + 5))\n",
        ),
    ],
)
def test_turns_that_need_no_other_are_a_function_of_their_number(appended: str, joined: str, after: str) -> None:
    code = TURNS.format(appended=appended, joined=joined)
    written = fixed("rows-one-by-one", code)
    assert "    def of_i(i):\n        order = " in written
    assert after in written
    assert "sums" not in written
    if "jnp.sum" in code:
        assert "        return jnp.sum(\n            x[order, 0] * x[:, 1],\n        )\n" in written
    assert_same(code, written, X, jnp.array([0, 2, 2, 7]))


@pytest.mark.parametrize("behind", ["return jnp.stack(sums), order", "return jnp.stack(sums) + len(sums)"])
def test_turns_that_leave_more_than_a_join_stay(behind: str) -> None:
    code = TURNS.format(appended="sums.append(x[order])", joined=behind)
    data = inspect.cleandoc(code).encode() + b"\n"
    for found in check_text(data, "m.py", Scope(("rows-one-by-one",))):
        assert not (found.suggestion and found.suggestion.edits)


COUNTED = """
    import jax
    import jax.numpy as jnp
    from jax import lax

    @jax.jit
    def run(x):
        def step(at, _):
            return at + 1, jnp.tanh(x[at] + x[0])
        {last}, made = lax.scan(step, jnp.array({first}), None, x.shape[0])
        return made{read}
"""


def test_a_scan_that_counts_its_steps_is_mapped_over_their_numbers() -> None:
    code = COUNTED.format(last="_", first=0, read="")
    after = fixed("lax-map-for-vmap", code)
    assert "    _, made = jax.vmap(step, in_axes=(0, None))(jnp.arange(x.shape[0]), None)\n" in after
    assert_same(code, after, X)


@pytest.mark.parametrize(("last", "first", "read"), [("_", 1, ""), ("last", 0, " + last")])
def test_a_scan_whose_count_is_read_or_begins_elsewhere_stays(last: str, first: int, read: str) -> None:
    assert "lax.scan(" in fixed("lax-map-for-vmap", COUNTED.format(last=last, first=first, read=read))
