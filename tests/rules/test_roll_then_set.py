"""roll-then-set: what is joined has the axes of what it is joined to."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

ROLLED = """
import jax
import jax.numpy as jnp

@jax.jit
def before(dones, new):
    return {write}
"""


@pytest.mark.parametrize(
    ("write", "joined"),
    [
        ("jnp.roll(dones, 1, axis=0).at[0].set(False)", "[jnp.full_like(dones[:1], False), dones[:-1]]"),
        ("jnp.roll(dones, -2, axis=0).at[-2:].set(0.0)", "[dones[2:], jnp.full_like(dones[:2], 0.0)]"),
        ("jnp.roll(dones, 1, axis=0).at[0].set(new)", "[jnp.full_like(dones[:1], new), dones[:-1]]"),
        ("jnp.roll(dones, -1, axis=0).at[-1:].set(new)", "[dones[1:], jnp.full_like(dones[:1], new)]"),
        ("jnp.roll(dones, 2, axis=0).at[0:2].set(new)", "[jnp.full_like(dones[:2], new), dones[:-2]]"),
        ("jnp.roll(dones, 2, axis=0).at[:2].set((1, 2))", "[jnp.full_like(dones[:2], jnp.array((1, 2))), dones[:-2]]"),
        ("jnp.roll(dones, n, axis=0).at[:n].set(new[-n:])", "[jnp.full_like(dones[:n], new[-n:]), dones[:-n]]"),
    ],
)
def test_what_is_written_is_brought_to_the_shape_and_the_dtype_of_its_place(write: str, joined: str) -> None:
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    assert found.suggestion.text == f"jnp.concatenate({joined}): one kernel"
    assert [edit.text for edit in found.suggestion.edits] == [f"jnp.concatenate({joined})"]


@pytest.mark.parametrize(
    ("write", "joined"),
    [
        ("jnp.roll(x, 1, axis=1).at[:, 0].set(0)", "[jnp.full_like(x[:, :1], 0), x[:, :-1]], axis=1"),
        ("jnp.roll(x, -1, 1).at[:, -1].set(v)", "[x[:, 1:], jnp.full_like(x[:, 0], v)[:, None]], axis=1"),
        ("jnp.roll(x, 2, axis=-1).at[..., :2].set(v)", "[jnp.full_like(x[..., :2], v), x[..., :-2]], axis=-1"),
        (
            "jnp.roll(x, -1, axis=-1).at[:, :, -1].set(w)",
            "[x[:, :, 1:], jnp.full_like(x[:, :, 0], w)[:, :, None]], axis=-1",
        ),
        (
            "jnp.roll(x, 1, axis=-1).at[..., 0].set(jnp.nan)",
            "[jnp.full_like(x[..., :1], jnp.nan), x[..., :-1]], axis=-1",
        ),
        ("jnp.roll(x, 1, axis=0).at[0, :, :].set(w)", "[jnp.full_like(x[:1], w), x[:-1]]"),
        ("jnp.roll(x, -2, axis=0).at[-2:].set(w)", "[x[2:], jnp.full_like(x[:2], w)]"),
    ],
)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_the_join_computes_what_the_roll_and_the_write_do(write: str, joined: str, dtype: str) -> None:
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    (edit,) = found.suggestion.edits
    assert "".join(edit.text.split()).replace(",]", "]").replace(",)", ")") == f"jnp.concatenate({joined})".replace(
        " ", ""
    )
    x = jnp.arange(24.0).reshape(2, 3, 4).astype(dtype)
    values = {"x": x, "v": jnp.float32(2.5), "w": jnp.arange(4.0 if "axis=0" in write else 3.0)}
    was, now = (eval(code, {"jnp": jnp, **values}) for code in (write, edit.text))
    assert was.dtype == now.dtype
    assert jnp.array_equal(was, now, equal_nan=dtype in ("float32", "bfloat16"))


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("h = jnp.roll(x, 1, axis=0)\n    return h.at[0].set(v)", "return J[F(x[:1], v), x[:-1]])"),
        (
            "x = jnp.roll(x, 1, axis=0)\n    x = x.at[0].set(v)\n    return x",
            "x = J[F(x[:1], v), x[:-1]])\n    return x",
        ),
        (
            "h = jnp.roll(s.h, 1, axis=0)\n    return h.at[0].set(v)",
            "return J[F(s.h[:1], v), s.h[:-1]])",
        ),
        (
            "h = jnp.roll(s.h, 1, axis=0)\n    s.h = v\n    return h.at[0].set(v)",
            "h = s.h\n    s.h = v\n    return J[F(h[:1], v), h[:-1]])",
        ),
        (
            "h = jnp.roll(x + 1, 1, axis=0)\n    return h.at[0].set(v)",
            "h = x + 1\n    return J[F(h[:1], v), h[:-1]])",
        ),
        (
            "h = jnp.roll(x, 1, axis=0)\n    x = v\n    return h.at[0].set(v)",
            "h = x\n    x = v\n    return J[F(h[:1], v), h[:-1]])",
        ),
        (
            "h = jnp.roll(x, 1, axis=0)  # why\n    return h.at[0].set(v)",
            "h = x  # why\n    return J[F(h[:1], v), h[:-1]])",
        ),
        ("return jnp.roll(x + 1, 1, axis=0).at[0].set(v)", None),
        ("return jnp.roll(x, 1, axis=0).astype(int).at[0].set(v)", None),
        ("return jnp.roll(x, 64).at[0].set(v)", None),
        ("return jnp.roll(x, 1, axis=0).at[0].set(v, mode='drop')", None),
        ("return jnp.roll(x, 1, axis=0).at[0, 1:-1].set(v)", None),
    ],
)
def test_the_roll_goes_where_what_was_rolled_is_the_same_at_the_write(body: str, left: str | None) -> None:
    head = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef before(x, s, v):\n    "
    scope = Scope(("roll-then-set",))
    code = f"{head}{body}\n"
    found = check_text(code.encode(), "m.py", scope)
    after = fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()
    if left is not None:
        left = left.replace("J[", "jnp.concatenate([").replace("F(", "jnp.full_like(")
    assert found
    assert after == (code if left is None else f"{head}{left}\n")


def test_only_a_number_that_each_dtype_has_is_safe() -> None:
    for value, is_safe in (("0", True), ("False", True), ("-1000", False), ("new", False)):
        code = ROLLED.format(write=f"jnp.roll(dones, 1, axis=0).at[0].set({value})")
        (found,) = check_text(code.encode(), "m.py", Scope(("roll-then-set",)))
        assert found.suggestion is not None
        assert found.suggestion.safe is is_safe


def test_without_an_axis_only_what_has_one_is_joined() -> None:
    """Of two axes, `jnp.roll(x, -1)` moves single elements from row to row, and a concatenate whole rows."""
    write = "jnp.roll(dones, -1).at[-1].set(0.0)"
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    assert ": one kernel, where the array has one axis" in found.suggestion.text


def test_what_moves_elements_by_the_length_of_a_row_says_of_which() -> None:
    write = "jnp.roll(dones, 64).at[0].set(new)"
    (found,) = check_text(ROLLED.format(write=write).encode(), "m.py", Scope(("roll-then-set",)))
    assert found.suggestion is not None
    assert ", where a row has 64 elements: without" in found.suggestion.text


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("jnp.zeros((8, 64))", 1),
        ("(-jnp.ones((8, 2 * 32))).at[0, :].set(START)", 1),
        ("jnp.zeros((8, n))", 1),
        ("jnp.zeros((8, 4, 4))", 0),
        ("jnp.zeros((8, 66))", 0),
    ],
)
def test_what_moves_by_another_number_than_a_row_has_is_not_what_is_set(made: str, count: int) -> None:
    code = "import jax\nimport jax.numpy as jnp\nfrom flax import struct\n\n@struct.dataclass\nclass State:\n"
    code += f"    history: jax.Array = {made}\n\n@jax.jit\ndef step(state, new):\n"
    code += "    return state.replace(history=jnp.roll(state.history, 64).at[0].set(new))\n"
    assert len(check_text(code.encode(), "m.py", Scope(("roll-then-set",)))) == count


@pytest.mark.parametrize(
    ("write", "targets"),
    [
        ("jnp.roll(x, -1, axis=0).at[-1, :].set(False)", {"v5e"}),
        ("jnp.roll(x, 1, axis=0).at[0].set(False)", {"v5e"}),
        ("jnp.roll(x, 1, axis=1).at[:, 0].set(False)", {"cpu", "h100", "v5e"}),
    ],
)
def test_along_the_first_axis_what_elementwise_work_reads_is_one_kernel(write: str, targets: set[str]) -> None:
    code = f"import jax, jax.numpy as jnp\n\n@jax.jit\ndef near(x):\n    moved = {write}\n    return x | moved\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("roll-then-set",)))
    assert {*found.targets} == targets


@pytest.mark.parametrize(
    ("read", "shift", "count"),
    [
        ("size = x.shape[1]", "-1", 0),
        ("size = x.shape[1]", "-1, axis=0", 1),
        # By as many as a row has, whole rows move.
        ("size = x.shape[1]", "-size", 1),
        ("size = x.shape[1]", "-8", 1),
        ("size = x.shape[0]", "-1", 1),
        ("size, x = 3, jnp.ones((3, 4)) * x", "-1", 0),
    ],
)
def test_a_matrix_whose_elements_move_by_one_does_not_move_as_its_rows_do(read: str, shift: str, count: int) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def plan(x):
    {read}
    first = jnp.roll(x, {shift})
    first = first.at[-1].set(0)
    return first, size
"""
    assert len(check_text(code.encode(), "m.py", Scope(("roll-then-set",)))) == count
