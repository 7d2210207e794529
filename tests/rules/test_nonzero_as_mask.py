"""nonzero-as-mask: `argmax` counts through all axes of a mask, as only `flatnonzero` does."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        ("jnp.nonzero(m, size=1)[0][0]", "jnp.argmax(m != 0)"),
        ("jnp.where(m, size=1)[0][0]", "jnp.argmax(m != 0)"),
        ("jnp.flatnonzero(m, size=1)[0]", "jnp.argmax(m != 0)"),
        ("jnp.flatnonzero(m, size=1, fill_value=None)[0]", "jnp.argmax(m != 0)"),
        (
            "jnp.nonzero(m, size=1, fill_value=-1)[0][0]",
            "jnp.where(m.any(), jnp.argmax(m != 0), -1)",
        ),
        ("jnp.nonzero(m, size=1, fill_value=INVALID)[0][0]", "jnp.where(m.any(), jnp.argmax(m != 0), INVALID)"),
        ("jnp.flatnonzero(m, size=1, fill_value=len(m))[0]", "jnp.where(m.any(), jnp.argmax(m != 0), len(m))"),
        (
            "jnp.flatnonzero(m, size=1, fill_value=m.shape[0])[0]",
            "jnp.where(m.any(), jnp.argmax(m != 0), m.shape[0])",
        ),
        (
            "jnp.flatnonzero(m == 2, size=1, fill_value=9)",
            "hits = m == 2; jnp.where(hits.any(), jnp.argmax(hits), 9)[None]",
        ),
    ],
)
def test_the_first_hit_is_argmax_of_a_mask_with_one_axis(first: str, advice: str) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(m):\n    return {first}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("i.min()", 1),
        ("24 - jnp.min(jnp.nan_to_num(i, nan=100))", 1),
        ("i.max() - i.min()", 1),
        ("i.sum()", 0),
        ("i.min() + i[0]", 0),
        ("jnp.sin(i.min() + i)", 0),
    ],
)
def test_the_least_and_the_greatest_place_need_no_places(read: str, count: int) -> None:
    code = (
        f"import jax.numpy as jnp\n\ndef f(x):\n    i = jnp.where(x > 0, size=24, fill_value=9)[0]\n    return {read}\n"
    )
    assert len(check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))) == count


def test_what_stands_for_none_has_to_be_seen() -> None:
    code = b"import jax.numpy as jnp\n\ndef f(m, n):\n    return jnp.flatnonzero(m, size=1, fill_value=n)[0]\n"
    assert check_text(code, "m.py", Scope(("nonzero-as-mask",))) == ()


def test_of_numbers_the_first_hit_is_the_first_that_is_not_0() -> None:
    """`argmax` of months would find the last one."""
    code = (
        "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(months, first):\n"
        "    after = jnp.where(months > first, months, 0)\n    return jnp.nonzero(after, size=1)[0][0]\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text == "jnp.argmax(after != 0)"


@pytest.mark.parametrize(("static", "count"), [("static_argnums=(0, 1)", 0), ("static_argnums=(1,)", 1)])
def test_what_a_static_object_holds_is_looked_through_when_the_program_is_compiled(static: str, count: int) -> None:
    code = (
        "from functools import partial\n\nimport jax\nimport jax.numpy as jnp\n\nclass Model:\n"
        f"    @partial(jax.jit, {static})\n    def first(self, n, x):\n"
        "        return x[jnp.where(self.growth == 1, size=1)[0][0]] + n\n"
    )
    assert len(check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))) == count


@pytest.mark.parametrize(
    ("assigned", "advice"),
    [
        ("(r,), (l,) = jnp.where(m, size=1)", "jnp.unravel_index(jnp.argmax(m != 0)[None], m.shape)"),
        ("[r], [l] = jnp.nonzero(m, size=1)", "jnp.unravel_index(jnp.argmax(m != 0)[None], m.shape)"),
        (
            "r, l = jnp.where(m, size=1)",
            "jnp.unravel_index(jnp.argmax(m != 0)[None], m.shape)",
        ),
    ],
)
def test_a_place_that_is_taken_out_of_an_array_of_one_is_a_number_already(assigned: str, advice: str) -> None:
    """`(r,), (l,) = jnp.unravel_index(jnp.argmax(m), m.shape)` is an error: a number cannot be taken apart."""
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(m):\n    {assigned}\n    return r + l\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


@pytest.mark.parametrize(
    ("mask", "is_fixed"),
    [
        ("wall.position == position", False),
        ("wall.position == 3", True),
        ("wall.position == jnp.max(position)", True),
        ("position > 0.5", True),
        ("jnp.unique(wall.position, size=9) == position", True),
    ],
)
def test_what_is_compared_with_no_number_may_have_more_axes(mask: str, is_fixed: bool) -> None:
    """Of rows of coordinates `argmax` counts the coordinates."""
    head = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(wall, position):\n    "
    code = f"{head}i = jnp.where({mask}, size=1)[0][0]\n    return wall.position[i]\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert bool(found.suggestion.edits) is is_fixed
    assert ("where it has more" in found.suggestion.text) is not is_fixed


@pytest.mark.parametrize(
    ("behind", "advice"),
    [
        ("side.at[i, :].set(0)", "jnp.where(m.any(), jnp.argmax(m.any(axis=-1)), -1)[None]"),
        ("side[i, 0]", "jnp.where(m.any(), jnp.argmax(m.any(axis=-1)), -1)[None]"),
        ("side.at[i].set(0)", "hits = side == -1; jnp.where(hits.any(), jnp.argmax(hits), -1)[None]"),
        ("side[i, None]", "hits = side == -1; jnp.where(hits.any(), jnp.argmax(hits), -1)[None]"),
    ],
)
def test_of_what_is_read_by_rows_elsewhere_the_first_row_with_a_hit_is_looked_for(behind: str, advice: str) -> None:
    """`argmax` of an order book counts all of its fields."""
    head = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(side):\n    "
    code = f"{head}i = jnp.where(side == -1, size=1, fill_value=-1)[0]\n    return {behind}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text.partition(", where m")[0] == advice
    assert bool(found.suggestion.edits) is advice.startswith("hits")


def test_what_all_gives_is_a_mask() -> None:
    code = (
        "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x):\n"
        "    gone = jnp.all(jnp.isnan(x), axis=1)\n    return jnp.nonzero(gone, size=1)[0][0]\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("nonzero-as-mask",)))
    assert found.suggestion is not None
    assert found.suggestion.text == "jnp.argmax(gone)"
