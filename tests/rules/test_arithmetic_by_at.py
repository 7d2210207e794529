"""arithmetic-by-at: what is written instead, and of what nothing is said."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

LIMIT = 20.0

@jax.jit
def seen(x, part, k):
    y = jnp.tanh(x)
    y = {write}
    return y + 1
"""


def found(write: str) -> list[str]:
    findings = check_text(CODE.format(write=write).encode(), "m.py", Scope(("arithmetic-by-at",)))
    return [finding.suggestion.text if finding.suggestion else "" for finding in findings]


@pytest.mark.parametrize(
    ("write", "instead"),
    [
        ("y.at[:, :3].divide(LIMIT)", "y / jnp.where(i < 3, LIMIT, 1)"),
        ("y.at[..., 0].multiply(-1.0)", "y * jnp.where(i == 0, -1.0, 1)"),
        ("y.at[:, -2:].min(LIMIT)", "jnp.where(i >= n - 2, jnp.minimum(y, LIMIT), y)"),
        ("y.at[:, :k].power(2)", "y ** jnp.where(i < k, 2, 1)"),
        ("y.at[:, ::2].multiply(-1)", "y * jnp.where(i % 2 == 0, -1, 1)"),
        ("y.at[:, 1::2].min(LIMIT)", "jnp.where(i % 2 == 1, jnp.minimum(y, LIMIT), y)"),
        ("y.at[:, -k:].min(LIMIT)", "jnp.where(i >= n - k, jnp.minimum(y, LIMIT), y)"),
    ],
)
def test_the_same_arithmetic_with_all_of_the_axis_is_written_out(write: str, instead: str) -> None:
    assert found(write) == [f"{instead}, with `i = jnp.arange(n)` along that axis"]


@pytest.mark.parametrize(
    ("write", "axes"),
    [("[:, 2:5, :]", "[:, None]"), ("[..., 2:5, :, :]", "[:, None, None]"), ("[:, 2:5, ..., :]", "")],
)
def test_the_numbers_of_an_axis_stand_beside_those_of_the_axes_behind_it(write: str, axes: str) -> None:
    instead = "y + jnp.where((i >= 2) & (i < 5), 0.5, 0)"
    assert found(f"y.at{write}.add(0.5)") == [f"{instead}, with `i = jnp.arange(n){axes}` along that axis"]


@pytest.mark.parametrize(
    "write",
    [
        "y.at[0].multiply(2.0)",
        "y.at[:3].multiply(2.0)",
        "y.at[:, k].multiply(2.0)",
        "y.at[:, :8:2].multiply(2.0)",
        "y.at[:, k::2].multiply(2.0)",
        "y.at[:, :].multiply(2.0)",
        "y.at[:, :3].multiply(part)",
        "y.at[:, :3].set(2.0)",
        "y.at[:, :3].multiply(2.0).at[:, 3:].multiply(3.0)",
        "jnp.ones((4, 4)).at[:, 0].multiply(2.0)",
    ],
)
def test_rows_places_that_vary_and_parts_that_are_arrays_are_left_alone(write: str) -> None:
    assert found(write) == []


@pytest.mark.parametrize(
    ("around", "count"),
    [("", 0), ("axis = jax.lax.axis_index('i')\n", 1), ("step = jax.jit(seen)\n", 1)],
    ids=["nothing", "uses lax", "seen to be traced"],
)
def test_a_function_that_nobody_is_seen_to_trace_is_asked_only_in_a_file_for_traces(around: str, count: int) -> None:
    code = CODE.replace("@jax.jit\n", "").format(write="y.at[:, 0].multiply(2.0)") + around
    assert len(check_text(code.encode(), "m.py", Scope(("arithmetic-by-at",)))) == count


@pytest.mark.parametrize(
    ("around", "targets"), [("@jax.jit", ("h100", "v5e")), ("@jax.vmap", ("v5e",))], ids=["two axes", "three"]
)
def test_what_is_divided_by_ones_is_less_on_a_tpu_alone_where_it_has_three_axes(
    around: str, targets: tuple[str, ...]
) -> None:
    code = CODE.replace("@jax.jit", around).format(write="y.at[:, :3].divide(120.0)")
    (one,) = check_text(code.encode(), "m.py", Scope(("arithmetic-by-at",)))
    assert one.targets == targets


HANDED = """
import jax
import jax.numpy as jnp

def one(function, shape):
    def run(*args):
        return jax.pure_callback(function, shape, *args)

    return run

def other(function, shape):
    def run(*args):
        return jnp.tanh(args[0]) + jax.pure_callback(function, shape, *args)

    return run

@jax.jit
def gridded(uvw, image):
    uvw = uvw.at[:, 2].multiply(-1.0)
    {lines}
"""


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("return jax.pure_callback(grid, image, uvw, image)", 0),
        ("return jax.pure_callback(grid, uvw.shape, uvw, image)", 0),
        ("args = (uvw, image)\n    return jax.pure_callback(grid, image, *args)", 0),
        ("args = (uvw, image)\n    call = one(grid, image)\n    return call(*args)", 0),
        ("call = other(grid, image)\n    return call(uvw, image)", 1),
        ("return jax.pure_callback(grid, image, jnp.tanh(uvw), image)", 1),
        ("jax.debug.callback(print, uvw)\n    return uvw + image", 1),
        ("return grid(uvw, image)", 1),
    ],
)
def test_what_the_host_alone_is_handed_fuses_with_nothing(lines: str, count: int) -> None:
    code = HANDED.format(lines=lines)
    assert len(check_text(code.encode(), "m.py", Scope(("arithmetic-by-at",)))) == count
