"""What an expression's value is: each marked line of a small file is asked about."""

from __future__ import annotations

import libcst as cst
import pytest

from fusionlint.patterns.values.kinds import element_kind, kind
from fusionlint.source.reading import read_facts
from fusionlint.source.tree import Source
from fusionlint.source.world import join

HEAD = """
import math
from typing import NamedTuple, Optional, Sequence
import chex
import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray

def made(x) -> jax.Array:
    return x

@flax.struct.dataclass
class State:
    x: jax.Array
    time: int

class Net(nn.Module):
    layers: int
    scale: Array

    def __call__(self, u):
        return ANSWER(HERE)
"""
# What stands in a function body before the expression, the expression, and its kind.
CASES = [
    ("", "jnp.zeros(3)", "array"),
    ("", "jnp.arange(3)", "array"),
    ("", "jax.random.normal(k, (3,))", "array"),
    ("", "jax.lax.rsqrt(y)", "array"),
    ("", "jax.lax.scan(f, y, None)", None),
    ("", "jnp.pi", "scalar"),
    ("", "a", "array"),
    ("", "b", "array"),
    ("", "c", "array"),
    ("", "d", "array"),
    ("", "e", "numpy"),
    ("", "n", "scalar"),
    ("", "y", None),
    ("", "y + 1", None),
    ("", "y + a", "array"),
    ("", "a @ e", "array"),
    ("", "e * 2", "numpy"),
    ("", "e * y", None),
    ("", "a.sum(axis=0)", "array"),
    ("", "a.T", "array"),
    ("", "a[0]", "array"),
    ("", "a > 0", "array"),
    ("", "a is None", "scalar"),
    ("", "a != None", "scalar"),
    ("", "a == e", "array"),
    ("", "y.at[0].set(1)", "array"),
    ("", "y.shape[0]", "scalar"),
    ("", "a.size // 2", "scalar"),
    ("", "len(y)", "scalar"),
    ("", "n + 1", "scalar"),
    ("", "max(n, 2)", "scalar"),
    ("", "math.sqrt(y)", "scalar"),
    ("", "np.linspace(0, 1, n)", "numpy"),
    ("", "[a, b]", "list"),
    ("", "[1, 2]", None),
    ("", "[jnp.sin(i) for i in y]", "list"),
    ("", "many", "list"),
    ("", "many[0]", "array"),
    ("", "jnp.split(a, 3)", "list"),
    ("", "jax.random.key(0)", "key"),
    ("", "rng", "key"),
    ("", "other", "key"),
    ("k1, k2 = jax.random.split(rng)", "k2", "key"),
    ("ks = jax.random.split(rng, 4)", "ks[1]", "key"),
    ("s = made(y)", "s", "array"),
    ("", "state.x", "array"),
    ("", "state.time", None),
    ("z = jnp.zeros(3)\n    for i in range(3):\n        z = z * 2", "z", "array"),
    ("z = 0\n    for i in range(3):\n        z = z + a", "z", None),
    ("z = jnp.zeros(3)\n    z += y", "z", "array"),
    ("p, q = a, n", "q", "scalar"),
    ("p, q = a.shape", "q", "scalar"),
    ("p = q = a if n else b", "p", "array"),
]


def source_of(text: str) -> Source:
    world = join({"m.py": read_facts(text, "m.py", "m")})
    return Source("m.py", text.encode(), world.project, world.contexts)


def asked(source: Source) -> cst.BaseExpression:
    (call,) = (
        n
        for n in source.nodes(cst.Call)
        if isinstance(n, cst.Call) and isinstance(n.func, cst.Name) and n.func.value == "ANSWER"
    )
    return call.args[0].value


def in_function(before: str, expression: str) -> Source:
    body = f"""
def f(a: jax.Array, b: jnp.ndarray, c: chex.Array, d: Float[Array, "n 3"], e: np.ndarray, n: int, y,
      rng: chex.PRNGKey, other: PRNGKeyArray, state: State, many: Sequence[jax.Array], k: Optional[jax.Array]):
    {before or "pass"}
    return ANSWER({expression})
"""
    return source_of(HEAD.replace("ANSWER(HERE)", "u") + body)


@pytest.mark.parametrize(("before", "expression", "expected"), CASES, ids=[f"{b[:12]} {e}" for b, e, _ in CASES])
def test_the_kind_of_an_expression(before: str, expression: str, expected: str | None) -> None:
    source = in_function(before, expression)
    assert kind(asked(source), source) == expected


@pytest.mark.parametrize(
    ("iterated", "expected"),
    [("range(n)", "scalar"), ("jnp.arange(n)", "array"), ("a", "array"), ("y", None), ("many", "array"),
     ("reversed(range(n))", "scalar"), ("(1, 2)", "scalar"), ("a.shape", "scalar"), ("jnp.split(a, 3)", "array"),
     ("[a, b]", "array"), ("e", "numpy")],
)  # fmt: skip
def test_what_a_loop_gets_one_by_one(iterated: str, expected: str | None) -> None:
    source = in_function("", iterated)
    assert element_kind(asked(source), source) == expected


@pytest.mark.parametrize(
    ("loop", "name", "expected"),
    [("for i in range(3):", "i", "scalar"), ("for i, row in enumerate(a):", "row", "array"),
     ("for i, row in enumerate(a):", "i", "scalar"), ("for u, v in zip(a, e):", "v", "numpy"),
     ("for u, v in zip(a, e):", "u", "array"), ("for u, v in y.items():", "u", None)],
)  # fmt: skip
def test_what_a_loop_names(loop: str, name: str, expected: str | None) -> None:
    source = in_function(f"{loop}\n        pass", name)
    assert kind(asked(source), source) == expected


@pytest.mark.parametrize(("field", "expected"), [("layers", "scalar"), ("scale", "array"), ("other", None)])
def test_fields_of_a_module_are_what_the_class_says(field: str, expected: str | None) -> None:
    source = source_of(HEAD.replace("HERE", f"self.{field}"))
    assert kind(asked(source), source) == expected
