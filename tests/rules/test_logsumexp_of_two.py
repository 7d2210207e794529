"""logsumexp-of-two: which two are meant, and what is written in their place."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("logsumexp-of-two",))
HEAD = """\
import jax, jax.numpy as jnp
from jax.nn import logsumexp

@jax.jit
def f(a, b):
"""


def advice(body: str) -> list[str]:
    code = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return [f.suggestion.text for f in check_text(code.encode(), "m.py", ONLY) if f.suggestion is not None]


@pytest.mark.parametrize(
    "body",
    [
        "return logsumexp(jnp.stack([a, b]), axis=0)",
        "return logsumexp(jnp.stack((a, b), axis=-1), axis=-1)",
        "return logsumexp(jnp.stack([a, b], 1), 1)",
        "return logsumexp(jnp.array([a, b]), axis=0)",
        "both = jnp.stack([a, b])\nreturn logsumexp(both, axis=0)",
    ],
)
def test_two_along_their_own_axis_are_added(body: str) -> None:
    assert advice(body) == ["jnp.logaddexp(a, b)"]


def test_beside_a_number_the_other_is_one() -> None:
    assert advice("return logsumexp(jnp.array([0.0, a]))") == ["jnp.logaddexp(0.0, a)"]


@pytest.mark.parametrize(
    "body",
    [
        "return logsumexp(jnp.stack([a, b], axis=-1), axis=0)",
        "return logsumexp(jnp.stack([a, b]), axis=0, keepdims=True)",
        "return logsumexp(jnp.array([a, b], jnp.float32), axis=0)",
        "return logsumexp(jnp.array([a, b]))",
        "return logsumexp(jnp.stack([a, *b]), axis=0)",
        "return logsumexp(jnp.concatenate([a, b]), axis=0)",
    ],
)
def test_of_another_axis_type_or_shape_nothing_is_said(body: str) -> None:
    assert advice(body) == []
