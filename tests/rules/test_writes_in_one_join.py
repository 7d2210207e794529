"""The fixes of writes along one axis, of one-hots, diagonals and parts of rows: they compute the same, dtypes too, and
are not written where something stands in their way."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

HEAD = "import jax\nimport jax.numpy as jnp\n\nSPAN = jnp.arange(2)\n\n\ndef stepped(x, a, b, k, i):\n"


def whole(body: str) -> str:
    """The function whose statements are apart by `; `."""
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    return f"{HEAD}{lines}"


def fixed(rule: str, body: str) -> str:
    code, scope = whole(body), Scope((rule,))
    found = check_text(code.encode(), "m.py", scope)
    assert found
    return fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()


def assert_the_same(body: str, after: str, *given: object) -> None:
    made = []
    for code in (whole(body), after):
        names: dict[str, object] = {}
        exec(code, names)
        made.append(names["stepped"](*given))  # type: ignore[operator]
    assert made[0].dtype == made[1].dtype
    assert jnp.array_equal(made[0], made[1])


ROWS = jnp.arange(24.0).reshape(6, 4)
ROW = jnp.arange(4.0) + 0.5
COLUMN = jnp.arange(6.0) - 0.5


@pytest.mark.parametrize(
    ("rule", "body", "a", "b"),
    [
        ("blocks-by-at-set", "y = jnp.zeros((6, 4)); y = y.at[:2].set(a); y = y.at[2:].set(b); return y", ROW, 3),
        ("blocks-by-at-set", "y = jnp.zeros((6, 4), int); y = y.at[:, :k].set(a); return y.at[:, k:].set(b)", 7, 3),
        ("blocks-by-at-set", "y = jnp.zeros(6); y = y.at[0].set(2); c = a + 1; return y.at[1:].set(c)", COLUMN[1:], 0),
        ("blocks-by-at-set", "y = jnp.zeros(6); y = y.at[1:-1].set(a); y = y.at[-1].set(b); return y", COLUMN[:4], 2),
        ("blocks-by-at-set", "y = jnp.zeros(9); y = y.at[2:4].set(a); y = y.at[4:6].set(b); return y", 1, 2),
        ("blocks-by-at-set", "y = jnp.zeros((6, 4)); y = y.at[:-1].set(a); y = y.at[0].set(b); return y", ROW, 9),
        ("boundary-writes", "x = x.at[0].set(2 * x[1] - x[2]); x = x.at[-1].set(b); return x", 0, ROW),
        ("boundary-writes", "return x.at[:, :k].set(a).at[:, -k:].set(b)", 0.5, COLUMN[:, None]),
        ("columns-by-at-set", "y = jnp.zeros((6, 2), int); y = y.at[:, 0].set(a); return y.at[:, 1].set(b)", 3, 4),
        ("columns-by-at-set", "x = x.at[..., 1].set(a); x = x.at[..., 2].set(x[..., 3]); return x", COLUMN, 0),
        ("columns-by-at-set", "return x.at[:, 0].set(a).at[:, -1].add(b)", COLUMN, 2),
        # what is worked out of its place
        ("columns-by-at-set", "c = x[:, 1]; d = x[:, 0]; x = x.at[:, 0].set(c); return x.at[:, 1].set(d)", 0, 0),
        (
            "columns-by-at-set",
            "c = jnp.where(a > 1, x[:, 0] + 1, x[:, 0]); return x.at[:, 0].set(c).at[:, 3].set(b)",
            COLUMN,
            2,
        ),
        ("columns-by-at-set", "return x.at[:, 0].set(x[:, 0] + 0.5 * a).at[:, -1].add(0.5 * b)", COLUMN, 2),
        ("boundary-writes", "x = x.at[0].set(x[0] + 0.5 * a); x = x.at[-1].add(0.5 * b); return x", ROW, 2),
        # parts as they are
        ("blocks-by-at-set", "y = jnp.zeros(4); y = y.at[0].set(b); y = y.at[1:].set(a[1:]); return y", ROW, 2),
        ("blocks-by-at-set", "y = jnp.zeros(4, int); y = y.at[0].set(b); return y.at[1:].set(a[1:])", jnp.arange(4), 2),
        ("blocks-by-at-set", "y = jnp.zeros(4); y = y.at[:3].set(jnp.diff(a) / 2); return y.at[3].set(b)", ROW, 1),
        (
            "columns-by-at-set",
            "y = jnp.zeros((3, 2)); y = y.at[:, 0].set(a[1:]); return y.at[:, 1].set(b[:-1])",
            ROW,
            ROW,
        ),
        ("columns-by-at-set", "x = x.at[:, 0].set(x[:, 0] / x[:, 2]); return x.at[:, 1].set(2 - x[:, 1])", 0, 0),
    ],
)
def test_one_join_computes_what_the_writes_do(rule: str, body: str, a: object, b: object) -> None:
    after = fixed(rule, body)
    assert ".at[" not in after
    assert_the_same(body, after, ROWS, a, b, 1, 2)


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("blocks-by-at-set", "y = jnp.zeros(6); y = y.at[:2].set(a)  # why; y = y.at[2:].set(b); return y"),
        (
            "blocks-by-at-set",
            "y = jnp.zeros(6); y = y.at[:2].set(a); a = a + 1; y = y.at[2:].set(a); return y",
        ),
        ("boundary-writes", "x = x.at[0].set(a); x = x.at[-1].set(x[0]); return x"),
        ("boundary-writes", "return x.at[0].set(0.0).at[-1].set(1.0)"),
        ("boundary-writes", "return x.at[0].set(a).at[-1].set(b, mode='drop')"),
    ],
)
def test_writes_stay_where_a_join_would_lose_or_change_something(rule: str, body: str) -> None:
    assert fixed(rule, body) == whole(body)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("y = jnp.zeros((5, 4)); y = y.at[jnp.arange(5), i].set(1); return y", "y = jax.nn.one_hot(i, 4); return y"),
        ("return jnp.zeros((4, 5), int).at[i, jnp.arange(5)].set(1)", "return jax.nn.one_hot(i, 4, axis=0, dtype=int)"),
    ],
)  # fmt: skip
def test_a_place_of_each_row_is_compared(body: str, after: str) -> None:
    new = fixed("one-hot-by-at-set", body)
    assert new == whole(after)
    assert_the_same(body, new, ROWS, jnp.arange(5), 0, 0, jnp.array([3, 0, 1, 1, 2]))


def test_one_place_of_a_plane_is_compared_on_each_axis() -> None:
    body = "y = jnp.zeros((6, 4), jnp.int8); return y.at[i[0], i[1]].set(1)"
    after = fixed("one-hot-by-at-set", body)
    assert "jnp.zeros" not in after
    assert_the_same(body, after, ROWS, 0, 0, 0, jnp.array([2, 3]))


@pytest.mark.parametrize(
    "body",
    [
        "n = x.shape[-1]; d = jnp.arange(n); return x.at[..., d, d].set(a)",
        "n = x.shape[-1]; d = jnp.arange(n); return x.at[..., d, d].add(-a)",
        "x = x + jnp.eye(4)[None]; d = jnp.arange(4); return x.at[:, d, d].add(a)",
    ],
)
@pytest.mark.parametrize("a", [2.0, ROW, jnp.stack([ROW, ROW + 1])], ids=["number", "vector", "vectors"])
def test_the_diagonals_of_a_batch_take_a_number_and_vectors(body: str, a: object) -> None:
    after = fixed("write-on-diagonal", body)
    assert "jnp.where(jnp.eye(" in after
    assert_the_same(body, after, jnp.arange(32.0).reshape(2, 4, 4), a, 0, 0, 0)


@pytest.mark.parametrize(
    ("rule", "body", "a"),
    [
        ("insert-by-scatter", "b = a[-1]; return jnp.insert(a * 2, 0, b)", ROW),
        ("insert-by-scatter", "return jnp.insert(a * 2, 0, 0)", ROW),
        ("insert-by-scatter", "b = jnp.sin(a); return jnp.insert(x, 2, b, axis=0)", ROW),
    ],
)
def test_what_is_put_in_is_the_same(rule: str, body: str, a: object) -> None:
    after = fixed(rule, body)
    assert after != whole(body)
    assert_the_same(body, after, ROWS, a, 0, 0, 0)


def test_work_on_a_part_of_each_row_is_arithmetic_with_all() -> None:
    body = "x = jax.jit(jnp.tanh)(x); x = x.at[:, :3].multiply(0.5); return x + 1"
    scope, code = Scope(("arithmetic-by-at",)), whole(body).replace("def stepped", "@jax.jit\ndef stepped")
    found = check_text(code.encode(), "m.py", scope)
    after = fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()
    assert "x * jnp.where(jnp.indices(x.shape, sparse=True)[1] < 3, 0.5, 1)" in after
    assert_the_same(body, after, ROWS, 0, 0, 0, 0)


def test_values_that_may_be_several_are_not_put_in() -> None:
    body = "return jnp.insert(x, 0, a, axis=0)"
    assert fixed("insert-by-scatter", body) == whole(body)


def test_a_mapped_search_is_given_its_method_by_a_lambda() -> None:
    after = fixed("default-searchsorted", "return jax.vmap(jnp.searchsorted, in_axes=(None, 0))(x, a)")
    assert 'jax.vmap(lambda a, v: jnp.searchsorted(a, v, method="scan_unrolled"), in_axes=(None, 0))(x, a)' in after
    body = "return jax.vmap(jnp.searchsorted)(x, a, side='right')"
    assert fixed("default-searchsorted", body) == whole(body)


def test_work_on_a_part_along_an_axis_that_may_not_be_the_last_computes_the_same() -> None:
    code = "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef first(x):\n    x = jax.jit(jnp.tanh)(x)\n"
    code += "    x = x.at[:, 0].multiply(0)\n    return x + 1\n"
    scope = Scope(("arithmetic-by-at",))
    found = check_text(code.encode(), "m.py", scope)
    after = fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()
    assert ".at[" not in after
    results = []
    for text in (code, after):
        names: dict = {}
        exec(text, names)
        results.append([names["first"](jnp.ones(shape)) for shape in ((2, 5), (2, 5, 3), (2, 3, 3))])
    for one, other in zip(*results, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize(
    ("rule", "body", "listed"),
    [
        (
            "blocks-by-at-set",
            "y = jnp.zeros(4); y = y.at[0].set(b / 2); y = y.at[1:].set(a[1:]); return y",
            "[b / 2, a[1:]]",
        ),
        (
            "blocks-by-at-set",
            "y = jnp.zeros(4, int); y = y.at[0].set(b); return y.at[1:].set(a[1:])",
            "a[1:]], dtype=int",
        ),
        (
            "columns-by-at-set",
            "return x.at[:, 0].set(x[:, 1]).at[:, 1].set(x[:, 0])",
            "[x[:, 1:2], x[:, :1], x[:, 2:]]",
        ),
    ],
)
def test_a_part_whose_shape_is_seen_is_written_as_it_is(rule: str, body: str, listed: str) -> None:
    after = fixed(rule, body)
    assert listed in after
    assert "full_like" not in after
    assert "zeros" not in after


def test_what_is_worked_out_of_its_place_is_not_brought_to_its_shape() -> None:
    body = "b = x[:, 4]; a = x[:, 0]; x = x.at[:, 0].set(b); x = x.at[:, 4].set(a); return x"
    after = fixed("columns-by-at-set", body)
    assert "jnp.concatenate([b[:, None], x[:, 1:4], a[:, None], x[:, 5:]], axis=1)" in after
    assert_the_same(body, after, jnp.arange(30).reshape(5, 6), 0, 0, 0, 0)
