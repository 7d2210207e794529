"""What the page of concat-with-several-users has no room for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import barriers
from fusionlint.rules.concat_with_several_users import joined_for_several_kernels
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


FOR_TWO = """HloModule jit_f, is_scheduled=true

%work (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  ROOT %s = f32[64]{0} sine(%p)
}

%join (q: f32[16], r: f32[48]) -> f32[64] {
  %q = f32[16]{0} parameter(0)
  %r = f32[48]{0} parameter(1)
  %tanh = f32[16]{0} tanh(%q)
  ROOT %c = f32[64]{0} concatenate(%tanh, %r), dimensions={0}
}

ENTRY %main (a: f32[16], b: f32[48]) -> (f32[64], f32[64]) {
  %a = f32[16]{0} parameter(0)
  %b = f32[48]{0} parameter(1)
  %whole = f32[64]{0} fusion(%a, %b), kind=kLoop, calls=%join
  %one = f32[64]{0} fusion(%whole), kind=kLoop, calls=%work
  %two = f32[64]{0} fusion(%whole), kind=kLoop, calls=%work
  ROOT %both = (f32[64]{0}, f32[64]{0}) tuple(%one, %two)
}
"""


def test_of_what_a_gradient_joins_nobody_is_told_to_join_otherwise() -> None:
    """The gradient of jnp.split: the line that was shown has no concatenate."""
    module = hlo.parse(FOR_TWO)
    (barrier,) = barriers(module)
    assert joined_for_several_kernels(barrier, module)
    assert joined_for_several_kernels(replace(barrier, of_gradient=True), module) is None
