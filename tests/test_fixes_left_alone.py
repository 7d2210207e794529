"""What a fix must not write: names that mean something else there, keywords that are given already, values that only
some runs of the code have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fusionlint.finding import Finding
from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n"
STEP = "\ndef step(c, x):\n    return c + x, c + x\n"


def found(rule: str, code: str) -> Sequence[Finding]:
    return check_text(code.encode(), "m.py", Scope((rule,)))


def fixed(rule: str, code: str, *, unsafe: bool = True) -> str:
    """The code after `check --fix`."""
    scope = Scope((rule,))
    return fix_text("m.py", code.encode(), found(rule, code), scope, join({}), unsafe=unsafe).after.decode()


BRANCHES = """
@jax.jit
def run(xs):
    if xs.ndim == 1:
        _, ys = jax.lax.scan(step, 0.0, xs)
    else:
        _, ys = jax.lax.scan(step, 0.0, jnp.flip(xs, 0))
    return jnp.flip(ys, 0)
"""
CARRIED = """
@jax.jit
def run(xs):
    ys = xs
    for _ in range(3):
        xs = jnp.flip(ys, 0)
        _, ys = jax.lax.scan(step, 0.0, jnp.flip(xs, 0))
    return jnp.flip(ys, 0)
"""
PAIR = """
@jax.jit
def run(xs):
    def both(c, x):
        return c + x, (c + x, 2 * c)
    _, ys = jax.lax.scan(both, 0.0, jnp.flip(xs, 0))
    return ys[::-1]
"""
HIDDEN = """
@jax.jit
def run(xs, **kw):
    _, ys = jax.lax.scan(step, 0.0, jnp.flip(xs, 0), **kw)
    return jnp.flip(ys, 0)
"""
UNKNOWN = """
@jax.jit
def run(xs, f):
    _, ys = jax.lax.scan(f, 0.0, jnp.flip(xs, 0))
    return ys[::-1]
"""
ONE = """
@jax.jit
def run(xs):
    _, ys = jax.lax.scan(step, 0.0, jnp.flip(xs, 0),)
    return ys[::-1]
"""


@pytest.mark.parametrize("code", [BRANCHES, CARRIED, PAIR, HIDDEN], ids=["branches", "carried", "pair", "hidden"])
def test_a_scan_is_left_where_its_outputs_are_not_all_that_is_flipped_back(code: str) -> None:
    assert not found("flip-around-scan", HEAD + STEP + code)


def test_outputs_that_may_be_a_tuple_are_turned_only_when_asked() -> None:
    code = HEAD + UNKNOWN
    assert found("flip-around-scan", code)
    assert fixed("flip-around-scan", code, unsafe=False) == code
    assert "reverse=True" in fixed("flip-around-scan", code)


def test_outputs_of_arithmetic_are_one_array_and_a_comma_at_the_end_stays() -> None:
    after = fixed("flip-around-scan", HEAD + STEP + ONE, unsafe=False)
    assert "jax.lax.scan(step, 0.0, xs, reverse=True,)\n    return ys\n" in after


def test_a_comment_in_the_flip_behind_is_not_lost() -> None:
    code = HEAD + STEP + ONE.replace("ys[::-1]", "jnp.flip(\n        ys,  # newest first\n        axis=0)")
    assert found("flip-around-scan", code)
    assert fixed("flip-around-scan", code) == code


SMOOTH = """
@jax.jit
def smooth(xs, **kw):
    def step(c, x):
        c = 0.9 * c + x
        return c, c
    return lax.scan(step, 0.0, xs, **kw)
"""
NEWTON = """
@jax.jit
def root(x, **kw):
    def newton(i, x):
        return x - (x * x - 2) / (2 * x) + i
    return lax.fori_loop(0, 10, newton, x, **kw)
"""


@pytest.mark.parametrize(
    ("rule", "code"), [("scan-without-unroll", SMOOTH), ("fori-loop-without-unroll", NEWTON)], ids=["scan", "fori"]
)
def test_a_loop_whose_keywords_are_hidden_may_be_unrolled_already(rule: str, code: str) -> None:
    assert not found(rule, HEAD + code)
    assert found(rule, HEAD + code.replace(", **kw", ""))


def test_a_fix_that_would_not_compile_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusionlint.rules.fori_loop_without_unroll.argument", lambda call, place, name: None
                        if name == "unroll" else call.args[place].value)  # fmt: skip
    code = HEAD + NEWTON.replace(", **kw)", ")").replace("newton, x)", "newton, x, unroll=False)")
    assert found("fori-loop-without-unroll", code)
    assert fixed("fori-loop-without-unroll", code) == code


RANGE = """
@jax.jit
def total(x, range):
    out = 0.0
    for i in jnp.arange(x.shape[0]):
        out = out + x[i] * range
    return out
"""


def test_range_is_written_only_where_it_is_pythons() -> None:
    assert fixed("loop-over-traced-array", HEAD + RANGE) == HEAD + RANGE
    plain = HEAD + RANGE.replace("range)", "scale)").replace("* range", "* scale")
    assert "for i in range(x.shape[0]):" in fixed("loop-over-traced-array", plain)


MAPPED = """
@jax.jit
def run(x, jax):
    return lax.map(lambda v: v * 2, jax)
"""
FOR_TYPES = """
from typing import TYPE_CHECKING
import jax.numpy as jnp
from jax import jit, lax
if TYPE_CHECKING:
    import jax

@jit
def run(x):
    return lax.map(lambda v: v * 2, x)
"""


@pytest.mark.parametrize("code", [HEAD + MAPPED, FOR_TYPES], ids=["parameter", "for type checkers"])
def test_a_module_is_written_only_where_its_name_means_it(code: str) -> None:
    assert found("lax-map-for-vmap", code)
    assert fixed("lax-map-for-vmap", code) == code
    ordinary = code.replace("x, jax)", "x, y)").replace("if TYPE_CHECKING:\n    ", "")
    assert "jax.vmap(" in fixed("lax-map-for-vmap", ordinary)


ELSEWHERE = """
s = 2.0
double = lambda x: x * s

@jax.jit
def run(x, p, s):
    return lax.cond(p > 0, double, lambda x: x, x)
"""


def test_a_branch_from_another_scope_keeps_what_its_names_mean() -> None:
    assert found("cond-for-where", HEAD + ELSEWHERE)
    assert fixed("cond-for-where", HEAD + ELSEWHERE) == HEAD + ELSEWHERE
    same = HEAD + ELSEWHERE.replace("x, p, s", "x, p")
    assert "jnp.where(p > 0, x * s, x)" in fixed("cond-for-where", same)


@pytest.mark.parametrize(
    ("made", "is_written"),
    [
        ("jnp.zeros((5, 4)).at[jnp.arange(5), i].set(1)", True),
        ("jnp.zeros((5, 4)).at[jnp.arange(3), i].set(1)", False),
        ("jnp.zeros((5, 4)).at[jnp.arange(5), i.shape[0]].set(1)", False),
    ],
)
def test_one_hot_is_written_where_each_row_gets_its_one(made: str, is_written: bool) -> None:
    code = f"{HEAD}\n@jax.jit\ndef coded(i):\n    return {made}\n"
    assert ("one_hot(i, 4)" in fixed("one-hot-by-at-set", code)) is is_written
    assert (fixed("one-hot-by-at-set", code) != code) is is_written


def test_one_hot_of_what_may_be_below_zero_counts_from_the_end_as_the_write_does() -> None:
    made = "jnp.zeros((5, 4)).at[jnp.arange(5), i].set(1)"
    code = f"{HEAD}\n@jax.jit\ndef coded(x):\n    i = x.sum() - 1\n    return {made}\n"
    (finding,) = check_text(code.encode(), "m.py", Scope(("one-hot-by-at-set",)))
    assert finding.suggestion is not None
    assert finding.suggestion.text == "jax.nn.one_hot(i % 4, 4)"
    assert fixed("one-hot-by-at-set", code) == code


DIAGONAL = """
@jax.jit
def zeroed(x):
    n = x.shape[0]
    i = jnp.arange(n)
    n = n - 1
    return x.at[i, i].set(0.0)
"""


def test_a_length_that_is_written_anew_is_not_copied_to_where_it_is_another() -> None:
    assert found("write-on-diagonal", HEAD + DIAGONAL)
    assert fixed("write-on-diagonal", HEAD + DIAGONAL) == HEAD + DIAGONAL
    assert "jnp.eye(n, dtype=bool)" in fixed("write-on-diagonal", HEAD + DIAGONAL.replace("    n = n - 1\n", ""))


def test_rows_that_are_seen_are_no_numbers_to_take_the_smallest_of() -> None:
    code = f"{HEAD}\n@jax.jit\ndef first(x):\n    b, n = x.shape\n    return jnp.sort(x)[0] * b\n"
    assert not found("sort-for-max", code)
    assert found("sort-for-max", code.replace("b, n = x.shape", "b = x.shape[0]"))


ROWS = """
def listed(x):
    out = []
    for value in jnp.sort(x):
        out.append(float(value))
    return out
"""


def test_elements_that_are_written_stay_arrays_of_jax() -> None:
    assert "in jax.device_get(jnp.sort(x)):" in fixed("iterating-device-array", HEAD + ROWS)
    written = HEAD + ROWS.replace("(value))", "(value))\n        out.append(value.at[()].set(3.0))")
    assert found("iterating-device-array", written)
    assert fixed("iterating-device-array", written) == written
