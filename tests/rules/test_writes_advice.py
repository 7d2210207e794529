"""What to write instead of several writes: it has to be right where places meet and where pieces are unlike."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("chained-at-set",))
HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\n"


def advice(code: str) -> str:
    (found,) = check_text((HEAD + code).encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    return found.suggestion.text


def is_quiet(body: str) -> bool:
    return not list(check_text(f"{HEAD}@jax.jit\ndef f(x, i, n):\n    return x * {body}\n".encode(), "m.py", SCOPE))


@pytest.mark.parametrize(
    ("writes", "meet"),
    [
        pytest.param(".at[0, n].set(x[i]).at[i, n].set(-1)", True, id="0 may be i"),
        pytest.param(".at[i, n].set(1).at[j, n].set(2)", True, id="i may be j"),
        pytest.param(".at[i, n].set(1).at[j, n].set(1)", False, id="one value"),
        pytest.param(".at[i, n].add(1).at[j, n].add(2)", False, id="sums"),
        pytest.param(".at[i, n].set(x[j, n]).at[j, n].set(x[i, n])", False, id="a swap"),
        pytest.param(".at[0, i].set(1).at[1, j].set(2)", False, id="two rows"),
        pytest.param(".at[0, i].set(1).at[-1, j].set(2)", True, id="of one row both ends"),
    ],
)
def test_where_two_places_may_be_one_the_order_is_said_to_count(writes: str, meet: bool) -> None:
    text = advice(f"@jax.jit\ndef f(x, i, j, n):\n    return x{writes}\n")
    assert text.startswith(("x.at[jnp.array([", "x.at[all the indices]"))
    assert ("a scatter leaves open which value stays" in text) == meet


ALONG = " with `k = jnp.arange(n)` along that axis"
BEHIND = "; of an array jnp.expand_dims(value, -1)"


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (".at[i].set(1).at[j].set(2)", f"jnp.where(k == j, 2, jnp.where(k == i, 1, x)){ALONG}"),
        (".at[..., i].set(1).at[..., 3].set(2.0)", f"jnp.where(k == 3, 2.0, jnp.where(k == i, 1, x)){ALONG}"),
        (".at[..., i].set(a).at[..., 3].set(b)", f"jnp.where(k == 3, b, jnp.where(k == i, a, x)){ALONG}{BEHIND}"),
        (".at[i].set(x[j]).at[j].set(x[i])", f"jnp.where(k == j, x[i], jnp.where(k == i, x[j], x)){ALONG}"),
        (".at[h + 1].set(a).at[-h - 1].set(b)", f"jnp.where(k == n - h - 1, b, jnp.where(k == h + 1, a, x)){ALONG}"),
        (".at[h].set(a).at[-(h + 1)].set(b)", f"jnp.where(k == n - (h + 1), b, jnp.where(k == h, a, x)){ALONG}"),
        (".at[-1].set(a).at[2].set(b)", f"jnp.where(k == 2, b, jnp.where(k == n - 1, a, x)){ALONG}"),
        (".at[i].add(a).at[j].add(b)", f"x + jnp.where(k == i, a, 0) + jnp.where(k == j, b, 0){ALONG}"),
        (".at[i].set(a).at[j].add(b)", f"jnp.where(k == i, value, x), one inside the other, with {ALONG[6:]}"),
        (".at[0].subtract(a).at[4].subtract(b)", f"x - jnp.where(k == 0, a, 0) - jnp.where(k == 4, b, 0){ALONG}"),
        (".at[i].mul(a).at[j].mul(b)", f"x * jnp.where(k == i, a, 1) * jnp.where(k == j, b, 1){ALONG}"),
        (".at[i].max(a).at[j].max(b)", f"jnp.where(k == i, value, x), one inside the other, with {ALONG[6:]}"),
    ],
)
def test_places_along_one_axis_are_told_apart_by_where_the_last_one_first(writes: str, expected: str) -> None:
    assert advice(f"@jax.jit\ndef f(x, i, j, a, b):\n    return x{writes}\n") == expected


def test_a_place_from_the_end_is_counted_from_there_under_a_name_too() -> None:
    text = advice("@jax.jit\ndef f(x, a, b, h):\n    last = -h\n    return x.at[h].set(a).at[last].set(b)\n")
    assert text.startswith(f"jnp.where(k == n + last, b, jnp.where(k == h, a, x)){ALONG}")


def test_places_of_two_axes_are_told_no_mask_of_one() -> None:
    corners = advice("@jax.jit\ndef f(x, a, b):\n    return x.at[0, 0].set(a).at[-1, -1].set(b)\n")
    assert "along each axis" in corners
    assert "jnp.arange(n) == k" not in corners


def test_what_a_number_tells_apart_is_stacked_single_places_of_a_plane_too() -> None:
    planes = advice(
        "@jax.jit\ndef f(x, a, b, i):\n    return x.at[:, :, 0].set(a).at[:, :, 1].set(b).at[4, i, 2].set(b)\n"
    )
    said = "one jnp.stack([...], axis=2) of the parts and of the others of x"
    assert planes == f"{said}; a single place in a part is jnp.arange along each axis, compared with it"
    blocks = advice("@jax.jit\ndef f(x, a, b):\n    return x.at[0].set(a).at[1, 2:4].set(b)\n")
    assert blocks.startswith("one jnp.where with a mask: ")
    assert blocks.endswith("a block is brought to its place by jnp.pad")


@pytest.mark.parametrize(("shape", "is_listed"), [("(2, 2)", True), ("(2, n)", False), ("(2, 2, 2)", False)])
def test_the_elements_of_a_small_new_array_are_listed(shape: str, is_listed: bool) -> None:
    code = f"@jax.jit\ndef f(a, b, n):\n    return jnp.zeros({shape}).at[0, 0].set(a).at[1, 1].set(b)\n"
    assert advice(code).startswith("one jnp.stack of all elements in their order") == is_listed


@pytest.mark.parametrize(("annotation", "is_one"), [("int", True), ("jnp.ndarray", False)])
def test_a_field_that_its_class_calls_an_array_is_no_number_whatever_its_name(annotation: str, is_one: bool) -> None:
    code = (
        f"class Layout(NamedTuple):\n    gain_idx: {annotation}\n\n@jax.jit\ndef f(x, a, b, st: Layout):\n"
        "    return x.at[st.gain_idx].set(a).at[st.gain_idx + 1].set(b)\n"
    )
    assert ("of places that are arrays" not in advice(f"from typing import NamedTuple\n{code}")) == is_one


@pytest.mark.parametrize(("index", "is_listed"), [(":, {}, {}", True), ("{}, :, {}", False)])
def test_small_matrices_of_a_batch_are_listed_along_the_last_axis(index: str, is_listed: bool) -> None:
    first, second = index.format(0, 1), index.format(2, 2)
    code = f"@jax.jit\ndef f(a, b, n):\n    return jnp.zeros((n, 3, 3)).at[{first}].set(a).at[{second}].set(b)\n"
    said = advice(code).startswith("one jnp.stack of all elements in their order along the last axis")
    assert said == is_listed


@pytest.mark.parametrize(
    ("first", "second", "result", "is_one_kernel"),
    [
        pytest.param(":-1", "-1", "2.0 * out", True, id="cut from the end and read"),
        pytest.param(":, :n", ":, n:", "2.0 * out", True, id="parts of a table"),
        pytest.param(":-1", "-1", "out", False, id="returned as it is"),
        pytest.param("i, 0].set(b).at[i, 3", ":, 1:3", "2.0 * out", False, id="a row that only the run knows"),
        pytest.param(":3", "3:6", "2.0 * out", False, id="parts of a short vector, which may be one of a batch"),
    ],
)
def test_parts_of_a_field_that_are_read_are_told_to_a_gpu_as_no_gain(
    first: str, second: str, result: str, is_one_kernel: bool
) -> None:
    out = f"x.at[{first}].set(a).at[{second}].set(b)"
    code = f"@jax.jit\ndef f(x, a, b, i):\n    n = x.shape[0] // 2\n    out = {out}\n    return {result}\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", SCOPE)
    assert ("h100" not in found.targets) == is_one_kernel


ROWS = """\
@jax.jit
def waves(x, layout, a, b, c, d):
    def rows():
        r = jnp.zeros_like(x)
        return r.at[layout.density_index].set(a).at[layout.energy_index].add(b).at[layout.energy_index].add(c)
    return jnp.where(d, 2.0 * rows(), rows())
"""


@pytest.mark.parametrize(
    ("old", "new", "targets"),
    [
        pytest.param("", "", ("cpu", "v5e"), id="consumed"),
        pytest.param("jnp.zeros_like(x)", "2 * x", ("cpu", "v5e"), id="known rows of another array"),
        pytest.param("jnp.zeros_like(x)", "jnp.zeros(3)", ("cpu", "v5e"), id="known rows, whatever of"),
        pytest.param("    def rows():", "    @jax.jit\n    def rows():", ("cpu", "v5e"), id="inlined"),
        pytest.param("jnp.where(d, 2.0 * rows(), rows())", "jax.jit(rows)", ("cpu", "h100", "v5e"), id="returned"),
        pytest.param(
            "jnp.where(d, 2.0 * rows(), rows())",
            "jnp.sin(jax.lax.switch(d, [rows, rows]))",
            ("cpu", "h100", "v5e"),
            id="of a branch",
        ),
        pytest.param("layout.density_index", "0", ("cpu", "v5e"), id="a number among them"),
        pytest.param("d, 2.0", "jax.lax.fori_loop(0, 3, rows, d), 2.0", ("cpu", "h100", "v5e"), id="carried"),
    ],
)
def test_rows_that_a_gpu_fuses_with_what_reads_them_are_no_cost_there(old: str, new: str, targets: tuple) -> None:
    (found,) = check_text((HEAD + ROWS.replace(old, new, 1)).encode(), "m.py", SCOPE)
    assert found.targets == targets


@pytest.mark.parametrize(
    ("static", "targets"), [("row", ("cpu", "v5e")), ("layout", ("cpu", "h100", "v5e"))], ids=["known", "traced"]
)
def test_a_row_that_a_static_argument_counts_is_known(static: str, targets: tuple) -> None:
    code = f"""
from functools import partial

@partial(jax.jit, static_argnames=["{static}"])
def flux(x, row, layout, a, b):
    u = jnp.sin(x)
    y = u.at[row].set(a * b).at[layout.density_index].set(b)
    return y * (a - b)
"""
    (found,) = check_text((HEAD + code).encode(), "m.py", SCOPE)
    assert found.targets == targets


def test_rows_of_a_new_array_are_stacked_once_those_of_one_place_are_summed() -> None:
    code = "@jax.jit\ndef f(x, a, b, c):\n    return jnp.zeros((8, 4)).at[0].add(a).at[1].add(b).at[0].add(c)\n"
    stack = "jnp.stack([...]) of the parts and of what is left as it was"
    assert advice(code) == f"{stack}, those of one place summed first"
    assert advice(code.replace("at[0].add(c)", "at[2].add(c)")) == stack


def test_of_both_ends_of_a_new_array_nobody_says_how_long_a_stack_would_be() -> None:
    code = "@jax.jit\ndef f(x, a, b):\n    return jnp.zeros_like(x).at[-1].set(a).at[0].set(b)\n"
    assert advice(code) == f"jnp.where(k == 0, b, jnp.where(k == n - 1, a, the fill)){ALONG}"


@pytest.mark.parametrize(
    ("writes", "is_masked"),
    [
        (".at[:, i].max(1).at[j, :].max(1).at[k, :].max(1)", True),
        (".at[:, i, 0].max(1).at[j].max(1).at[k].max(1)", True),
        (".at[i, :, 0].max(1).at[j, :, 0].max(2)", False),
        (".at[i, j].max(1).at[j, :].max(2).at[k, :].max(3)", True),
    ],
)
def test_lines_along_several_axes_are_told_by_a_mask(writes: str, is_masked: bool) -> None:
    text = advice(f"@jax.jit\ndef f(x, i, j, k):\n    return x{writes}\n")
    assert text.startswith("one jnp.where with a mask: ") == is_masked


@pytest.mark.parametrize(
    ("place", "method", "then"),
    [
        (
            "[i + k]",
            "set",
            "one jnp.where inside the other: jnp.where(k == second, ..., jnp.where(k == first, ..., x)), "
            "with `k = jnp.arange(n)` along that axis",
        ),
        (
            "[:, i + k]",
            "set",
            "one jnp.where inside the other: jnp.where(k == second, ..., jnp.where(k == first, ..., x)), "
            "with `k = jnp.arange(n)` along that axis; of an array jnp.expand_dims(value, 1)",
        ),
        ("[i, k]", "add", "x.at[all the indices].add(all the values)"),
        (
            "[i, k]",
            "set",
            "x.at[all the indices].set(all the values); not where two places may be equal, of which a scatter leaves "
            "open which value stays: there jnp.where, the last one outermost",
        ),
        ("[k : k + i]", "set", "one jnp.concatenate of them and of what stands between them"),
    ],
)
def test_values_under_one_name_come_first_and_then_what_fits_the_places(place: str, method: str, then: str) -> None:
    code = f"""@jax.jit
def f(x, y, i, k):
    item = jnp.sin(y)
    x = x.at{place}.{method}(item)
    item = jnp.cos(y)
    x = x.at{place.replace("k", "i")}.{method}(item)
    return x
"""
    assert advice(code) == f"compute the values first, each into a name of its own; then {then}"


@pytest.mark.parametrize(
    ("writes", "count"),
    [
        pytest.param(".at[0, *face].set(0).at[2, *face].set(0)", 0, id="a face of two components"),
        pytest.param(".at[i, sx, sy].set(0).at[j, sx, sy].set(0)", 0, id="unpacked"),
        pytest.param(".at[..., sx, sy].mul(0).at[..., sx, sy].add(a)", 1, id="one of them twice"),
        pytest.param(".at[i, sx, sy].set(0).at[j, i, i].set(0)", 1, id="one of them"),
        pytest.param(".at[i, wx, wy].set(0).at[j, wx, wy].set(0)", 1, id="of something else"),
        pytest.param(".at[rows, cols].set(a).at[cols, rows].set(a)", 0, id="both triangles"),
        pytest.param(".at[rows, cols].set(a).at[cols, rows].set(-a)", 1, id="of other values"),
        pytest.param(".at[places].set(a).at[0].set(a[0])", 0, id="many places and one"),
        pytest.param(".at[9, self.pos, 0].set(a).at[i, j, 1].set(a).at[..., 3].set(a)", 1, id="a place called pos"),
        pytest.param(".at['mass'].set(a).at['charge'].set(a)", 0, id="leaves of a tree"),
        pytest.param(".at[f'{i}'].set(a).at[f'{j}'].set(a)", 0, id="leaves by names that are made"),
    ],
)
def test_what_a_scatter_makes_slower_or_cannot_join_is_left_alone(writes: str, count: int) -> None:
    code = f"""{HEAD}
@jax.jit
def f(self, x, i, j, a, places):
    face = self.grid_slice
    sx, sy = self.grid_slice
    wx, wy = self.width
    rows, cols = jnp.triu_indices(8)
    return x{writes.replace("face", "face_slice")}
"""
    assert len(list(check_text(code.encode(), "m.py", SCOPE))) == count


@pytest.mark.parametrize(
    ("place", "value", "count"),
    [
        pytest.param("tuple(slice(s, s + n) for s, n in zip(starts, one))", "one", 0, id="blocks of their own sizes"),
        pytest.param("tuple(slice(s, s + 8) for s in one)", "one", 1, id="blocks of one size"),
        pytest.param("one.grid_slice()", "one.values", 0, id="slices of an object"),
        pytest.param("one.grid_slice", "one.values", 0, id="its slices, kept"),
        pytest.param("one.place()", "one.values", 1, id="its place"),
        pytest.param("jnp.asarray(one)", "starts", 0, id="a list of places"),
        pytest.param("np.where(pages == one)", "starts[one]", 0, id="as many as there are"),
        pytest.param("np.where(pages == 3)[0][low]", "starts[one]", 1, id="one of those there are"),
        pytest.param("pages[low:high]", "starts", 0, id="as many as are used"),
        pytest.param("pages[low : low + 8]", "starts", 1, id="always as many"),
        pytest.param("one", "jax.random.permutation(starts, one)", 0, id="shuffled among themselves"),
        pytest.param("one", "starts[: len(one)]", 0, id="of as many"),
        pytest.param("one", "jnp.sin(one)", 1, id="a number"),
    ],
)
def test_pieces_of_sizes_of_their_own_are_left_alone(place: str, value: str, count: int) -> None:
    code = f"""{HEAD}import numpy as np
@jax.jit
def joined(whole, parts, starts, pages, used):
    for one in parts:
        low = one * 8
        high = low + used[one]
        place = {place}
        whole = whole.at[place].set({value})
    return whole
"""
    written_at_once = code.replace("at[place]", f"at[{place}]")
    assert len(list(check_text(code.encode(), "m.py", SCOPE))) == count
    if not place.startswith("pages"):
        assert len(list(check_text(written_at_once.encode(), "m.py", SCOPE))) == count


def test_pieces_of_their_own_shapes_are_not_stacked_as_they_are() -> None:
    code = """\
def padded(arrays, rows):
    whole = jnp.zeros((rows, 8))
    for i, array in enumerate(arrays):
        places = (i, slice(0, array.shape[0]))
        whole = whole.at[places].set(array)
    return whole
"""
    assert "jnp.pad" in advice(code)
    assert "jax.vmap" in advice(code.replace("array.shape[0]", "8"))


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (".at[:k].set(a).at[n:].set(b)", "one jnp.concatenate of the parts"),
        (".at[:k].multiply(0.0).at[1:n].add(b)", "one jnp.concatenate where the parts lie side by side"),
    ],
)
def test_slices_are_no_list_of_indices(writes: str, expected: str) -> None:
    assert advice(f"@jax.jit\ndef f(x, k, n, a, b):\n    return x{writes}\n").startswith(expected)


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        (", dtype=jnp.float64", "; all of it jnp.float64, as now"),
        (", a.dtype", "; all of it a.dtype, as now"),  # b may be a float32 beside a bfloat16
        ("", ""),
        (", None", ""),
    ],
)
def test_what_the_elements_of_blocks_were_said_to_be_they_are_to_be_still(dtype: str, said: str) -> None:
    code = f"def f(n, k, a, b):\n    return jnp.zeros(n{dtype}).at[:k].set(a).at[k].set(b)\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.endswith(f"with jnp.zeros where nothing is written{said}")


def test_blocks_that_are_all_of_one_array_have_its_elements_without_a_word() -> None:
    code = "def f(n, k, a):\n    return jnp.zeros(n, a.dtype).at[:k].set(2 * a[:k]).at[k].set(0)\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.endswith("with jnp.zeros where nothing is written")


@pytest.mark.parametrize(("fill", "expected"), [("zeros", "jax.scipy.linalg.block_diag(a, b)"), ("ones", "jnp.ones")])
def test_blocks_stand_in_what_the_array_was_made_of(fill: str, expected: str) -> None:
    code = f"def f(n, k, a, b):\n    return jnp.{fill}((n, n)).at[:k, :k].set(a).at[k:, k:].set(b)\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert expected in found.suggestion.text


def test_pieces_between_computed_bounds_are_joined() -> None:
    code = """\
def updated(messages, starts, pieces):
    for start, piece in zip(starts, pieces):
        messages = messages.at[start:start + 8].set(piece)
    return messages
"""
    assert "one jnp.concatenate" in advice(code)
    assert "jax.vmap" in advice(code.replace("start:start + 8", "start"))


def test_what_adds_up_at_a_place_that_is_looked_up_is_not_set_at_once() -> None:
    code = """\
def bound(mask, bindings, active):
    for i in range(4):
        before = mask[bindings[i]]
        mask = mask.at[bindings[i]].set(jnp.logical_or(before, active[i]))
    return mask
"""
    assert "mask.at[indices].add(values)`, max or min" in advice(code)
    # At its own number no other step has written.
    assert "mask.at[indices].set(values)" in advice(code.replace("bindings[i]", "i"))


@pytest.mark.parametrize(
    ("array", "is_known"),
    [
        pytest.param("jnp.array([1.0, 1.0, 1.0]).at[2].set(False).at[1].set(0.5)", True, id="numbers"),
        pytest.param("(-jnp.ones(n)).at[n - 1].add(n).at[n // 2].add(n)", True, id="sizes"),
        pytest.param("(2.0 * jnp.ones(n)).at[len(x)].add(1).at[0].add(n)", True, id="a length"),
        pytest.param("jnp.full(n, 3.0).at[2].set(0.0).at[n - 1].set(1.0)", True, id="filled with a number"),
        pytest.param("jnp.full(n, x[0]).at[2].set(0.0).at[1].set(1.0)", False, id="filled with another"),
        pytest.param("jnp.ones(n).at[i].set(0.0).at[n - 1].set(1.0)", False, id="a place that is given"),
        pytest.param("jnp.array([1.0, i]).at[0].set(0.0).at[1].set(1.0)", False, id="an array that is given"),
    ],
)
def test_numbers_at_known_places_are_folded(array: str, is_known: bool) -> None:
    assert is_quiet(array) == is_known


def test_places_that_are_arrays_are_joined_for_they_may_be_of_different_lengths() -> None:
    code = """\
@jax.jit
def unshuffled(x, kept, cut, tokens, mask):
    rows = jnp.arange(8)[:, None]
    return x.at[rows, kept].set(tokens).at[rows, cut].set(mask)
"""
    assert "joined by jnp.concatenate" in advice(code)
    assert "joined by" not in advice(code.replace("jnp.arange(8)[:, None]", "3"))
    stacked = code.replace("rows, kept", "low").replace("rows, cut", "high")
    assert "joined by" not in advice(stacked)
    assert "joined by" in advice(
        stacked.replace("    rows =", "    low = jnp.stack(kept)\n    high = jnp.stack(cut)\n    rows =")
    )


@pytest.mark.parametrize(
    ("writes", "is_said"),
    [
        pytest.param(".at[sets['left'], 1].set(a).at[sets['right'], 1].set(b)", True, id="looked up by name"),
        pytest.param(".at[self.isBc].set(a).at[self.isUnknown].set(b)", True, id="masks of a class"),
        pytest.param(".at[low_filter].set(a).at[high_filter].set(b)", True, id="masks"),
        pytest.param(".at[kept].set(a).at[cut].set(b)", True, id="found"),
        pytest.param(".at[left].set(a).at[right].set(b)", True, id="tuples"),
        pytest.param(".at[pos].set(a).at[goal_pos].set(b)", False, id="one place each"),
        pytest.param(".at[sets[0], 1].set(a).at[sets[1], 1].set(b)", False, id="looked up by number"),
    ],
)
def test_what_is_called_or_looked_up_as_many_places_is_joined_and_has_a_table_of_its_own(
    writes: str, is_said: bool
) -> None:
    code = f"""{HEAD}
@jax.jit
def moved(self, x, a, b, sets, low_filter, high_filter, pos, goal_pos, nodes):
    cut = jnp.flatnonzero(high_filter, size=4)
    left = (sets["left"], 0)
    right = (nodes, 1)
    kept = jnp.flatnonzero(low_filter, size=3)
    return x{writes}
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert ("joined by jnp.concatenate" in found.suggestion.text) == is_said
    assert ("cpu" not in found.targets) == is_said  # where one scatter more is hardly a cost


@pytest.mark.parametrize(
    ("loops", "write", "expected"),
    [
        ("for i in range(0, 64, 8):", "x[i : i + 8, :].set(f(i))", "a list of the blocks, and one jnp.concatenate"),
        ("for i in f(4):", "x[i : i + 8, :].set(f(i))", "a list of the blocks and of what stands around them, if any"),
        ("for i in range(8, 64, 8):", "x[i : i + 8, :].set(f(i))", "the blocks and of what stands around them"),
        (
            "for i, at in enumerate(reversed(f.starts)):",
            "x[:, at : at + f.size].set(f(i))",
            "in the order of their places, and one jnp.concatenate(blocks, axis=1)",
        ),
        ("for i in f(4):", "x[..., i : i + 8, i : i + 8].set(0)", "a mask of all blocks at once"),
        (
            "for i in range(4):\n        for j in f(i):",
            "x[i : i + 8, j : j + 8].set(f(i, j))",
            "one jnp.block(rows)",
        ),
        (
            "for i in range(4):\n        for k in f(i):",
            "x[k, i : i + 8].set(f(i, k))",
            "one jnp.concatenate along the slice's axis for each place, then one jnp.stack",
        ),
        ("for i in range(0, 32, 8):", "x[i : i + 8, i : i + 4].set(f(i))", "one jnp.block of the rows of them"),
    ],
)
def test_blocks_are_put_together_by_what_fits_them(loops: str, write: str, expected: str) -> None:
    body = f"    whole = jnp.zeros((64, 64))\n    {loops}\n            whole = whole.at{write[1:]}\n    return whole\n"
    (found,) = check_text(f"{HEAD}@jax.jit\ndef g(f):\n{body}".encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert expected in found.suggestion.text


@pytest.mark.parametrize(
    ("counted", "write", "count"),
    [
        ("i in range(0, 64, 16)", "[:, i : i + 24].add(f(i))", 0),
        ("i in range(0, 64, 16)", "[:, i : i + 24].max(f(i))", 0),
        ("i in range(0, 64, 16)", "[:, i : i + 24].set(f(i))", 0),
        ("i in range(0, 64, 32)", "[:, i : i + 24].set(f(i))", 1),
        ("i in range(0, 64, 16)", "[:, i : i + 16].add(f(i))", 1),
        ("i in range(64)", "[:, i : i + 16].add(f(i))", 0),
        ("i in range(64)", "[:, i : i + 1].add(f(i))", 1),
        ("i in range(4)", "[:, i * w : (i + 1) * w].add(f(i))", 1),
        ("i in range(4)", "[:, w * i : w * i + w].add(f(i))", 1),
        ("i in range(4)", "[:, w * i : w * i + v].add(f(i))", 0),
        ("i in range(0, 64, v)", "[:, w * i : w * (i + 1)].add(f(i))", 0),
        ("i, v in zip(w, f(w))", "[:, i : i + w].add(v)", 0),
        ("i in range(64)", "[i : i + 16].set(f(i) * x[i : i + 16])", 0),
        ("i in range(0, 64, 16)", "[i : i + 16].set(f(i) * x[i : i + 16])", 1),
    ],
)
def test_what_a_loop_adds_up_is_put_together_from_blocks_where_none_overlaps(
    counted: str, write: str, count: int
) -> None:
    body = f"    x = jnp.zeros((64, 64))\n    for {counted}:\n        x = x.at{write}\n    return x\n"
    code = f"{HEAD}@jax.jit\ndef g(f, w, v):\n{body}"
    assert len(list(check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",))))) == count


def test_a_stack_is_advised_where_the_array_is_seen_to_be_no_longer() -> None:
    code = """\
@jax.jit
def rows(x):
    return jnp.zeros((2, 8)).at[0].set(jnp.sin(x)).at[1].set(x)
"""
    assert advice(code) == "jnp.stack([jnp.sin(x), x])"
    assert "jnp.stack([jnp.sin(x), x])" not in advice(code.replace("(2, 8)", "(len(x), 8)"))


def test_slices_are_not_put_into_an_array_of_indices() -> None:
    code = """\
@jax.jit
def fluxes(flux, s_velocity, mass, momentum):
    return flux.at[0].add(mass).at[s_velocity].add(momentum)
"""
    assert advice(code).startswith("one jnp.concatenate of the parts")
    assert "jnp.where(k == place, momentum, 0)" in advice(code.replace("s_velocity", "place"))


def test_two_writes_at_a_place_that_is_looked_up_are_one_in_a_loop_too() -> None:
    code = """\
def filled(x, places, halos, mask):
    for edge in places:
        place = places[edge]
        x = x.at[place].mul(1 - mask)
        x = x.at[place].add(halos[edge] * mask)
    return x
"""
    once = "x.at[place].set(x[place] * (1 - mask) + halos[edge] * mask)"
    assert advice(code) == f"{once}, where the index names no place twice"


@pytest.mark.parametrize(
    ("writes", "once"),
    [
        (".mul(1 - m).at[1:3].add(h * m)", "x.at[1:3].set(x[1:3] * (1 - m) + h * m)"),
        (".add(h).at[1:3].mul(m - 1)", "x.at[1:3].set((x[1:3] + h) * (m - 1))"),
        (".subtract(h).at[1:3].subtract(m - h)", "x.at[1:3].set(x[1:3] - h - (m - h))"),
        (".set(h + 1).at[1:3].divide(m)", "x.at[1:3].set((h + 1) / m)"),
        (".add(m).at[1:3].set(h)", "x.at[1:3].set(h)"),
        (".add(h).at[1:3].add(m if m.ndim else h)", "x.at[1:3].set(x[1:3] + h + (m if m.ndim else h))"),
        (".add(h).at[1:3].max(m)", "one `.set` of what the writes make of x[1:3]"),
    ],
)
def test_writes_at_one_place_are_one_expression_of_what_stood_there(writes: str, once: str) -> None:
    assert advice(f"@jax.jit\ndef f(x, h, m):\n    return x.at[1:3]{writes}\n") == once


@pytest.mark.parametrize("place", ["left_nodes", "isEdge", "edge_mask", "indexR", "sets['left']"])
def test_what_is_called_like_arrays_is_not_listed_for_they_may_be_of_other_lengths(place: str) -> None:
    head = f"@jax.jit\ndef f(x, {place.partition('[')[0]}, other, a, b):\n"
    code = f"{head}    return x.at[{place}].add(a).at[other].add(b)\n"
    of_masks = ", of a mask its flatnonzero," if "mask" in place else ""
    joined = f"its indices{of_masks} and values joined by jnp.concatenate"
    assert advice(code) == f"one `x.at[...].add(...)`, {joined}"
    named = code.replace(place, "node").replace("sets", "node")
    assert advice(named).startswith("x + jnp.where(k == node, a, 0) + jnp.where(k == other, b, 0)")


@pytest.mark.parametrize(
    ("parameters", "writes", "expected"),
    [
        (
            "ids, tok: int",
            ".at[:, 1:].set(ids[:, :-1]).at[:, 0].set(tok)",
            "[jnp.full(..., tok), ids[:, :-1]], axis=1)",
        ),
        ("ids, tok", ".at[1:].set(ids).at[0].set(tok)", "[jnp.expand_dims(tok, 0), ids], axis=0)"),
        ("a, b, n", ".at[n:].set(a).at[:n].set(b)", "[b, a], axis=0)"),
        ("a: int, b, n", ".at[:n].set(a).at[n:].set(b)", "[jnp.full(..., a), b], axis=0)"),
        ("a: float, b", ".at[0].set(1 - a**2).at[1:].set(b)", "[jnp.full(..., 1 - a**2), b], axis=0)"),
        ("a, b, c", ".at[-2:].set(a).at[4:8].set(b).at[:4].set(c)", "[c, b, a], axis=0)"),
        ("a, b, n", ".at[..., n:].set(a).at[..., :n].set(b)", "[b, a], axis=-1)"),
    ],
)
def test_blocks_are_joined_in_the_order_of_their_places_and_each_has_the_axis(
    parameters: str, writes: str, expected: str
) -> None:
    code = f"{HEAD}@jax.jit\ndef f({parameters}, like):\n    return jnp.zeros_like(like){writes}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(f"jnp.concatenate({expected}")


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        pytest.param(
            ".at[:-1].set(a - b).at[0].set(c).at[-1].set(d)", "[0(c), (a - b)[1:], 0(d)], axis=0)", id="edges"
        ),
        pytest.param(".at[1:].set(a).at[0].set(c).at[-1].set(d)", "[0(c), a[:-1], 0(d)], axis=0)", id="the last of it"),
        pytest.param(".at[:k].set(a).at[0].set(c).at[k:].set(b)", "[0(c), a[1:], b], axis=0)", id="up to a name"),
        pytest.param(".at[k:].set(a).at[k].set(c).at[:k].set(b)", "[b, 0(c), a[1:]], axis=0)", id="from a name"),
        pytest.param(".at[:, 2:5].set(a).at[:, 4].set(c)", "[a[:, :-1], 1(c)], axis=1)", id="an axis further on"),
        pytest.param(
            ".at[..., :9, :].set(a).at[..., 0, :].set(c)", "[-2(c), a[..., 1:, :]], axis=-2)", id="from behind"
        ),
        pytest.param(".at[:9].set(1.0).at[0].set(c)", "[0(c), jnp.full(..., 1.0)], axis=0)", id="a number"),
        pytest.param(".at[1:-1].set(a).at[0].set(c).at[-1].set(d)", "[0(c), a, 0(d)], axis=0)", id="beside it"),
        pytest.param(".at[:k].set(a).at[k].set(c).at[-1].set(d)", "[a, 0(c), 0(d)], axis=0)", id="behind a name"),
        pytest.param(".at[0].set(c).at[:-1].set(a)", None, id="before it"),
        pytest.param(".at[:9].set(a).at[4].set(c)", None, id="inside"),
        pytest.param(".at[:-1].set(a).at[1:].set(b)", None, id="slices"),
        pytest.param(".at[:-1].add(a).at[1:].add(b)", "a sum of the parts", id="sums"),
        pytest.param(".at[:4].set(a).at[-2:].set(b)", "[a, b], axis=0)", id="both ends"),
    ],
)
def test_of_a_piece_that_a_place_is_written_over_the_rest_is_joined(writes: str, expected: str | None) -> None:
    code = f"{HEAD}@jax.jit\ndef f(a, b, c, d, k, like):\n    return jnp.zeros_like(like){writes}\n"
    found = [*check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))]
    said = [each.suggestion.text for each in found if each.suggestion is not None]
    wanted = re.sub(r"(-?\d)\((.)\)", r"jnp.expand_dims(\2, \1)", expected or "")
    assert len(said) == (expected is not None)
    assert all(wanted in text for text in said)


def test_a_name_that_is_written_in_between_is_another_place() -> None:
    code = """
@jax.jit
def f(a, b, n, m, at):
    x = jnp.zeros(64)
    x = x.at[at : at + n].set(a)
    at = at + n
    x = x.at[at : at + n].set(b)
    return jnp.linalg.norm(x)
"""
    assert len(list(check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",))))) == 1
    same = code.replace("    at = at + n\n", "")
    assert not list(check_text((HEAD + same).encode(), "m.py", Scope(("blocks-by-at-set",))))


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ("x.at[:, -n:].set(a).at[:, :n].set(b)", "what is written at the end, axis=1"),
        ("x.at[0].set(a).at[-1].set(b)", "jnp.where(i == 0"),
    ],
)
def test_edges_of_several_rows_are_joined_and_not_compared_with_one(writes: str, expected: str) -> None:
    code = f"{HEAD}@jax.jit\ndef f(x, a, b, n: int):\n    return {writes}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("boundary-writes",)))
    assert found.suggestion is not None
    assert expected in found.suggestion.text


def test_an_index_that_is_written_down_before_is_its_parts() -> None:
    code = """\
@jax.jit
def spread(a, w, c, i, j):
    a = a.at[jnp.index_exp[i, j]].add(w * (1 - c))
    return a.at[np.s_[i, j + 1]].add(w * c)
"""
    assert advice(code) == "a.at[i, jnp.array([j, j + 1])].add(jnp.array([w * (1 - c), w * c]))"


@pytest.mark.parametrize(
    ("shape", "value", "is_joined"),
    [
        ("n", "jnp.ones(m) * active", True),
        ("n", "jnp.ones(()) * active", False),
        ("n", "jnp.sum(active)", False),
        ("(n, m)", "jnp.ones(m) * active", False),
    ],
)
def test_a_row_of_values_in_an_array_of_one_axis_goes_to_many_places(shape: str, value: str, is_joined: bool) -> None:
    code = f"""\
@jax.jit
def connected(first, second, active, n, m):
    return jnp.zeros({shape}).at[first].add({value}).at[second].add({value})
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


def test_columns_and_blocks_of_columns_are_joined() -> None:
    code = """\
@jax.jit
def unmapped(specs, x, y):
    features, at = jnp.ones((8, 64)) * x, 0
    for spec in specs:
        if spec.is_number:
            features = features.at[..., at].set(x[at])
            at += 1
        else:
            features = features.at[..., at : at + spec.size].set(y[at])
            at += spec.size
    return features
"""
    assert "one jnp.concatenate" in advice(code)


@pytest.mark.parametrize(("shape", "is_one"), [("2 * n + 1", True), ("(2 * n + 1,)", True), ("(n, n)", False)])
def test_an_element_of_a_vector_is_a_number_that_fills_its_block(shape: str, is_one: bool) -> None:
    code = f"""{HEAD}
@jax.jit
def weights(a, b, n):
    v = jnp.zeros({shape})
    v = v.at[0].set(a)
    w = jnp.zeros({shape}).at[0].set(a)
    return w.at[1:].set(1 - v[0] / b.ndim)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert ("jnp.full(..., 1 - v[0] / b.ndim)" in found.suggestion.text) == is_one


@pytest.mark.parametrize(
    ("places", "is_joined"), [("jnp.arange(1, n)", True), ("a + jnp.arange(1, n) * 4", True), ("n - 1", False)]
)
def test_places_that_are_ranges_are_joined(places: str, is_joined: bool) -> None:
    code = f"""
@jax.jit
def points(x, a, n):
    first = {places}
    second = {places.replace("1", "n")}
    x = x.at[first, :].set(a)
    return x.at[second, :].set(-a)
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


@pytest.mark.parametrize(
    ("found", "is_joined"),
    [
        ("i, j = jnp.triu_indices(4, 1)", True),
        ("i, j = jnp.nonzero(table, size=4)", True),
        ("i, j = (jnp.array(found) for found in pairs)", True),
        ("i, j = [], []", True),
        ("i, k = jnp.arange(n), 2; j = i + k", True),
        ("i, j = divmod(8, n)", False),
        ("i, j = 0, n", False),
    ],
)
def test_places_found_axis_by_axis_are_joined(found: str, is_joined: bool) -> None:
    code = f"""
@jax.jit
def shares(x, g, n):
    {found}
    x = x.at[i].mul(1.0 - g)
    return x.at[j].mul(1.0 + g)
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


@pytest.mark.parametrize(
    ("one", "other", "is_diagonal"),
    [(":m, :n", "m:, n:", True), (":m, :n", "m:, n + 1:", False), (":m, n:", "m:, :n", False)],
)
def test_two_blocks_that_touch_at_a_corner_are_a_diagonal_of_blocks(one: str, other: str, is_diagonal: bool) -> None:
    code = f"""{HEAD}
@jax.jit
def both(a, b, m, n):
    return jnp.zeros((9, 8)).at[{one}].set(a).at[{other}].set(b)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert (found.suggestion.text == "jax.scipy.linalg.block_diag(a, b)") == is_diagonal


@pytest.mark.parametrize(
    ("made", "places", "is_concatenated"),
    [
        ("jnp.zeros(n)", "jnp.arange(1, n)", True),
        ("jnp.zeros(n)", "jnp.arange(n - 1) + 1", True),
        ("jnp.zeros(n)", "i", False),
        ("2.0 * x", "i", False),
    ],
)
def test_a_number_and_a_range_of_a_new_array_are_its_parts(made: str, places: str, is_concatenated: bool) -> None:
    code = f"""
@jax.jit
def rows(x, a, b, i, n):
    y = {made}
    rest = {places}
    return y.at[0].set(a).at[rest].set(b)
"""
    assert advice(code).startswith("one jnp.concatenate of the parts") == is_concatenated


@pytest.mark.parametrize(("axes", "is_joined"), [("n", True), ("", False), ("...", False)])
def test_places_that_are_said_to_have_axes_are_joined(axes: str, is_joined: bool) -> None:
    code = f"""
from jaxtyping import Array, Int

@jax.jit
def moved(x, a, i: Int[Array, "{axes}"], j: Int[Array, "{axes}"]):
    x = x.at[i].set(a)
    return x.at[j].set(-a)
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        (":n, :n", "n:, n:", "block"),
        (":n, 2", "n:, 1", "block"),
        (":n, 2", "n:, 2", "column"),
        ("0, 0, :n", "0, 0, n:", "column"),
    ],
)
def test_parts_of_a_table_are_blocks_of_it(one: str, other: str, joined: str) -> None:
    code = f"@jax.jit\ndef f(x, a, b, n):\n    return x.at[{one}].set(a).at[{other}].set(b)\n"
    joins, rest = ("concatenate", ", and one write of that") if joined == "column" else (joined, "")
    assert advice(code) == f"one jnp.{joins} of the parts and of what stands between them{rest}"


@pytest.mark.parametrize(
    ("first", "shape", "is_chosen"),
    [("i * 8 // 2", "n", True), ("i * 8 // 2", "(n, 2)", False), ("x", "n", False)],
)
def test_two_numbers_that_fill_a_row_are_chosen_by_place(first: str, shape: str, is_chosen: bool) -> None:
    code = f"""{HEAD}
@jax.jit
def offsets(x, n):
    i, size = jax.lax.axis_index("devices"), jax.lax.psum(1, "devices")
    first, second = {first}, 2 * size - i
    return jnp.zeros({shape}).at[:3].set(first).at[3:].set(second)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert (found.suggestion.text == "jnp.where(jnp.arange(n) < 3, first, second)") == is_chosen


@pytest.mark.parametrize(("places", "is_joined"), [("mesh.node_inds_list", True), ("faces", True), ("starts", False)])
def test_sets_of_places_in_a_list_are_joined(places: str, is_joined: bool) -> None:
    code = f"""\
def bounded(u, mesh, faces, starts):
    for i in range(len({places})):
        u = u.at[{places}[i], 1].set(mesh.values[i])
    return u
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


@pytest.mark.parametrize(
    ("writes", "count"),
    [
        (".at[sink_ids].set(0.0).at[sink_ids].add(flows)", 0),
        (".at[sink_ids].set(0.0, unique_indices=True).at[sink_ids].add(flows)", 1),
        (".at[sink].set(0.0).at[sink].add(flows)", 1),
    ],
)
def test_what_is_added_up_at_places_that_may_be_there_twice_is_left_alone(writes: str, count: int) -> None:
    code = f"{HEAD}@jax.jit\ndef f(v, sink, sink_ids, flows):\n    return v{writes}\n"
    assert len(list(check_text(code.encode(), "m.py", SCOPE))) == count


ROTATED = """
@jax.jit
def rotated(cube, turns, axis, i, rows):
    faces = jnp.array([[0, 1], [2, 3]])[axis]
    cube = cube.at[faces].set(jnp.roll(rows, turns))
    return cube.at[BACK].set(jnp.flip(cube[BACK]))
"""


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        pytest.param("", "", 0, id="a place that may be among them"),
        pytest.param("cube[BACK]", "cube[i]", 0, id="another place"),
        pytest.param(
            "return cube.at[BACK].set(jnp.flip(cube[BACK]))",
            "back = cube[BACK]\n    return cube.at[BACK].set(jnp.flip(back))",
            0,
            id="under a name",
        ),
        pytest.param("at[BACK].set(jnp.flip(cube[BACK]))", "at[i].set(rows).at[UP].set(cube[UP])", 0, id="in a row"),
        pytest.param("cube[BACK]", "rows", 1, id="of another array"),
        pytest.param("return cube", "cube = cube.at[i].set(rows)\n    return cube", 0, id="with one between"),
        pytest.param("cube[BACK]", "cube[faces]", 1, id="what was just written"),
        pytest.param("at[faces]", "at[i]", 1, id="one place"),
        pytest.param("jnp.array([[0, 1], [2, 3]])[axis]", "np.array([0, 1])", 1, id="that Python knows"),
        pytest.param("at[faces]", "at[FACES]", 1, id="written out before"),
    ],
)
def test_a_value_that_needs_what_a_write_at_traced_places_may_have_left_is_no_chain(
    old: str, new: str, count: int
) -> None:
    code = f"import numpy as np\n{HEAD}{ROTATED.replace(old, new)}"
    assert len(list(check_text(code.encode(), "m.py", SCOPE))) == count


def test_of_other_components_nothing_is_needed() -> None:
    code = """
@jax.jit
def moved(x, faces, a, i):
    x = x.at[faces, 0].set(a)
    return x.at[faces, 1].set(x[i, 1])
"""
    assert len(list(check_text((HEAD + code).encode(), "m.py", SCOPE))) == 1
    assert not list(check_text((HEAD + code.replace("x[i, 1]", "x[i, 0]")).encode(), "m.py", SCOPE))


EVERYWHERE, TPU = ("cpu", "h100", "v5e"), ("v5e",)


@pytest.mark.parametrize(
    ("shape", "writes", "read", "targets"),
    [
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "x - 2 * y", TPU, id="the first axis"),
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "y", EVERYWHERE, id="returned"),
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "x - y, y", EVERYWHERE, id="returned too"),
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "x - y[1:]", EVERYWHERE, id="a part of it"),
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "x @ y", EVERYWHERE, id="a product"),
        pytest.param("x.shape", ".at[1:].set(a).at[0].set(b)", "[x * y for _ in y.shape]", TPU, id="and its shape"),
        pytest.param(
            "x.shape", ".at[1:].set(a).at[0].set(b)", "jax.lax.map(lambda r: r * y, x)", EVERYWHERE, id="loop"
        ),
        pytest.param("x.shape", ".at[1:].add(a).at[0].add(b)", "x - 2 * y", TPU, id="sums"),
        pytest.param("x.shape", ".at[..., 1:].set(a).at[..., 0].set(b)", "x - y", (), id="the last axis"),
        pytest.param("x.shape", ".at[..., 1:].set(a).at[..., 0].set(b)", "y", EVERYWHERE, id="the last one, returned"),
        pytest.param("x.shape", ".at[..., 1:].add(a).at[..., 0].add(b)", "x - y", TPU, id="its sums"),
        pytest.param("x.shape", ".at[:, :, 1:].set(a).at[:, :, 0].set(b)", "x - y", (), id="the last of three"),
        pytest.param("x.shape", ".at[:, 1:].set(a).at[:, 0].set(b)", "x - y", EVERYWHERE, id="of two"),
        pytest.param("x.shape", ".at[:, 1:, :].set(a).at[:, 0].set(b)", "x - y", TPU, id="of three"),
        pytest.param("(8, 9)", ".at[:, 1:].set(a).at[:, 0].set(b)", "x - y", EVERYWHERE, id="columns"),
        pytest.param("(8, 9)", ".at[..., 1:].set(a).at[..., 0].set(b)", "x - y", EVERYWHERE, id="of a matrix"),
        pytest.param("(2, 8, 9)", ".at[:, 1:].set(a).at[:, 0].set(b)", "x - y", TPU, id="the middle one"),
        pytest.param("(2, 8, 9)", ".at[:, :, 1:].set(a).at[:, :, 0].set(b)", "x - y", (), id="seen to be the last"),
        pytest.param("x.shape", ".at[1:, 1:].set(a).at[:1, 1:].set(b)", "x - y", EVERYWHERE, id="along two"),
    ],
)
def test_blocks_that_arithmetic_alone_reads_cost_a_gpu_nothing(
    shape: str, writes: str, read: str, targets: tuple[str, ...]
) -> None:
    code = f"@jax.jit\ndef f(x, a, b):\n    y = jnp.zeros({shape}){writes}\n    return {read}\n"
    found = [*check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",)))]
    assert [each.targets for each in found] == [targets] * bool(targets)


@pytest.mark.parametrize(
    ("shape", "read", "targets"),
    [
        ("(64, 9)", "1 - out", TPU),
        ("(64, 9)", "out", EVERYWHERE),
        ("(9, 64)", "1 - out", EVERYWHERE),
        ("(4, 9, 64)", "1 - out", TPU),
    ],
)
def test_so_do_those_of_a_loop_but_for_columns(shape: str, read: str, targets: tuple[str, ...]) -> None:
    index = ", ".join([":"] * (shape.count(",") if shape.endswith("64)") else 0) + ["8 * i : 8 * i + 8"])
    code = f"""{HEAD}
@jax.jit
def f(parts):
    out = jnp.zeros({shape})
    for i in range(8):
        out = out.at[{index}].set(jnp.sin(parts[i]))
    return {read}
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.targets == targets


@pytest.mark.parametrize(("places", "is_joined"), [("indices", True), ("place", False)])
def test_sets_of_places_that_a_loop_goes_over_are_joined(places: str, is_joined: bool) -> None:
    code = f"""\
def wrapped(q, groups):
    for name, {places} in groups:
        q = q.at[{places}].set(jnp.floor(q[{places}]))
    return q
"""
    assert ("joined by jnp.concatenate" in advice(code)) == is_joined


@pytest.mark.parametrize(
    ("shape", "writes", "expected"),
    [
        ("(n, 2 * k)", ".at[:, 0::2].set(a).at[:, 1::2].set(b)", "`jnp.stack([a, b], axis=2).reshape(x.shape)`"),
        ("(n, 8)", ".at[:, 1::2].set(a).at[:, ::2].set(b)", "`jnp.stack([b, a], axis=2).reshape(x.shape)`"),
        ("(n, k * 2)", ".at[..., ::2].set(a).at[..., 1::2].set(b)", "`jnp.stack([a, b], axis=-1).reshape(x.shape)`"),
        ("3 * n", ".at[::3].set(a).at[1::3].set(b).at[2::3].set(c)", "`jnp.stack([a, b, c], axis=1).reshape(x.shape)`"),
        (
            "(n, k)",
            ".at[:, ::2].set(jnp.sin(a)).at[:, 1::2].set(-jnp.cos(a))",
            "`jnp.stack([jnp.sin(a), -jnp.cos(a)], axis=2).reshape(x.shape)`",
        ),
        (
            "(n, k)",
            ".at[:, ::2].set(-c[:, 1::2]).at[:, 1::2].set(c[:, ::2])",
            "`jnp.stack([-c[:, 1::2], c[:, ::2]], axis=2).reshape(x.shape)`",
        ),
        ("(n, k, 2)", ".at[..., ::2, :].set(a).at[..., 1::2, :].set(b)", None),
        ("(n, 6)", ".at[:, 0::3].set(a).at[:, 1::3].set(b)", None),
        ("(n, 6)", ".at[:, 0::2].add(a).at[:, 1::2].add(b)", None),
        ("(6, 6)", ".at[0::2, :].set(a).at[:, 1::2].set(b)", None),
    ],
)
def test_what_goes_to_every_second_place_is_stacked_and_laid_side_by_side(
    shape: str, writes: str, expected: str | None
) -> None:
    text = advice(f"@jax.jit\ndef f(n, k, a, b, c):\n    x = jnp.zeros({shape})\n    return x{writes}\n")
    if expected is None:
        assert "reshape" not in text
    else:
        assert text == f"{expected}, of values in the shape of their parts; along the last axis a TPU gains little"


@pytest.mark.parametrize(
    "made",
    ["jnp.zeros((n, k))", "jnp.zeros((n, 2 * k - 1))", "jnp.zeros((2 * n, k))", "jnp.zeros((n, 7))", "jnp.sin(a)"],
)
@pytest.mark.parametrize("values", [("a", "b[:, :-1]"), ("-c[:, ::2]", "c[:, 1::2]")])
def test_parts_that_may_be_of_two_lengths_are_padded_first(made: str, values: tuple[str, str]) -> None:
    one, other = values
    writes = f"x.at[:, ::2].set({one}).at[:, 1::2].set({other})"
    text = advice(f"@jax.jit\ndef f(n, k, a, b, c):\n    x = {made}\n    return {writes}\n")
    assert text.startswith("one jnp.stack(..., axis=2) of values in the shape of their parts, a shorter one padded")
    assert "[a, b" not in text


@pytest.mark.parametrize("length", [6, 7])
def test_padded_stacked_and_cut_they_are_what_is_written(length: int) -> None:
    a, b = np.ones((3, -(-length // 2))), 2 * np.ones((3, length // 2))
    written = np.zeros((3, length))
    written[:, ::2], written[:, 1::2] = a, b
    laid = np.stack([a, np.pad(b, ((0, 0), (0, length % 2)))], axis=2).reshape(3, -1)[:, :length]
    assert (laid == written).all()


@pytest.mark.parametrize(("method", "is_sum"), [("add", True), ("set", False), ("mul", False)])
def test_slices_that_are_added_may_overlap_whoever_knows_their_places(method: str, is_sum: bool) -> None:
    code = f"@jax.jit\ndef f(x, r):\n    x = x.at[:-1].{method}(-r[1:])\n    return x.at[1:].{method}(-r[:-1])\n"
    assert ("a sum of them behind jnp.pad where they overlap" in advice(code)) == is_sum


@pytest.mark.parametrize(
    "unpacked", ["x, m = state", "x, m = state[0], state[1]", "m = state[1]\n        x = state[0]"]
)
@pytest.mark.parametrize(
    ("loop", "is_scattered"),
    [
        ("jax.lax.while_loop(lambda s: s[1] > 2, merge, (x, n))", True),
        ("jax.lax.fori_loop(2, n, lambda i, s: merge(s), (x, n))", False),
        ("merge((x, n))", False),
    ],
)
def test_what_a_loop_carries_is_written_in_place_and_not_made_anew(
    loop: str, is_scattered: bool, unpacked: str
) -> None:
    code = f"""
@jax.jit
def merged(x, n):
    def merge(state):
        {unpacked}
        i, j = m - 2, m - 1
        x = x.at[i].set(x[i] + x[j])
        x = x.at[j].set(0.0)
        return x, m - 1
    return {loop}
"""
    text = advice(code)
    assert text.startswith("x.at[jnp.array([i, j])].set(jnp.array([x[i] + x[j], 0.0]))") == is_scattered
    assert text.startswith("jnp.where(k == j, 0.0, ") != is_scattered


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (".at[:k].set(a).at[k:].set(b)", "[a, b], axis=0), each in the shape of its part"),
        (
            ".at[1:-1].set(b).at[0].set(a).at[-1].set(a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6])",
            "[jnp.expand_dims(a, 0), b, jnp.expand_dims(part_3, 0)], axis=0), each in the shape of its part",
        ),
        (
            ".at[:-1].set(b).at[0].set(a).at[-1].set(a)",
            "b[1:], jnp.expand_dims(a, 0)], axis=0), each in the shape of its part",
        ),
        (".at[1:-1].set(b).at[-1].set(a)", "each in the shape of its part, with jnp.zeros where nothing is written"),
        (".at[:k].set(a).at[n:].set(b)", "each in the shape of its part, with jnp.zeros where nothing is written"),
    ],
)
def test_of_blocks_that_are_all_there_is_nothing_else_is_told(writes: str, expected: str) -> None:
    code = f"def f(n, m, k, a, b):\n    return jnp.zeros(m){writes}\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.endswith(expected)


MASKED = """
class Decoder:
    def __call__(self, x, kept_indices, mask_indices):
        token = self.param("mask", init, (1, 1, 256))
        rows = jnp.arange(8)[:, None]
        y = jnp.zeros((8, 196, 256))
        y = y.at[rows, kept_indices].set(x)
        y = y.at[rows, mask_indices].set(token)
        return jnp.tanh(y)
"""


@pytest.mark.parametrize(
    ("old", "new", "is_begun"),
    [
        ("(1, 1, 256)", "(1, 1, 256)", True),
        (".set(token)", ".set(0.5)", True),
        ("(1, 1, 256)", "(8, 1, 256)", False),
        ("jnp.zeros((8, 196, 256))", "x + 1", False),
    ],
)
def test_what_is_the_same_at_all_its_places_is_begun_with(old: str, new: str, is_begun: bool) -> None:
    code = "import jax\nimport jax.numpy as jnp\nfrom flax import linen as nn\n\n" + MASKED.replace(
        "class Decoder:", "class Decoder(nn.Module):\n    @jax.jit"
    ).replace(old, new)
    (found,) = check_text(code.encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("where the two are all places there are, begin with") == is_begun


def test_strips_that_are_added_along_several_axes_are_one_sum() -> None:
    rows, columns = "u.at[:n].add(a).at[-n:].add(a)", "u.at[:, :n].add(b).at[:, -n:].add(b)"
    code = f"{HEAD}@jax.jit\ndef f(u, n, a, b):\n    u = {rows}\n    return {columns}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("boundary-writes",)))
    assert found.suggestion is not None
    assert found.suggestion.text == "one sum of u and all that is added, each brought to its place by jnp.pad"


def test_one_column_of_each_row_is_compared_and_not_scattered() -> None:
    made = "rows = jnp.arange(k.shape[0])\n    m = jnp.zeros((k.shape[0], 12))\n    k = jnp.clip(k, 0, 10)"
    text = advice(f"@jax.jit\ndef f(k, a):\n    {made}\n    return m.at[rows, k].add(1 - a).at[rows, k + 1].add(a)\n")
    assert text.startswith(
        "a sum of `jnp.where(jnp.arange(m) == column[:, None], value[:, None], 0)`, one for each write"
    )


@pytest.mark.parametrize(
    ("places", "targets"),
    [
        (("ix, iy", "ix, iy + 1"), ("h100",)),
        (("ix, iy", "iy, ix"), ("cpu", "h100", "v5e")),
    ],
    ids=["the places around each", "any places"],
)
def test_weights_that_are_spread_over_places_are_those_of_many_points(
    places: tuple[str, str], targets: tuple[str, ...]
) -> None:
    one, other = places
    writes = f"a.at[{one}].add(w * cx, mode='drop').at[{other}].add((w - cx) * x, mode='drop')"
    code = f"{HEAD}@jax.jit\ndef spread(a, w, cx, x, ix, iy):\n    return {writes}\n"
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert tuple(found.targets) == targets
    assert "mode='drop'" in found.suggestion.text
