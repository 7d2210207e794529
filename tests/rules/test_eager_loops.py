"""eager-at-set-loop and eager-control-flow, in the loops that their pages have no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"


def found(rule: str, body: str, name: str = "main") -> int:
    code = f"{HEAD}def {name}(self, xs, fns, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return len(check_text(code.encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("y = jnp.zeros(n)\nfor i in range(n):\n    y = y.at[i].set(xs[i])\nreturn y", 1),
        ("y = jnp.zeros(n)\nfor epoch in range(n):\n    y = y.at[epoch].set(fns(epoch))\nreturn y", 0),
        (
            "y = jnp.zeros(n)\nfor i in range(n):\n    loss = fns.train_epoch(xs)\n    y = y.at[i].set(loss)\nreturn y",
            0,
        ),
    ],
)
def test_a_write_an_epoch_is_nothing(body: str, number: int) -> None:
    assert found("eager-at-set-loop", body) == number


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("for x in xs:\n    n = jax.vmap(fns)(x)", 1),
        ("f = jax.vmap(fns)\nfor x in xs:\n    n = f(x)", 1),
        ("for f in fns:\n    n = jax.vmap(f.forward)(n)", 0),
        ("for f in fns:\n    n = jax.vmap(f)(n)", 0),
        ("for i in range(n):\n    xs = jax.vmap(fns[i])(xs)", 0),
    ],
)
def test_another_function_in_every_iteration_is_traced_anyway(body: str, number: int) -> None:
    assert found("eager-control-flow", body) == number


def test_what_an_object_does_when_it_is_made_is_done_once() -> None:
    body = "for x in xs:\n    n = jax.vmap(fns)(x)"
    assert found("eager-control-flow", body, "__init__") == 0
