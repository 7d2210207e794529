"""A fix takes away the import of what it alone read, and no other."""

from __future__ import annotations

import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.reading import read_facts
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

SCOPE = Scope(("lax-map-for-vmap",))
HEAD = "import jax\nimport jax.numpy as jnp\n"
CALL, AFTER = "lax.map(lambda x: x + 1, xs)", "jax.vmap(lambda x: x + 1)(xs)"


def fixed(code: str, others: dict[str, str] | None = None) -> str:
    """A file after `check --fix --unsafe-fixes`, beside `others`."""
    files = {"m.py": code, **(others or {})}
    world = join({name: read_facts(text, name, name.removesuffix(".py")) for name, text in files.items()})
    found = check_text(code.encode(), "m.py", SCOPE, world)
    assert found
    return fix_text("m.py", code.encode(), found, SCOPE, world, unsafe=True).after.decode()


@pytest.mark.parametrize(
    ("imported", "after"),
    [
        ("from jax import lax\n", ""),
        ("import functools\n\nfrom jax import lax\n\nimport numpy\n", "import functools\n\nimport numpy\n"),
        ("from jax import lax, jit\n", "from jax import jit\n"),
        ("from jax import jit, lax\n", "from jax import jit\n"),
        ("from jax import grad, lax, jit\n", "from jax import grad, jit\n"),
        ("from jax import (\n    jit,\n    lax,\n)\n", "from jax import (\n    jit,\n)\n"),
        ("from jax import (jit, lax,\n    grad)\n", "from jax import (jit, grad)\n"),
    ],
)
@pytest.mark.parametrize("comment", ["", "    # lax.map is a loop\n", '    """Not by lax.map."""\n'])
def test_an_import_goes_with_its_last_reader(imported: str, after: str, comment: str) -> None:
    code = f"{HEAD}{{}}\n\ndef f(xs):\n{comment}    return {{}}\n"
    assert fixed(code.format(imported, CALL)) == code.format(after, AFTER)


@pytest.mark.parametrize(
    ("imported", "more"),
    [
        ("from jax import lax\n", "\n\ndef g(x):\n    return lax.exp(x)\n"),
        ("from jax import lax\n", '\n\ndef g(x) -> "lax.Precision":\n    return x\n'),
        ("from jax import lax\n", '\n\n__all__ = ["f", "lax"]\n'),
        ("from jax import lax\n", "\n\nNAME = '#', lax\n"),
        ("from jax import lax  # noqa: F401\n", ""),
        ("if True:\n    from jax import lax\n", ""),
        ("from jax import lax; import numpy\n", ""),
        ("from jax import lax as lax\n", ""),
    ],
)
def test_an_import_that_something_else_may_need_stays(imported: str, more: str) -> None:
    code = f"{HEAD}{imported}\n\ndef f(xs):\n    return {{}}\n{more}"
    assert fixed(code.format(CALL)) == code.format(AFTER)


@pytest.mark.parametrize(
    ("other", "stays"), [("from m import f, lax", True), ("from m import *", True), ("from m import f", False)]
)
def test_what_another_file_takes_stays(other: str, stays: bool) -> None:
    code = f"{HEAD}from jax import lax\n\n\ndef f(xs):\n    return {CALL}\n"
    assert ("lax" in fixed(code, {"other.py": f"{other}\n"})) == stays


def test_what_two_fixes_leave_without_a_reader_goes() -> None:
    code = f"{HEAD}from jax import lax\n\n\ndef f(xs):\n    return {CALL}\n\n\ndef g(xs):\n    return {CALL}\n"
    assert "lax" not in fixed(code)
