"""segments-one-by-one: what its page has no room for."""

from __future__ import annotations

import pytest

from fusionlint.finding import Finding
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("segments-one-by-one",))
HEAD = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x, y, labels, n):\n"
LOOP = """\
    found = []
    for k in range({over}):
        mask = {mask}
        found.append({value})
    return jnp.stack(found)
"""


def findings(code: str) -> tuple[Finding, ...]:
    return check_text((HEAD + code).encode(), "m.py", SCOPE)


def lines(code: str) -> list[int]:
    return [found.location.line - HEAD.count("\n") for found in findings(code)]


@pytest.mark.parametrize(
    ("over", "mask", "value", "is_found"),
    [
        ("n", "labels == k", "jnp.sum(x * mask, axis=0)", True),
        ("n", "labels == k", "jnp.sum(x * mask, 0) / jnp.sum(mask)", True),
        ("n", "labels == k", "jnp.sum(x * mask)", False),
        ("1, n", "k == labels", "jnp.max(jnp.where(mask, x, 0.0), axis=0)", True),
        ("n", "y & (labels[:, None] == k)", "jnp.any(mask)", True),
        ("n", "(labels == k).astype(x.dtype)", "jnp.mean(mask)", True),
        ("n", "labels == k", "jnp.sum(mask) + score(mask)", False),
        ("3", "labels == k", "jnp.sum(mask)", False),
        ("n", "labels > k", "jnp.sum(mask)", False),
        ("n", "n == 3", "jnp.sum(mask)", False),
        ("n", "labels == k", "jnp.sum(x, axis=0)", False),
        ("n", "labels == k", "x * mask", False),
        ("n", "labels == k + len(found)", "jnp.sum(mask)", False),
    ],
)
def test_a_loop_over_classes_is_found_where_each_is_reduced(over: str, mask: str, value: str, is_found: bool) -> None:
    assert lines(LOOP.format(over=over, mask=mask, value=value)) == ([2] if is_found else [])


@pytest.mark.parametrize(
    "code",
    [
        LOOP.replace("        mask", "        if n > k:\n            continue\n        mask"),
        LOOP.replace("found.append", "x = x + 1\n        found.append"),
        LOOP.replace("return jnp.stack(found)", "return found"),
    ],
    ids=["some turns are left out", "one turn needs another", "nobody joins them"],
)
def test_turns_that_are_not_apart_are_left_alone(code: str) -> None:
    assert lines(code.format(over="n", mask="labels == k", value="jnp.sum(mask)")) == []


def test_counts_alone_are_no_case_for_a_gpu() -> None:
    (values,) = findings(LOOP.format(over="n", mask="labels == k", value="jnp.sum(x * mask, axis=0)"))
    (counts,) = findings(LOOP.format(over="n", mask="labels == k", value="jnp.sum(mask)"))
    assert "h100" in values.targets
    assert "h100" not in counts.targets


@pytest.mark.parametrize(("name", "count"), [("prepare", 0), ("region_means", 1)])
def test_classes_that_are_counted_before_anything_runs_are_left(name: str, count: int) -> None:
    code = f"""
import jax.numpy as jnp

class Coupling:
    def {name}(self, labels, n):
        return jnp.array([jnp.sum(labels == k) for k in range(n)])
"""
    assert len(check_text(code.encode(), "m.py", SCOPE)) == count
