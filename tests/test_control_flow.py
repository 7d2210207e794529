"""Loops and branches that run outside of any jit: jax compiles each call of them by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fusionlint

jax = pytest.importorskip("jax")
jnp = jax.numpy

CALLED: dict[str, Callable[[int], Any]] = {
    "fori_loop": lambda by: jax.lax.fori_loop(0, 3, lambda _, x: x + by, 0),
    "map": lambda by: jax.lax.map(lambda x: x + by, jnp.arange(3)),
    "scan": lambda by: jax.lax.scan(lambda x, _: (x + by, x), 0, length=3),
    "while_loop": lambda by: jax.lax.while_loop(lambda x: x < 3, lambda x: x + by, 0),
    "switch": lambda by: jax.lax.switch(jnp.array(1), [lambda x: x, lambda x: x - by], 2.0),
}


@pytest.mark.parametrize("name", CALLED)
def test_it_has_the_name_that_was_called_and_it_is_what_was_given_a_new_function(name: str) -> None:
    with fusionlint.capture() as capture:
        for by in (1, 2):
            CALLED[name](by)
    (function,) = [one for one in capture.recording.functions if one.owner == "user"]
    assert function.name.startswith(f"{name}(")
    said = f"the same arguments: a new function was given to {name}, which knows functions by identity"
    assert [one.why for one in function.compilations] == [(), (said,)]
