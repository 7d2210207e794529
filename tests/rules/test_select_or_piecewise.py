"""Fixes of select: what is left alone, what is safe, and what comes out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.rules.select_or_piecewise import stacked_conditions
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

if TYPE_CHECKING:
    from fusionlint.hlo.barriers import Barrier

HEAD = "import jax.numpy as jnp\n\ndef f(x, y, c):\n    return "


def fix(call: str) -> tuple[str, bool] | None:
    """The text of the fix and whether it is safe; None without one."""
    (found,) = check_text((HEAD + call + "\n").encode(), "example.py", Scope(("select-or-piecewise",)))
    assert found.suggestion
    edits = found.suggestion.edits
    return (edits[0].text, found.suggestion.safe) if edits else None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("jnp.select([x < 0], [x], y)", "jnp.where(x < 0, x, y)"),
        ("jnp.select([x < 0], [1.0])", "jnp.where(x < 0, 1.0, 0)"),
        ("jnp.select([x < 0, x < 1], (0.5, x), 2)", "jnp.where(x < 0, 0.5, jnp.where(x < 1, x, 2))"),
        ("jnp.select([x < 0], [x if c else y], default=-1)", "jnp.where(x < 0, x if c else y, -1)"),
    ],
)
def test_safe_where_at_most_one_value_has_a_dtype_of_its_own(call: str, text: str) -> None:
    assert fix(call) == (text, True)


@pytest.mark.parametrize(
    "call",
    [
        "jnp.select([x < 0, x < 1], [x, y], y)",
        "jnp.select([x < 0, x < 1], [x, 0.1], 0)",  # 0.1 is another number in bfloat16
        "jnp.select([x < 0, x < 1], [x, 0.5], -1)",  # -1 wraps around in a uint8
        "jnp.select([x < 0, x < 1], [x, 1000], 0)",
    ],
)
def test_unsafe_where_values_may_meet_on_the_way_to_their_dtype(call: str) -> None:
    found = fix(call)
    assert found is not None
    assert not found[1]


@pytest.mark.parametrize(
    "call",
    [
        "jnp.select([x < 0], [x  # why\n    ], 0)",
        "jnp.select([x < 0, *c], [x, y])",
        "jnp.select([x < 0], [x, y])",
        "jnp.select(c, [x, y])",
        "jnp.select(*c)",
        "jnp.select([x < 0], [(z := x)], z)",
        "jnp.select([x < 0] * 2, [x] * 2)",
        "jnp.select([c, c, c, c, c], [x, x, x, x, x])",
    ],
)
def test_no_fix(call: str) -> None:
    assert fix(call) is None


FIRST = """HloModule jit_f, is_scheduled=true

%larger (a: pred[], i: s32[], b: pred[], j: s32[]) -> (pred[], s32[]) {{
  %a = pred[] parameter(0)
  %i = s32[] parameter(1)
  %b = pred[] parameter(2)
  %j = s32[] parameter(3)
  ROOT %both = (pred[], s32[]) tuple(%a, %i)
}}

%first (p: pred[{size},64], q: pred[{size},64]) -> (pred[64], s32[64]) {{
  %p = pred[{size},64]{{1,0}} parameter(0)
  %q = pred[{size},64]{{1,0}} parameter(1)
  %joined = pred[{whole},64]{{1,0}} concatenate(%p, %q), dimensions={{0}}
  %places = s32[{whole},64]{{1,0}} iota(), iota_dimension=0
  %no = pred[] constant(false)
  %zero = s32[] constant(0)
  ROOT %reduced = (pred[64]{{0}}, s32[64]{{0}}) reduce(%joined, %places, %no, %zero), dimensions={{0}}, to_apply=%larger
}}

ENTRY %main (p: pred[{size},64], q: pred[{size},64]) -> (pred[64], s32[64]) {{
  %p = pred[{size},64]{{1,0}} parameter(0)
  %q = pred[{size},64]{{1,0}} parameter(1)
  ROOT %fusion = (pred[64]{{0}}, s32[64]{{0}}) fusion(%p, %q), kind=kLoop, calls=%first
}}
"""


@pytest.mark.parametrize(("size", "is_told"), [(1, True), (20, False)])
def test_the_first_of_longer_truth_values_is_no_select(size: int, is_told: bool) -> None:
    module = hlo.parse(FIRST.format(size=size, whole=2 * size))
    barrier = cast("Barrier", SimpleNamespace(computation="main", writer="fusion"))
    assert (stacked_conditions(barrier, module) is not None) is is_told


@pytest.mark.parametrize(
    ("conditions", "count"), [("jnp.all(x == y, axis=1)", 0), ("jnp.array([x < 0, y < 0])", 1), ("[x < 0, y < 0]", 1)]
)
def test_conditions_that_are_one_array_are_not_stacked(conditions: str, count: int) -> None:
    code = f"{HEAD}jnp.select({conditions}, c, 0.0)\n"
    assert len(check_text(code.encode(), "example.py", Scope(("select-or-piecewise",)))) == count
