"""What is stored in fields, `s.i, s.j = ...`, or gone over by them, has no name whose reads could be asked for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CASES = {
    "triangle-indices-in-trace": """\
import jax
import jax.numpy as jnp

@jax.jit
def gram(x, s):
    s.i, s.j = jnp.tril_indices(x.shape[0])
    return (x[s.i] * x[s.j]).sum(axis=1)
""",
    "iterating-device-array": """\
import jax.numpy as jnp

def report(xs, s):
    total = jnp.exp(xs)
    for s.row in total:
        print(float(s.row))
""",
}


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_that_asks_for_reads_takes_fields(rule: str) -> None:
    """They raised StopIteration, and the file was not checked."""
    found = check_text(CASES[rule].encode(), "m.py", Scope((rule,)))
    assert {one.rule for one in found} <= {rule}


def test_triangles_in_fields_are_told() -> None:
    code = CASES["triangle-indices-in-trace"]
    (found,) = check_text(code.encode(), "m.py", Scope(("triangle-indices-in-trace",)))
    assert found.location.line == 1 + code.splitlines().index("    s.i, s.j = jnp.tril_indices(x.shape[0])")
