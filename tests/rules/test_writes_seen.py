"""What is seen of places and of writes: an exact rewrite is told where it holds, general words everywhere else."""

from __future__ import annotations

import libcst as cst
import pytest

from fusionlint.patterns.code.at import at_write
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.patterns.writes.chain import chain, is_last
from fusionlint.patterns.writes.seen import Seen, see
from fusionlint.patterns.writes.stands import Stands, stands
from fusionlint.source.judging import check_text
from fusionlint.source.project import Project
from fusionlint.source.read import read_bytes
from fusionlint.source.scope import Scope
from fusionlint.source.tree import Source
from fusionlint.source.world import join

HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\nimport numpy as np\n"


def source_of(code: str) -> Source:
    data = (HEAD + code).encode()
    world = join({"m.py": read_bytes(data, "m.py")})
    assert isinstance(world.project, Project)
    return Source("m.py", data, world.project, world.contexts)


def last_write(code: str) -> tuple[Source, list]:
    source = source_of(code)
    writes = [w for call in source.nodes(cst.Call) if (w := at_write(call)) is not None]
    return source, chain(next((w for w in writes if is_last(w, source)), writes[0]), source)


PLACES = """
STATE, NODES = 3, 4

@jax.jit
def f(x, y, node, layout, rows, count: int, axis=0):
    {before}
    return x.at[{place}].set(y)
"""


@pytest.mark.parametrize(
    ("before", "place", "expected"),
    [
        ("", "0", Stands.NUMBER),
        ("", "-count - 1", Stands.NUMBER),
        ("", "axis", Stands.NUMBER),
        ("", "i", Stands.NUMBER),
        ("", "STATE", Stands.NUMBER),
        ("", "layout.density_index.x", Stands.NUMBER),
        ("", "layout.Node.GOAL", Stands.NUMBER),
        ("", "INDEX['mass']", Stands.NUMBER),
        ("at = jnp.argmax(y)", "at", Stands.NUMBER),
        ("at = y.argmin()", "at", Stands.NUMBER),
        ("at = jax.random.randint(y, (), 0, count)", "at", Stands.NUMBER),
        ("at = jnp.where(y[0] > 0, count, 3)", "at", Stands.NUMBER),
        ("at = jnp.argmax(y)", "at.astype(int) + 1", Stands.NUMBER),
        ("at = count // 2", "at", Stands.NUMBER),
        ("at = jnp.argmax(y, axis=1)", "at", Stands.UNSEEN),
        ("at = jax.random.randint(y, (8,), 0, count)", "at", Stands.UNSEEN),
        ("at = jnp.where(y > 0, node, 3)", "at", Stands.UNSEEN),
        ("i = y[:, 0]", "i", Stands.MANY),
        ("", "node", Stands.UNSEEN),
        ("", "n1", Stands.UNSEEN),
        ("", "layout.first", Stands.UNSEEN),
        ("", "rows", Stands.MANY),
        ("", "sets['left']", Stands.MANY),
        ("at = jnp.arange(count)", "at + 1", Stands.MANY),
        ("", "1:3", Stands.SLICE),
        ("at = slice(1, 3)", "at", Stands.SLICE),
        ("", "layout.slices()[count]", Stands.SLICE),
        ("", "...", Stands.WHOLE),
        ("", "rows + (0,)", Stands.INDEX),
        ("at = (slice(None),) * count + (0,)", "at", Stands.INDEX),
    ],
)
def test_a_place_is_what_it_is_seen_to_be(before: str, place: str, expected: Stands) -> None:
    source, (write,) = last_write(PLACES.format(before=before or "pass", place=place))
    assert stands(write.index[0], source) is expected


def test_what_fori_loop_counts_by_is_a_number_and_what_loops_take_from_slices_is_none() -> None:
    code = """
def body({step}, x):
    return x.at[{step}].set(1.0)
jax.lax.{loop}(0, 3, body, jnp.zeros(3))
"""
    for loop, expected in (("fori_loop", Stands.NUMBER), ("while_loop", Stands.UNSEEN)):
        source, (write,) = last_write(code.format(step="step", loop=loop))
        assert stands(write.index[0], source) is expected
    source, (write,) = last_write("def f(x, row_slices):\n    for ws in row_slices:\n        x = x.at[ws].set(1)\n")
    assert stands(write.index[0], source) is Stands.SLICE


def seen(writes: str) -> Seen:
    source, found = last_write(f"@jax.jit\ndef f(x, a, b, c, n: int, node):\n    return x{writes}\n")
    return see(found, source)


@pytest.mark.parametrize(
    ("writes", "holds"),
    [
        (".at[i].set(a).at[j].set(b)", {"are_elements", "are_numbers"}),
        (".at[i].set(a).at[node].set(b)", {"are_elements"}),
        (".at[i, 0].set(a).at[j].set(b)", {"are_numbers"}),
        (".at[rows].set(a).at[node].set(b)", {"are_many"}),
        (".at[rows].set(a).at[:3].set(b)", set()),
        (".at[:n].set(a).at[n:].set(b)", {"lie_side_by_side"}),
        (".at[:n].set(a).at[n].set(b)", {"lie_side_by_side"}),
        (".at[:n].set(a).at[node].set(b)", set()),
        (".at[:3].set(a).at[0].set(b)", set()),
        (".at[::2].set(a).at[1::2].set(b)", set()),
        (".at[0, :n].set(a).at[0, n:].set(b)", {"lie_side_by_side"}),
        (".at[:n, :n].set(a).at[n:, n:].set(b)", {"are_a_table", "are_a_matrix"}),
        (".at[..., :n, :n].set(a).at[..., n, :n].set(b)", {"lie_side_by_side"}),
        (".at[..., :n, :n].set(a).at[..., n, n].set(b)", {"are_a_table", "are_a_matrix"}),
        (".at[:, :n, :, :n].set(a).at[:, n:, :, n:].set(b)", {"are_a_table"}),
        (".at[:3, :3].set(a).at[0, 3].set(b)", set()),
        (".at[1:-1, 1:-1].set(a).at[0].set(b)", set()),
    ],
)
def test_what_a_form_of_advice_rests_on_is_seen_or_is_not(writes: str, holds: set[str]) -> None:
    found = seen(writes)
    said = ("are_elements", "are_numbers", "are_many", "lie_side_by_side", "are_a_table", "are_a_matrix")
    assert {name for name in said if getattr(found, name)} == holds


def test_planes_are_told_apart_by_a_number_that_is_written_out() -> None:
    assert seen(".at[:, :, 0].set(a).at[4, i, 2].set(b)").plane_axis == 2
    assert seen(".at[:, :, 0].set(a).at[4, i, 0].set(b)").plane_axis is None
    assert seen(".at[:, :, 0].set(a).at[:, :, 1].set(b)").plane_axis is None  # columns are no planes of their own
    assert seen(".at[:, 0].set(a).at[rows, 1].set(b)").plane_axis is None


MATRICES = """
def f(x, n, m):
    {before}
    return {array}.at[jnp.arange(n), jnp.arange(n)].set(m[0])
"""


@pytest.mark.parametrize(
    ("before", "array", "is_seen"),
    [
        ("k = jnp.zeros((n, n))", "k", True),
        ("k = jnp.reshape(x, [n, n])", "k", True),
        ("k = jnp.exp(-jnp.abs(x[:, None] - x[None]))", "k", True),
        ("k = x.T @ x", "k", True),
        ("k = jnp.linalg.cholesky(x)", "x", True),
        ("at = jnp.diag_indices_from(x)", "x", True),
        ("k = x.diagonal()", "x", True),
        ("k = x[:, None] - x[None]", "(m[:, :, None] * k)", False),
        ("k = jnp.zeros((n,) + x.shape)", "k", False),
        ("k = jnp.zeros((n, n, 3))", "k", False),
        ("k = x @ m", "k", False),
        ("pass", "x", False),
    ],
)
def test_a_mask_of_two_axes_asks_for_an_array_of_two(before: str, array: str, is_seen: bool) -> None:
    code = MATRICES.format(before=before, array=array)
    source, (write,) = last_write(code)
    assert is_matrix(write.array, source) == is_seen
    (finding,) = check_text((HEAD + code).encode(), "m.py", Scope(("write-on-diagonal",)))
    assert finding.suggestion is not None
    said = "an array of more axes" in finding.suggestion.text or "for each axis of a row" in finding.suggestion.text
    assert said is not is_seen


@pytest.mark.parametrize(("function", "count"), [("step", 1), ("reset", 0)])
def test_the_edges_of_a_first_state_are_written_once(function: str, count: int) -> None:
    code = f"""
class Env:
    def {function}(self, q, a, b):
        q = q.at[:2].set(a)
        return q.at[-4:].set(b)
"""
    assert len(list(check_text((HEAD + code).encode(), "m.py", Scope(("boundary-writes",))))) == count


def advice(rule: str, code: str) -> str:
    (finding,) = check_text((HEAD + code).encode(), "m.py", Scope((rule,)))
    assert finding.suggestion is not None
    return finding.suggestion.text


def test_an_index_of_several_axes_is_put_into_no_array_of_places() -> None:
    code = """
def faces(data, before, mean):
    return data.at[before + (0,)].set(mean).at[before + (-1,)].set(mean)
"""
    assert advice("chained-at-set", code).startswith("one jnp.where with a mask: ")


EDGES = """
def edges(u, a, b):
    return u.at[{one}].set({first}).at[{other}].set({second})
"""


@pytest.mark.parametrize(
    ("one", "other", "first", "second", "expected"),
    [
        ("0", "-1", "a", "b", "jnp.where(i == n - 1, last, jnp.where(i == 0, first, u)) with `i = jnp.arange(n)`"),
        ("-1", "0", "a", "b", "jnp.where(i == 0, first, jnp.where(i == n - 1, last, u)) with `i = jnp.arange(n)`"),
        (":, 0, :", ":, -1, :", "a", "b", "with `i = jnp.arange(n)` along axis 1"),
        ("0", "..., 0", "a", "b", "one jnp.where with a mask: "),
        ("0, 1:-1", "-1, 1:-1", "a", "b", "one jnp.where with a mask: "),
        ("0", "..., 0", "0.0", "0.0", "jnp.where(inner, u, 0.0), where `inner` compares"),
        ("0", "-1", "a", "a", "jnp.where(inner, u, a), where `inner` compares"),
        ("0", "..., 0", "a", "a", "one jnp.where with a mask: "),
    ],
)
def test_edges_of_several_axes_are_no_case_of_one(one: str, other: str, first: str, second: str, expected: str) -> None:
    assert expected in advice("boundary-writes", EDGES.format(one=one, other=other, first=first, second=second))


@pytest.mark.parametrize(
    ("first", "second", "is_padded"),
    [("u[-2]", "u[1]", True), ("u[-2]", "b", True), ("a[0]", "1 - b[-1]", False), ("a[0]", "b[-1]", False)],
)
def test_what_another_array_has_is_no_padding_of_this_one(first: str, second: str, is_padded: bool) -> None:
    text = advice("boundary-writes", EDGES.format(one="0", other="-1", first=first, second=second))
    assert text.startswith("jnp.pad of the inner part" if is_padded else "jnp.where(i == n - 1, last, ")


@pytest.mark.parametrize(("step", "by"), [(":2", "jax.lax.pad, with as many rows between its own"), ("", "jnp.pad")])
def test_a_block_with_rows_between_its_own_is_padded_between_them(step: str, by: str) -> None:
    code = f"""
def coefficients(c, odd, even):
    return jnp.zeros(c.shape).at[1:{step}].set(odd).at[2:{step}].set(even).at[-1].multiply(0.5)
"""
    assert f"a block is brought to its place by {by}" in advice("chained-at-set", code)


RECTANGLES = """
def assembled(whole, blocks, starts):
    for i, block in enumerate(blocks):
        at, by = starts[i], 3 * i
        whole = whole.at[{place}].{method}(block)
    return whole
"""


@pytest.mark.parametrize(
    ("place", "method", "expected"),
    [
        ("at : at + 3, at : at + 3", "set", "one jnp.where with a mask for each piece"),
        (
            "at : at + 3, at : at + 3",
            "add",
            "a list of the blocks that are added, and `whole + ` one jax.scipy.linalg.",
        ),
        ("at : at + 3, by : by + 3", "set", "one jnp.where with a mask for each piece"),
        ("by : by + 3", "set", "a list of the pieces and of what stands between them"),
    ],
)
def test_rectangles_are_joined_by_nothing(place: str, method: str, expected: str) -> None:
    assert advice("chained-at-set", RECTANGLES.format(place=place, method=method)).startswith(expected)


SUMMED = """
def mapped(new, old, pairs):
    for one, other in pairs.items():
        new = new.at[..., other].set({value})
    return new
"""


@pytest.mark.parametrize(
    ("value", "is_added"),
    [
        ("new[..., other] + old[..., one]", True),
        ("jnp.maximum(new[..., other], old[..., one])", True),
        ("old[..., one] @ new[..., other]", False),
        ("old[..., one] + 1", False),
    ],
)
def test_what_is_made_of_what_stands_there_is_added_where_two_turns_may_meet(value: str, is_added: bool) -> None:
    text = advice("chained-at-set", SUMMED.format(value=value))
    assert text.startswith("what each one, other adds") == is_added
    assert ("joined where they are arrays" in text) is not is_added


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("add", "u + jnp.where(i == 0, first, 0) + jnp.where(i == n - 1, last, 0) with `i = jnp.arange(n)`"),
        ("mul", "one jnp.where with a mask: "),
    ],
)
def test_what_is_added_to_edges_is_added_to_what_is_there(method: str, expected: str) -> None:
    code = EDGES.format(one="0", other="-1", first="a", second="b").replace("set(", f"{method}(")
    assert advice("boundary-writes", code).startswith(expected)


@pytest.mark.parametrize(("place", "count"), [(":, :2", 0), ("-2:", 1)])
def test_what_crosses_a_slice_that_was_written_needs_what_was_written(place: str, count: int) -> None:
    code = f"""
def exchanged(x):
    x = x.at[2:4].add(x[:2])
    x = x.at[4:6].add(x[6:])
    return x.at[8:10].add(x[{place}].sum())
"""
    assert len(list(check_text((HEAD + code).encode(), "m.py", Scope(("chained-at-set",))))) == count


def test_what_is_called_a_slice_may_be_several() -> None:
    code = """
def mapped(new, old, block_slices):
    for block in block_slices:
        new = new.at[block].set(old[block])
    return new
"""
    said = "a list of the pieces, and one jnp.concatenate where they lie along one axis, else jnp.where of masks"
    assert advice("chained-at-set", code).startswith(said)


@pytest.mark.parametrize(
    ("first", "second", "may_meet"), [("i", "j", True), ("0", "1", False), ("i", "1", True), ("1", "-1", True)]
)
def test_where_two_places_may_be_one_the_later_value_is_made_of_the_earlier(
    first: str, second: str, may_meet: bool
) -> None:
    code = f"""
@jax.jit
def marked(x, i, j):
    x = x.at[{first}].set(x[{first}] | 1)
    x = x.at[{second}].set(x[{second}] | x[{first}])
    return x
"""
    text = advice("chained-at-set", code)
    assert text.startswith("compute the values first")
    assert text.endswith("; if two places may be equal, make the later value from the earlier one") == may_meet


def test_masks_are_joined_by_where_they_hold() -> None:
    code = """
@jax.jit
def filled(x, given, rest, known_mask):
    return x.at[known_mask].set(given).at[~known_mask].set(rest)
"""
    assert "its indices, of a mask its flatnonzero, and values joined" in advice("chained-at-set", code)
    assert "its indices and values joined" in advice(
        "chained-at-set", code.replace("~known_mask", "rows").replace("known_mask", "edges")
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.0", "one `grid.at[places].set(1.0)`, the places of all the steps by jax.vmap"),
        ("row", "jax.vmap for all the"),
    ],
)
def test_one_number_goes_to_all_places_at_once_whatever_two_steps_have(value: str, expected: str) -> None:
    code = f"""
def marked(grid, places, rows):
    def step(grid, at):
        row = rows[at]
        return grid.at[places[at]].set({value}), None
    return jax.lax.scan(step, grid, jnp.arange(8))[0]
"""
    assert advice("write-in-fori-loop", code).startswith(expected)


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("i", "0.0", "one `x.at[indices].set(0.0)` of the places of all i"),
        ("ends[i]", "0.0", "one `x.at[indices].set(0.0)` of the places of all i, joined where they are arrays"),
        ("i", "ends[i]", "the values of all i at once (jax.vmap), then one `x.at[indices].set(values)`; or a list"),
    ],
)
def test_of_one_number_no_values_are_made(place: str, value: str, expected: str) -> None:
    code = f"""
def cleared(x, ends, n):
    for i in range(n):
        x = x.at[{place}].set({value})
    return x
"""
    assert advice("chained-at-set", code).startswith(expected)
