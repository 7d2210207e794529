"""The fix of what is jitted anew in every call: where it goes, and what keeps it where it is."""

from __future__ import annotations

from typing import Any

import fixes
import jax.numpy as jnp
import pytest

from fusionlint.source.scope import Scope

SCOPE = Scope(("jit-per-call",))
HEAD = "import jax\nimport jax.numpy as jnp\n\nSIZE = 3\n\n\n"
LOOP = "\n\ndef main(x):\n    for i in range(99):\n        {}(x)\n"


def fixed(code: str) -> str:
    return fixes.fixed("jit-per-call", code)


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_a_lambda_gets_a_line_of_the_file_once() -> None:
    one = "def one(x):\n    return jax.jit(lambda x: jnp.sin(x), inline=True)(x)\n"
    code = HEAD + one + "\n\n" + one.replace("one", "two") + LOOP.format("one(x) + two")
    after = fixed(code)
    line = "_sin = jax.jit(lambda x: jnp.sin(x), inline=True)\n"
    assert after.startswith(f"{HEAD}{line}\n\ndef one(x):\n    return _sin(x)\n\n\ndef two(x):\n    return _sin(x)\n")
    assert after.count(line) == 1
    assert names_of(after)["two"](0.0) == 0.0


NESTED = '''def outer(x):
    """Says what it does."""

    @jax.jit
    def _inner(y: jax.Array, scale: int = 2) -> jax.Array:
        # of y alone

        return scale * y

    return _inner(x)
'''
MOVED = '''@jax.jit
def _inner(y: jax.Array, scale: int = 2) -> jax.Array:
    # of y alone

    return scale * y


def outer(x):
    """Says what it does."""

    return _inner(x)
'''


def test_a_function_goes_in_front_of_the_one_around_it_with_its_comments() -> None:
    assert fixed(HEAD + NESTED + LOOP.format("outer")) == HEAD + MOVED + LOOP.format("outer")


METHOD = """class Model:
    size = 3

    # what it is called for
    def __call__(self, x):
        @jax.jit
        def _double(y):
            return y + y
        return {}_double(x) + {}_double(1.0)
"""
STATIC = """class Model:
    size = 3

    @staticmethod
    @jax.jit
    def _double(y):
        return y + y

    # what it is called for
    def __call__(self, x):
        return self._double(x) + self._double(1.0)
"""


def test_of_a_method_it_becomes_a_static_method() -> None:
    after = fixed(HEAD + METHOD.format("", "") + LOOP.format("Model()"))
    assert after == HEAD + STATIC + LOOP.format("Model()")
    assert names_of(after)["Model"]()(jnp.float32(2.0)) == 6.0


@pytest.mark.parametrize(
    "code",
    [
        NESTED.replace("scale * y", "scale * x"),
        NESTED.replace("scale: int = 2", "scale: int = x.size"),
        NESTED.replace("return scale", "_inner = 1\n        return scale"),
        NESTED + "\n\ndef _inner(x):\n    pass\n",
        METHOD.format("", "").replace("y + y", "y + self.size"),
        METHOD.format("", "").replace("size = 3", "def more(self):\n        return self._double"),
        "def outer(x):\n    return jax.jit(lambda y: jnp.sin(x + y))(x)\n",
        "def outer(x):\n    return jax.jit(lambda y: jnp.sin(y), donate_argnums=SIZE)(x)\n",
        "def outer(x):\n    return jax.jit(lambda y: y + 1)(x)\n",
        "def outer(x):\n    _sin = 1\n    return jax.jit(lambda y: jnp.sin(y))(x) + _sin\n",
    ],
)
def test_what_is_captured_or_called_otherwise_keeps_it_there(code: str) -> None:
    code = HEAD + code + LOOP.format("outer" if "def outer(x" in code else "Model()")
    assert fixed(code) == code
