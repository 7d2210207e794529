"""Advice that holds whatever the shapes are: what is not seen of an array is not taken for granted."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"


def advice(rule: str, code: str) -> str:
    (found,) = check_text((HEAD + code).encode(), "m.py", Scope((rule,)))
    assert found.suggestion is not None
    return found.suggestion.text


def test_whoever_solves_from_the_right_turns_the_last_two_axes_alone() -> None:
    code = "@jax.jit\ndef f(points, mixing):\n    return points @ jnp.linalg.inv(mixing)\n"
    text = advice("inverse-then-matmul", code)
    of_rows, rest = text.split(", of a vector ")
    of_a_vector = rest.partition(";")[0]
    assert (of_rows, of_a_vector) == (
        "jnp.linalg.solve(mixing.mT, points.mT).mT",
        "jnp.linalg.solve(mixing.mT, points)",
    )


@pytest.mark.parametrize(
    ("copies", "is_masked"),
    [("jnp.repeat(x[None], 8, axis=0)", True), ("jnp.tile(x, (8, 1, 1))", True), ("x @ x.T", False)],
)
def test_the_diagonal_of_copies_is_rows_of_what_was_copied(copies: str, is_masked: bool) -> None:
    code = f"""
@jax.jit
def moved(x, new):
    copies = {copies}
    at = jnp.arange(8)
    return copies.at[at, at].set(new)
"""
    text = advice("write-on-diagonal", code)
    if is_masked:
        assert text.endswith("mask jnp.eye(8, dtype=bool) with an axis of one behind it for each axis of a row")
    else:
        assert text == "jnp.where(jnp.eye(8, dtype=bool), new, copies)"


@pytest.mark.parametrize(
    ("joined", "of"), [("[new, x]", "of `x[::-1]`, the newest first, "), ("[x, new]", ""), ("(new, x)", None)]
)
def test_what_grows_at_the_front_is_joined_the_other_way_round(joined: str, of: str | None) -> None:
    of = "of `x[::-1]`, the newest first, " if of is None else of
    code = f"""
def main(env):
    x = jnp.zeros(0)
    while env.running:
        new = env.step()
        x = jnp.concatenate({joined})
    return x
"""
    expected = f"a list, `x.append(value)` in the loop, and one jnp.concatenate {of}after it"
    assert advice("array-grown-in-loop", code) == expected


@pytest.mark.parametrize(
    ("array", "rest"), [("jnp.zeros((*x.shape, 2))", ""), ("base", ", and of the others")], ids=["new", "old"]
)
def test_of_columns_too_long_to_be_shown_none_is(array: str, rest: str) -> None:
    code = f"""
@jax.jit
def basis(x, y, z, base):
    table = {array}
    table = table.at[..., 0].set(0.5 * x * x * (y * y - 3.0 * z * z) - 0.25 * y * z)
    table = table.at[..., 1].set(0.5 * y * y * (z * z - 3.0 * x * x) - 0.25 * x * z)
    return table
"""
    assert advice("columns-by-at-set", code) == f"one jnp.stack of the columns{rest}, axis=-1"


def test_a_mask_without_a_hit_has_no_first() -> None:
    code = "@jax.jit\ndef f(mask):\n    return mask & (jnp.cumsum(mask) == 1)\n"
    assert (
        advice("cumsum-to-find-first", code)
        == "jnp.argmax(mask), and take that one, where there is any: without a hit it is 0"
    )


@pytest.mark.parametrize(
    ("join", "written"),
    [
        ("concatenate([x, new])", ".at[i + jnp.arange(n)].set(values)"),
        ("concatenate([x, new], axis=1)", ".at[:, i + jnp.arange(n)].set(values)"),
        ("concatenate((x, new), -1)", ".at[..., i + jnp.arange(n)].set(values)"),
        ("concatenate((x, new), -2)", ".at[..., i + jnp.arange(n), :].set(values)"),
        ("concatenate((x, new), axis)", ".at[i].set(value)"),
        ("append(x, new)", ".at[i].set(value)"),
    ],
)
def test_what_is_concatenated_is_written_along_its_axis(join: str, written: str) -> None:
    code = f"""
def main(env, axis):
    x = env.reset()
    while env.running:
        new = jnp.tanh(x)[:1]
        x = jnp.{join}
"""
    assert f"`{written}` in the loop" in advice("array-grown-in-loop", code)


@pytest.mark.parametrize(
    ("reduced", "start", "step", "end"),
    [
        ("ys.sum(0)", "zeros", "total + y", ""),
        ("jnp.mean(ys, axis=0)", "zeros", "total + y", "; the mean is the total by the number of steps"),
        ("ys.max(axis=0)", "the least there is", "jnp.maximum(most, y)", ""),
        ("jnp.prod(ys, 0)", "ones", "product * y", ""),
        ("ys.any(0)", "False", "jnp.logical_or(found, y)", ""),
        ("ys[-1] + jnp.min(ys, 0)", "the most there is", "jnp.minimum(least, y)", ""),
        ("jnp.sum(ys, 0) + ys.mean(0)", "zeros", "total + y", "; the mean is the total by the number of steps"),
        (
            "jnp.sum(ys, 0) + jnp.max(ys, 0)",
            "zeros and the least there is",
            "total + y, jnp.maximum(most, y)",
            "",
        ),
    ],
)
def test_a_scan_accumulates_as_its_outputs_are_reduced(reduced: str, start: str, step: str, end: str) -> None:
    code = f"""
@jax.jit
def f(x):
    _, ys = jax.lax.scan(lambda x, _: (jnp.sin(x), jnp.exp(x)), x, None, length=9)
    return {reduced}
"""
    assert advice("scan-keeps-all-outputs", code) == (
        f"accumulate it in the carry, from {start} of the result's shape and dtype: the body returns "
        f"`(carry, {step}), None`{end}"
    )
