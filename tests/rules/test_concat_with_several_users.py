"""What the page of concat-with-several-users has no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom jax import lax\n"
RULE = Scope(("concat-with-several-users",))


def found(code: str) -> int:
    return len(check_text((HEAD + code).encode(), "code.py", RULE))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x = jnp.hstack([a * 2, b])\n    return x + 1, x * 2", id="hstack"),
        pytest.param("x = jnp.append(a * 2, b)\n    return x + 1, x * 2", id="append"),
        pytest.param("x = lax.concatenate([a * 2, b], 0)\n    return x + 1, x * 2", id="lax"),
        pytest.param("c, d = jnp.split(a, 2)\n    x = jnp.concatenate([d, -c])\n    return x + 1, x * 2", id="split"),
        pytest.param(
            "x = jnp.concatenate([a * 2, b])\n    y, z = x + 1, x * 2\n    return y, z", id="unpacked at once"
        ),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    return a.replace(y=x + 1, z=x * 2)", id="fields"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    y = x.astype(int)\n    return y, -x, x", id="method"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    y = 1\n    y += x\n    return y, jnp.abs(x)", id="in place"),
    ],
)
def test_speaks(body: str) -> None:
    assert found(f"def f(a, b):\n    {body}\n") == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x = np.concatenate([a * 2, b])\n    return x + 1, x * 2", id="numpy"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    return x + 1, x", id="one user beside the result"),
        pytest.param("x = jnp.concatenate([g(a), b])\n    return x + 1, x * 2", id="a part that nobody knows"),
        pytest.param("x = jnp.concatenate([a, *b])\n    return x + 1, x * 2", id="parts that nobody counts"),
        pytest.param("x = jnp.concatenate(a)\n    return x + 1, x * 2", id="parts from elsewhere"),
        pytest.param("x = jnp.concatenate([np.ones(3), [1.0, 2.0]])\n    return x + 1, x * 2", id="host constants"),
        pytest.param("x = jnp.concatenate([a, a])\n    return x + 1, x * 2", id="a tile"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    y = x + 1\n    return y * x.shape[0]", id="shape"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    return (x - x.mean()) / (x.std() + 1)", id="normalised"),
        pytest.param("x = jnp.concatenate([a * 2, b])\n    x = x + 1\n    return x, x * 2", id="another of the name"),
    ],
)
def test_is_silent(body: str) -> None:
    assert found(f"def f(a, b):\n    {body}\n") == 0


def test_host_code_is_silent() -> None:
    assert found("def main(a, b):\n    x = jnp.concatenate([a * 2, b])\n    return x + 1, x * 2\n") == 0
