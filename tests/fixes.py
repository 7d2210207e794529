"""Code before and after a fix, and what both compute."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join


def fixed(rule: str, code: str, *, unsafe: bool = True) -> str:
    """The code after `check --fix --unsafe-fixes`, of which the rule has something to say; findings without a fix stay
    as they are."""
    data, scope = code.encode(), Scope((rule,))
    found = check_text(data, "m.py", scope)
    assert found
    return fix_text("m.py", data, found, scope, join({}), unsafe=unsafe).after.decode()


def returned(code: str, *args: Any) -> Any:
    """What the code's function `run` returns."""
    made: dict[str, Any] = {}
    exec(code, made)
    return made["run"](*args)


def assert_same(code: str, after: str, *args: Any) -> None:
    """That both compute the same, but for rounding."""
    one, other = returned(code, *args), returned(after, *args)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), one, other)
