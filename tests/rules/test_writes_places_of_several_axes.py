"""Indices that are tuples, blocks that are added, rows that a loop goes on with: words that hold for each."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = (
    "from jax import lax\nimport logging, jax\nimport jax.numpy as jnp\nimport numpy as np\n"
    "from scipy import interpolate\n"
)


def told(code: str, *rules: str) -> list[str]:
    found = check_text((HEAD + code).encode(), "m.py", Scope(rules or ("chained-at-set",)))
    return [one.suggestion.text for one in found if one.suggestion is not None]


FACES = """
def cuts(axis, g):
    lower, upper = [slice(None)] * 3, [slice(None)] * 3
    lower[axis], upper[axis] = slice(0, g), slice(-g, None)
    return tuple(lower), tuple(upper)

def closed(tile, axis, g):
    {before}
    return tile.at[{one}].set(0.0).at[{other}].set(0.0)
"""


@pytest.mark.parametrize(
    ("before", "one", "other"),
    [
        ("low, high = [slice(None)] * 3, [slice(None)] * 3", "tuple(low)", "tuple(high)"),
        ("low, high = cuts(axis, g)", "low", "high"),
    ],
)
def test_tuples_of_slices_are_no_places_to_compare_or_to_list(before: str, one: str, other: str) -> None:
    (text,) = told(FACES.format(before=before, one=one, other=other))
    assert "k ==" not in text
    assert "jnp.array([" not in text
    assert "jnp.where with a mask" in text


def test_a_tuple_of_numbers_is_told_a_mask_too() -> None:
    (text,) = told("def f(board, one, other):\n    return board.at[tuple(one)].set(1).at[tuple(other)].set(2)\n")
    assert text.startswith("one jnp.where with a mask: compare jnp.arange along each axis")


def test_what_a_loop_cuts_by_tuples_of_slices_is_a_list_of_pieces() -> None:
    code = """
def modes(out, weights, slices):
    for i, slice_i in enumerate(slices):
        out = out.at[tuple(slice_i)].set(jnp.sin(weights[i]))
    return out
"""
    (text,) = told(code)
    assert text.startswith("a list of the pieces, and one jnp.concatenate where they lie along one axis")


BLOCKS = """
def merged(B, S, blocks):
    T = {made}
    start = 0
    for A in blocks:
        end = start + A.shape[0]
        T = T.at[start:end, start:end].set({value})
        start = end
    return T
"""


@pytest.mark.parametrize(
    ("made", "value", "expected"),
    [
        ("B @ S", "A + T[start:end, start:end]", "a list of the blocks that are added, and `T + ` one jax.scipy."),
        ("B @ S", "A", "one jnp.where with a mask for each piece"),
    ],
)
def test_blocks_of_a_full_matrix_leave_the_rest_of_it(made: str, value: str, expected: str) -> None:
    (text,) = told(BLOCKS.format(made=made, value=value))
    assert text.startswith(expected)


@pytest.mark.parametrize(
    ("place", "method", "is_sum"),
    [("top:bottom", "add", True), ("top:bottom", "set", False), ("4 * i : 4 * i + 4", "add", False)],
)
def test_slices_that_are_added_may_lie_on_one_another(place: str, method: str, is_sum: bool) -> None:
    code = f"""
def product(out, parts, x):
    for i in range(8):
        top, bottom = parts.start(i), parts.end(i)
        out = out.at[{place}].{method}(x * i)
    return out
"""
    (text,) = told(code)
    assert text.startswith("out, and to it one sum of the pieces") == is_sum


@pytest.mark.parametrize(
    ("before", "inside", "count"),
    [
        ("", "logging.info('%i', i)", 0),
        ("", "print(i)", 0),
        ("", "value = interpolate.interp1d(value, value)(xs[i])", 0),
        ("", "pass", 1),
        ("@jax.jit", "print(i)", 1),
    ],
)
def test_a_turn_that_reports_or_has_scipy_work_is_no_kernel(before: str, inside: str, count: int) -> None:
    code = f"""
{before}
def study(xs, solve):
    errors = jnp.zeros(8)
    for i in range(8):
        value = solve(xs[i])
        {inside}
        errors = errors.at[i].set(jnp.max(value))
    return errors
"""
    assert len(told(code)) == count


@pytest.mark.parametrize(
    ("cut", "has_vmap"), [("jnp.sum(x[:, i::4])", False), ("jnp.sum(x[i:])", False), ("jnp.sum(x[:, i])", True)]
)
def test_what_is_cut_by_the_counter_is_no_vmap(cut: str, has_vmap: bool) -> None:
    code = f"""
def parts(x):
    out = jnp.zeros(4)
    for i in range(4):
        out = out.at[i].set({cut})
    return out
"""
    (text,) = told(code)
    assert ("jax.vmap" in text) == has_vmap
    assert "jnp.stack" in text


@pytest.mark.parametrize(
    ("shape", "places", "expected"),
    [
        ("(n, 2, 3)", (":, 0, :", ":, 1, :"), "jnp.stack([x, v], axis=1)"),
        ("(2, n)", ("0", "1"), "jnp.stack([x, v])"),
        ("(n, m, 3)", (":, 0, :", ":, 1, :"), None),
        ("(n, 2, 3)", ("..., 0, :", "..., 1, :"), None),
    ],
)
def test_a_new_array_that_is_all_written_is_one_stack(
    shape: str, places: tuple[str, str], expected: str | None
) -> None:
    one, other = places
    code = f"def f(x, v, n, m):\n    return jnp.zeros({shape}).at[{one}].set(x).at[{other}].set(v) * 2.0\n"
    (text,) = told(code)
    assert (text == expected) == (expected is not None)


def test_the_first_rows_of_what_a_loop_goes_on_with_begin_a_list() -> None:
    code = """
def polynomials(z, n):
    rows = jnp.ones((n, 8))
    rows = rows.at[0].set(jnp.ones_like(z))
    rows = rows.at[1].set(2 * z)
    for i in range(2, n):
        rows = rows.at[i].set(z * rows[i - 1] - rows[i - 2])
    return rows
"""
    (text,) = told(code)
    assert text.startswith("a list that begins with them")


@pytest.mark.parametrize(
    ("state", "count"),
    [("(v, (rows, sizes))", 0), ("State(v=v, rows=rows)", 0), ("_State(v=v, rows=rows)", 0), ("(v, rows.sum())", 1)],
)
def test_the_first_rows_of_what_a_loop_of_jax_carries_under_a_name(state: str, count: int) -> None:
    code = f"""
def krylov(step, v, sizes):
    rows = jnp.zeros((9, 8))
    rows = rows.at[0].set(v)
    rows = rows.at[1].set(2 * v)
    init = {state}
    return jax.lax.fori_loop(1, 9, step, init)
"""
    assert len(told(code)) == count


@pytest.mark.parametrize(
    ("found", "count"),
    [("jnp.nonzero({})[0]", 0), ("jnp.flatnonzero({})", 0), ("jnp.arange(9)[{}]", 0), ("np.flatnonzero({})", 1)],
)
def test_places_that_are_as_many_as_there_are_hits(found: str, count: int) -> None:
    one, other = found.format("x > 0"), found.format("x < 0")
    code = f"def f(x, y, a, b):\n    i, j = {one}, {other}\n    return y.at[i].set(a).at[j].set(b)\n"
    code = code.replace(f"i, j = {one}, {other}", f"i = {one}\n    j = {other}")
    assert len(told(code)) == count


def test_what_a_call_finds_many_of_is_joined_and_not_listed() -> None:
    code = """
def joined(rows, cols, diag, rest):
    out = jnp.zeros(64)
    return out.at[np.flatnonzero(rows == cols)].set(diag).at[np.flatnonzero(rows != cols)].set(rest)
"""
    (text,) = told(code)
    assert text.startswith("one `out.at[...].set(...)`, its indices and values joined by jnp.concatenate")


def test_what_is_set_at_places_that_nobody_sees_and_added_at_others_is_left_alone() -> None:
    code = "def f(x, old, new, a, b):\n    return x.at[{}].set(a).at[{}].add(b)\n"
    assert told(code.format("old", "new")) == []
    assert len(told(code.format("0", "3"))) == 1


def test_one_letter_behind_an_s_names_no_slice() -> None:
    (text,) = told("def f(x, s_a, s_b, r_a, r_b):\n    return x.at[s_a].set(r_b).at[s_b].set(r_a)\n")
    assert text.startswith("jnp.where(k == s_b, r_a, jnp.where(k == s_a, r_b, x))")


def test_a_diagonal_of_a_matrix_that_need_not_be_square() -> None:
    code = "def f(data, v):\n    n = {}\n    rows = jnp.arange(n)\n    return data.at[rows, rows].add(v)\n"
    assert told(code.format("min(data.shape)"), "write-on-diagonal") == []
    assert len(told(code.format("data.shape[0]"), "write-on-diagonal")) == 1


def test_a_one_at_a_known_place_is_folded() -> None:
    code = "@jax.jit\ndef f(x):\n    return x + jnp.zeros((8, 52)).at[{}, 7].set(True)\n"
    assert told(code.format("3"), "one-hot-by-at-set") == []
    assert len(told(code.format("x[0]"), "one-hot-by-at-set")) == 1


@pytest.mark.parametrize("said", ["# preassigned instead of a concatenate", "# a stack of them is slower"])
def test_what_a_comment_says_is_chosen(said: str) -> None:
    code = """
@jax.jit
def f(x, i, j, a, b):
    {said}
    return x.at[i].set(a).at[j].set(b)
"""
    assert told(code.format(said=said)) == []
    assert len(told(code.format(said="# both ends"))) == 1


def test_what_goes_to_numpy_at_once_is_the_hosts() -> None:
    code = """
def tables(out, d, i, j):
    d = d.at[i].set(0.0)
    d = d.at[j].set(0.0)
    out["d"] = {kept}
"""
    assert told(code.format(kept="np.asarray(d)")) == []
    assert len(told(code.format(kept="d"))) == 1


def test_grids_of_places_are_joined_by_nothing() -> None:
    code = "def f(x, a, b, i, j, k):\n    return x.at[{}].set(a).at[{}].set(b)\n"
    assert told(code.format("i[:, None], j[None, :]", "k[:, None], j[None, :]")) == []


def test_blocks_that_are_added_to_what_stands_there_may_overlap() -> None:
    code = """
@jax.jit
def energy(x):
    m = jnp.zeros_like(x)
    m = m.at[:, :-1].set(m[:, :-1] + x[:, 1:])
    m = m.at[:, 1:].set(m[:, 1:] + x[:, :-1])
    return jnp.cumsum(m)
"""
    (text,) = told(code, "blocks-by-at-set")
    assert text.startswith("a sum of the parts, each brought to its place by jnp.pad")


def test_a_new_vector_of_four_is_set_and_added_to_at_single_places() -> None:
    code = """
@jax.jit
def reward(winner, loser, score, {more}):
    reward = jnp.zeros({size})
    reward = reward.at[winner].set(score)
    reward = reward.at[loser].set(-score)
    return reward.at[winner].add(score)
"""
    assert len(told(code.format(size="4", more="n"))) == 1
    assert told(code.format(size="n", more="n")) == []


@pytest.mark.parametrize(("value", "is_quoted"), [("0.0", True), ("diag_R", True), ("rows", False)])
def test_what_may_be_a_row_for_each_place_is_told_a_mask_of_more_axes(value: str, is_quoted: bool) -> None:
    code = f"def f(x, n, diag_R, rows):\n    at = jnp.arange(n)\n    return x.at[at, at].set({value})\n"
    (text,) = told(code, "write-on-diagonal")
    assert text.startswith("jnp.where(jnp.eye(n, dtype=bool)") == is_quoted


@pytest.mark.parametrize(
    ("made", "value", "over", "count"),
    [
        ("jnp.zeros((n, 8))", "1.0", "zip(range(n), chosen)", 0),
        ("jnp.zeros((n, 8))", "x[i]", "zip(range(n), chosen)", 1),
        ("2.0 * x", "1.0", "zip(range(n), chosen)", 1),
        ("jnp.zeros((n, 8))", "1.0", "enumerate(jnp.argmax(x, axis=1))", 1),
    ],
)
def test_numbers_at_places_that_python_counts_are_folded(made: str, value: str, over: str, count: int) -> None:
    code = f"""
def chosen_ones(x, n, chosen):
    mask = {made}
    for i, k in {over}:
        mask = mask.at[i, k].set({value})
    return mask * x
"""
    assert len(told(code)) == count


@pytest.mark.parametrize(("place", "count"), [("jnp.ix_(at, at)", 0), ("at, at", 1)])
def test_grids_of_their_own_are_left_alone_in_a_loop(place: str, count: int) -> None:
    code = f"""
def combined(total, matrices, names, order):
    for matrix, name in zip(matrices, names):
        at = order.index(name)
        total = total.at[{place}].add(matrix)
    return total
"""
    assert len(told(code)) == count
