"""argmax-then-pick and argsort-then-gather: which reads are of the array that was searched, and what is advised."""

from __future__ import annotations

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("argmax-then-pick", "argsort-then-gather"))
HEAD = "import jax\nimport jax.numpy as jnp\n@jax.jit\ndef f(d, x, k, state):\n"


def findings(body: str) -> list[Finding]:
    code = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return [*check_text(code.encode(), "m.py", ONLY)]


def advice(body: str) -> list[str]:
    return [f.suggestion.text for f in findings(body) if f.suggestion is not None]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("i = jnp.argmin(d)\nreturn i, d[i]", "jnp.min(d)"),
        ("return d[jnp.argmax(d)]", "jnp.max(d)"),
        ("i = jnp.argmax(d, 1)\nreturn d[jnp.arange(d.shape[0]), i]", "jnp.max(d, axis=1)"),
        ("i = jnp.argmax(d, axis=0)\nreturn d[i, jnp.arange(d.shape[1])]", "jnp.max(d, axis=0)"),
        (
            "i = jnp.argmin(d, -1)\nreturn jnp.take_along_axis(d, i[..., None], -1)",
            "jnp.min(d, axis=-1, keepdims=True)",
        ),
        (
            "i = jnp.argmin(d, 0)\nreturn jnp.take_along_axis(d, jnp.expand_dims(i, 0), axis=0)",
            "jnp.min(d, axis=0, keepdims=True)",
        ),
        ("i = jnp.argmin(state.cost)\nx = x[i]\nreturn x, state.cost[i]", "jnp.min(state.cost)"),
        ("o = jnp.argsort(d)\nreturn d[o]", "jnp.sort(d)"),
        ("return d[jnp.argsort(-d)]", "jnp.sort(d, descending=True)"),
        ("return d[jnp.argsort(d, descending=False)]", "jnp.sort(d)"),
        ("o = jnp.argsort(d, axis=0)\nreturn jnp.take_along_axis(d, o, axis=0)", "jnp.sort(d, axis=0)"),
    ],
)
def test_what_a_search_found_is_given_by_a_reduction_or_a_sort(body: str, instead: str) -> None:
    assert advice(body) == [instead]


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("i = jnp.argmax(d)\nreturn d.at[i].set(d[i] - 1)", 0),
        ("i = jnp.argmax(d)\nreturn d.at[i].add(-d[i] * 0.5)", 0),
        ("i = jnp.argmax(d)\nreturn d.at[i].set(d[i] - 1), d[i]", 2),
        ("i = jnp.argmax(d)\nreturn x.at[i].set(d[i])", 1),
        ("i = jnp.argmax(d)\nreturn d.at[k].set(d[i])", 1),
        ("def low(d):\n    i = jnp.argmax(d)\n    return d.at[i].set(d[i] - 1)\nreturn jax.vmap(low)(d)", 1),
    ],
)
def test_what_goes_back_to_its_place_is_read_where_it_is_written(body: str, number: int) -> None:
    assert len(findings(body)) == number


def test_each_read_is_told_of() -> None:
    assert advice("i = jnp.argmin(d)\nx = x + d[i]\nreturn x * d[i]") == ["jnp.min(d)", "jnp.min(d)"]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        (
            "o = jnp.argsort(d)\nreturn d[o], x[o]",
            "values, o = jax.lax.sort_key_val(d, jnp.arange(d.shape[0])); what has",
        ),
        ("o = jnp.argsort(-d)\nreturn d[o], x[o]", "jax.lax.sort((-d, d, y), num_keys=1)[1:], where"),
        ("o = jnp.argsort(d, descending=True)\nreturn d[o], o", "jax.lax.sort((-d, d, y), num_keys=1)[1:], where"),
    ],
)
def test_what_else_goes_by_the_order_is_sorted_along(body: str, instead: str) -> None:
    (only,) = advice(body)
    assert only.startswith(instead)


@pytest.mark.parametrize(
    "body",
    [
        "i = jnp.argmin(d)\nd = d + x\nreturn d[i]",
        "i = jnp.argmin(d)\nreturn x[i], d[i + 1]",
        "i = jnp.argmin(f(d))\nreturn f(d)[i]",  # may draw another number
        "i = jnp.argmin(state.cost)\nstate.cost = x\nreturn state.cost[i]",
        "i = jnp.argmax(d, 1)\nreturn d[i], d[i, jnp.arange(3)]",
        "i = jnp.argmax(d, k)\nreturn jnp.take_along_axis(d, i[..., None], k)",
        "i = jnp.argmax(d, 1)\nreturn jnp.take_along_axis(d, i[None], 0)",
        "o = jnp.argsort(d)\nreturn x[o]",
        "o = jnp.argsort(d)\nreturn d[o][:k], o",
        "o = jnp.argsort(d)[::-1]\nreturn d[o]",
        "o = jnp.argsort(d, axis=None)\nreturn d[o]",
        "o = jnp.argsort(d)\nreturn jnp.take_along_axis(d, o, 0)",  # an order of rows, by columns
        "w, v = jnp.linalg.eigh(d)\no = jnp.argsort(w)\nreturn w[o], v[:, o]",
    ],
)
def test_other_reads_are_none_of_what_was_searched(body: str) -> None:
    assert findings(body) == []
