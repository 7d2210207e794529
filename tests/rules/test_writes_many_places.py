"""Places of which nobody sees that they are one number each: no mask compares an axis with them."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp
KEPT = jnp.array(jnp.load("kept.npy"))
KEPT = KEPT[KEPT > 0]

@jax.jit
def merged(x, halo, kept, count):
    {before}
    total = jnp.zeros_like(x)
    total = total.at[{one}].add(x * 0.1)
    total = total.at[{other}].add(x * 0.9)
    return total
"""


def told(before: str, one: str, other: str) -> str:
    text = CODE.format(before=before, one=one, other=other)
    (found,) = check_text(text.encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    return found.suggestion.text


@pytest.mark.parametrize(
    ("before", "one", "other"),
    [
        ('own = jnp.arange(count).astype("i8")', "halo", "own"),
        ("own = jnp.arange(count)[kept]", "own", "halo"),
        ("", "KEPT", "halo"),
    ],
)
def test_places_beside_an_array_of_places_are_arrays_too(before: str, one: str, other: str) -> None:
    text = told(before, one, other)
    assert text.startswith("one `total.at[...].add(...)`, its indices and values joined by jnp.concatenate")


def test_of_places_of_which_nothing_is_seen_it_is_said_what_holds_for_arrays() -> None:
    text = told("", "halo", "kept")
    assert "jnp.where(k == halo, x * 0.1, 0)" in text
    assert text.endswith("; of places that are arrays one `.add` at all of them, joined as their values are")


def test_a_number_that_is_chosen_is_no_array_of_places() -> None:
    chosen = "own = jnp.where(kept[count] < 0, count, kept[count])"
    assert "joined by" not in told(chosen, "own", "halo")
    assert "joined by" in told("own, = jnp.where(kept > 0, size=4)", "own", "halo")


@pytest.mark.parametrize(("before", "one", "other"), [("", "0", "1"), ("i, j = 2, 3", "i", "j")])
def test_of_what_counts_nothing_is_said_of_arrays(before: str, one: str, other: str) -> None:
    assert "arrays" not in told(before, one, other)


def test_what_is_added_at_many_places_is_added_to_the_array_and_not_put_in_its_place() -> None:
    writes = "".join(f".at[{i}].add(jnp.sin(x[{i}]) * 0.1 + x[{i + 1}])" for i in range(5))
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef step(state, x):\n    return state{writes}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("state + jnp.where(k == i, value, 0), one for each place, with `k =")


@pytest.mark.parametrize(
    ("shape", "is_long"), [("6", False), ("(6, n)", False), ("n", True), ("(2 * n, 6)", True), ("600", True)]
)
def test_a_stack_lists_no_long_array(shape: str, is_long: bool) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def modes(a, b, n):
    return jnp.zeros({shape}).at[0].set(a).at[1].set(b)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("jnp.stack([...]) of the parts and of what is left as it was")
    assert ("; of a long array jnp.where(k == 1, b, jnp.where(k == 0, a, " in found.suggestion.text) is is_long


@pytest.mark.parametrize(("table", "is_many"), [("SETS", True), ("_ROW_INDEX", False), ("layout.idx", False)])
def test_what_an_index_holds_under_a_name_is_one_number(table: str, is_many: bool) -> None:
    text = told("", f"{table}['left']", f"{table}['right']")
    assert ("joined by jnp.concatenate" in text) is is_many


RANKS = """
import jax
import jax.numpy as jnp

@jax.jit
def mask(indices, valid, x):
    {writes}
    return x
"""


@pytest.mark.parametrize(
    ("writes", "times"),
    [
        ("x = x.at[indices[:, jnp.newaxis], valid].set(1)\n    x = x.at[indices, indices].set(0)", 0),
        ("x = x.at[indices[:, None], valid].set(1)\n    x = x.at[indices, indices].set(0)", 0),
        ("x = x.at[indices[:, None], valid].set(1)\n    x = x.at[indices[:, None], valid + 1].set(0)", 1),
        ("x = x.at[indices, valid].set(1)\n    x = x.at[indices, indices].set(0)", 1),
        (
            "x = x.at[indices[:, None], valid].set(1)\n    x = x.at[indices, indices].set(0)\n"
            "    x = x.at[valid, indices].set(2)",
            1,
        ),
    ],
)
def test_a_grid_of_places_and_a_diagonal_of_them_are_not_joined(writes: str, times: int) -> None:
    found = check_text(RANKS.format(writes=writes).encode(), "m.py", Scope(("chained-at-set",)))
    assert len(found) == times
    assert all("written 2 times" in one.message for one in found)


ROPE = """
import jax
import jax.numpy as jnp

@jax.jit
def interleaved(x, n):
    t = x[0]
    h_slice = slice(1, n * 3{step})
    t = t.at[..., h_slice].set(x[1, ..., h_slice])
    w_slice = slice(n * 3, n * 6{step})
    return t.at[..., w_slice].set(x[2, ..., w_slice])
"""


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        (", 3", "one jnp.where with a mask: compare"),
        ("", "one jnp.concatenate of the parts where they lie side by side"),
    ],
)
def test_rows_with_others_between_them_do_not_lie_side_by_side(step: str, advice: str) -> None:
    (found,) = check_text(ROPE.format(step=step).encode(), "m.py", Scope(("chained-at-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(advice)


@pytest.mark.parametrize(("value", "count"), [("jnp.ravel({})", 0), ("{}", 1)])
def test_no_trace_hands_out_values_to_the_hits_of_a_mask(value: str, count: int) -> None:
    """Which of them stands where is not known: nothing is gained by one write to the hits of both."""
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def filled(x, image_mask, audio_mask, images, audio):
    x = x.at[image_mask].set({value.format("images")})
    return x.at[audio_mask].set({value.format("audio")})
"""
    assert len(check_text(code.encode(), "m.py", Scope(("chained-at-set",)))) == count


@pytest.mark.parametrize(("kept", "is_fixed"), [("jnp.array([*range(n)])", False), ("n + 1", True), ("3", True)])
def test_what_an_object_keeps_is_as_many_places_as_it_was_made_of(kept: str, is_fixed: bool) -> None:
    """`self.joints_idx` is called as one number of a layout is, and may be an array: no mask compares with it."""
    text = (
        "import jax\nimport jax.numpy as jnp\n\nclass Robot:\n"
        f"    def __init__(self, n):\n        self.a_idx = 0\n        self.b_idx = {kept}\n\n"
        "    def scaled(self, x, a):\n        x = x.at[self.a_idx].set(a)\n"
        "        x = x.at[self.b_idx].set(2.0 * a)\n        return x * 2\n\n"
        "robot = Robot(4)\nscaled = jax.jit(robot.scaled)\n"
    )
    found = check_text(text.encode(), "m.py", Scope(("chained-at-set",)))
    assert any(each.suggestion is not None and each.suggestion.edits for each in found) is is_fixed
