"""arithmetic-by-concat: what is written instead, and of what nothing is said."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def seen(x, y, k):
    made = jnp.tanh(y)
    z = jnp.concatenate([{parts}], axis={axis})
    return z + 1
"""


def found(parts: str, axis: str = "-1") -> list[str]:
    code = CODE.format(parts=parts, axis=axis)
    findings = check_text(code.encode(), "m.py", Scope(("arithmetic-by-concat",)))
    return [finding.suggestion.text if finding.suggestion else "" for finding in findings]


@pytest.mark.parametrize(
    ("parts", "instead"),
    [
        ("x[..., :2], jnp.tanh(x[..., 2:])", "jnp.where(i < 2, x, jnp.tanh(x))"),
        ("-x[..., :k], x[..., k:]", "jnp.where(i < k, -x, x)"),
        ("x[:, :1], x[:, 1:3] * 2, x[:, 3:]", "jnp.where(i < 1, x, jnp.where(i < 3, x * 2, x))"),
        ("x[..., :-1], jnp.zeros_like(x[..., -1:])", "jnp.where(i < n - 1, x, jnp.zeros_like(x))"),
        ("x[..., :3], jax.nn.relu(x[..., 3:5])", "jnp.where(i < 3, x[..., :5], jax.nn.relu(x[..., :5]))"),
    ],
)
def test_the_same_work_on_all_columns_is_chosen_by_place(parts: str, instead: str) -> None:
    assert found(parts) == [f"{instead}, with `i = jnp.arange(n)` along that axis"]


def test_what_is_as_wide_as_the_columns_is_padded() -> None:
    (text,) = found("x[..., :2], x[..., 2:] + made")
    assert text.endswith("what is as wide as the columns is padded")


@pytest.mark.parametrize(
    ("parts", "instead"),
    [
        ("x[..., :2], jnp.exp(x[..., 2:])", "jnp.where(i < 2, x, jnp.exp(jnp.where(i >= 2, x, 1)))"),
        ("1 / x[..., :2], x[..., 2:]", "jnp.where(i < 2, 1 / jnp.where(i < 2, x, 1), x)"),
        ("x[..., :2], 2 * x[..., 2:] ** k", "jnp.where(i < 2, x, 2 * jnp.where(i >= 2, x, 1) ** k)"),
        ("x[..., :2], x[..., 2:] ** 2 / 3", "jnp.where(i < 2, x, x ** 2 / 3)"),
    ],
)
def test_work_whose_slope_may_be_no_number_elsewhere_is_kept_from_there(parts: str, instead: str) -> None:
    (text,) = found(parts)
    assert text.startswith(f"{instead}, with")
    assert ("from being NaN" in text) is ("1)" in instead)


def test_the_gradient_of_the_advice_is_that_of_the_join() -> None:
    x = jnp.array([150.0, 2.0, 3.0, 150.0, 0.5])
    i = jnp.arange(5)

    def joined(x: jax.Array) -> jax.Array:
        return (jnp.concatenate([x[:2], jnp.exp(x[2:3]), x[3:]]) * 3.0).sum()

    def chosen(x: jax.Array) -> jax.Array:
        worked = jnp.exp(jnp.where((i >= 2) & (i < 3), x, 1))
        return (jnp.where(i < 2, x, jnp.where(i < 3, worked, x)) * 3.0).sum()

    assert jnp.allclose(jax.grad(joined)(x), jax.grad(chosen)(x))
    assert jnp.isnan(jax.grad(lambda x: jnp.where(i < 2, x, jnp.exp(x))[:2].sum())(x)).any()


def test_rows_are_the_first_axis() -> None:
    assert len(found("x[:1], jnp.exp(x[1:])", axis="0")) == 1


@pytest.mark.parametrize(
    "parts",
    [
        "x[..., :2], x[..., 2:]",
        "x[..., 2:], jnp.exp(x[..., :2])",
        "x[..., :2], jnp.exp(x[..., 3:])",
        "x[..., 1:], jnp.exp(x[..., 2:])",
        "x[..., :2], jnp.exp(y[..., 2:])",
        "x[..., :1], x[..., 1:] - x[..., :-1]",
        "x[..., :2], x[..., 2:] @ y",
        "x[:2], jnp.exp(x[2:])",
        "x[..., :4:2], jnp.exp(x[..., 4::2])",
        "jnp.ones_like(x[..., :1]), jnp.zeros_like(x[..., 1:])",
        # One column, spread by the two that it is compared with.
        "jnp.equal(x[..., 0:1], jnp.array([3, 4])), jnp.equal(x[..., 1:2], jnp.array([1, 2]))",
        "x[..., :1], made * x[..., 1:2]",
    ],
)
def test_other_parts_are_left_alone(parts: str) -> None:
    assert found(parts) == []


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ("x[..., 0:1], -x[..., 1:2], x[..., 2:3]", 0),
        ("x[..., :1], -x[..., 1:4]", 0),
        ("x[..., :1], -x[..., 1:5]", 1),
        # Nobody knows how wide it is.
        ("x[..., :1], -x[..., 1:]", 1),
        ("x[..., :1], -x[..., 1:-1]", 1),
    ],
)
def test_of_a_vector_or_a_quaternion_a_choice_takes_as_many_kernels(parts: str, count: int) -> None:
    assert len(found(parts)) == count


def test_of_what_several_results_are_made_another_rule_speaks() -> None:
    code = CODE.replace("return z + 1", "return z + 1, z * 2")
    parts = "x[..., :2], jnp.exp(x[..., 2:])"
    assert not check_text(code.format(parts=parts, axis=-1).encode(), "m.py", Scope(("arithmetic-by-concat",)))


@pytest.mark.parametrize(
    ("parts", "instead"),
    [
        ("x[..., :2], x[..., 2:] * y[..., 2:]", "jnp.where(i < 2, x, x * y)"),
        ("-x[..., :2], {long}", "jnp.where(i < 2, -x, second)"),
    ],
)
def test_of_what_is_cut_alike_all_is_read(parts: str, instead: str) -> None:
    long = "jnp.sin(x[..., 2:]) * jnp.cos(y[..., 2:]) - x[..., 2:] * jnp.sin(y[..., 2:]) * made[..., 2:]"
    long += " + jnp.cos(x[..., 2:]) + jnp.sin(y[..., 2:])"
    made = "; second made of all of x, y, made" if "second" in instead else ""
    assert found(parts.format(long=long)) == [f"{instead}, with `i = jnp.arange(n)` along that axis{made}"]


def test_long_work_is_called_by_its_name() -> None:
    code = CODE.format(parts="moved, turned", axis=-1)
    long = "jnp.sin({0}) * jnp.cos({0}) - {0} * jnp.sin({0} + 1) + jnp.cos({0} + 2) + jnp.sin({0} - 2) + 3 * {0}"
    names = f"    moved, turned = {long.format('x[..., :2]')}, {long.format('x[..., 2:]')}\n    z = "
    (found,) = check_text(code.replace("    z = ", names).encode(), "m.py", Scope(("arithmetic-by-concat",)))
    assert found.suggestion is not None
    assert found.suggestion.text == (
        "jnp.where(i < 2, moved, turned), with `i = jnp.arange(n)` along that axis; moved made of all of x; "
        "turned made of all of x"
    )


def test_what_is_cut_otherwise_is_padded() -> None:
    (text,) = found("x[..., :2], x[..., 2:] * y[..., :k]")
    assert text.endswith("what is as wide as the columns is padded")
