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


@pytest.mark.parametrize(
    ("stored", "left"),
    [
        ("    ys = jnp.flip(ys, axis=0)\n    return ys\n", "    return ys\n"),
        ("    ys = jnp.flip(\n        ys, 0\n    )\n    return ys\n", "    return ys\n"),
        ("    ys = ys[::-1]; return ys\n", "    ys = ys; return ys\n"),
        ("    ys = ys[::-1]  # oldest first\n    return ys\n", "    ys = ys  # oldest first\n    return ys\n"),
        ("    zs = ys[::-1]\n    return zs\n", "    zs = ys\n    return zs\n"),
    ],
)
def test_a_name_is_not_stored_under_itself_where_that_is_a_line(stored: str, left: str) -> None:
    after = fixed("flip-around-scan", HEAD + STEP + ONE.replace("    return ys[::-1]\n", stored))
    assert after.endswith(f"jax.lax.scan(step, 0.0, xs, reverse=True,)\n{left}")


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
    code = f"{HEAD}\n@jax.jit\ndef coded(x):\n    i = x.sum(-1) - 1\n    return {made}\n"
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


def test_a_scan_that_is_flipped_where_it_stands_is_turned_and_not_only_left_unflipped() -> None:
    code = HEAD + STEP + "\n@jax.jit\ndef run(xs):\n    return jax.lax.scan(step, 0.0, jnp.flip(xs, 0))[1][::-1]\n"
    after = fixed("flip-around-scan", code, unsafe=False)
    assert "return jax.lax.scan(step, 0.0, xs, reverse=True)[1]\n" in after
    around = code.replace("return jax", "return jnp.flip(jax").replace("[1][::-1]", "[1], axis=0)")
    assert "return jax.lax.scan(step, 0.0, xs, reverse=True)[1]\n" in fixed("flip-around-scan", around, unsafe=False)


def test_no_fix_has_edits_one_inside_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both = "fusionlint.rules.loop_over_traced_array._edits"
    monkeypatch.setattr(both, lambda loop, _, source: (source.replace(loop, ""), source.replace(loop.iter, "[]")))
    (finding,) = found("loop-over-traced-array", HEAD + RANGE)
    assert finding.suggestion is not None
    assert not finding.suggestion.edits


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        ("return d[i]", True),
        ("return jax.tree.map(lambda d: d[i], (d, -d))", False),
        ("def other(d):\n        return d[i]\n    return other(-d)", False),
        ("later = lambda: d[i]\n    d = -d\n    return later()", False),
        ("for _ in range(3):\n        d = -d * d[i]\n    return d", False),
        ("def turn():\n        nonlocal d\n        d = -d\n    turn()\n    return d[i]", False),
        ("match -d:\n        case d:\n            return d[i]", False),
        ("i = i if d.ndim else 0\n    return d[i]", False),
    ],
)
def test_a_value_is_taken_from_a_reduction_only_where_it_is_of_that_array(body: str, is_told: bool) -> None:
    code = f"{HEAD}\n@jax.jit\ndef best(d):\n    i = jnp.argmax(d)\n    {body}\n"
    assert bool(found("argmax-then-pick", code)) is is_told
    assert ("jnp.max(d)" in fixed("argmax-then-pick", code)) is is_told


def test_a_place_that_another_branch_found_is_read_there() -> None:
    code = f"{HEAD}\n@jax.jit\ndef best(d, i=None):\n    if i is None:\n        i = jnp.argmax(d)\n    return d[i]\n"
    assert not found("argmax-then-pick", code)
    assert found("argmax-then-pick", code.replace("if i is None", "with jax.named_scope('best')"))
    sort = code.replace("jnp.argmax(d)", "jnp.sort(d)").replace("d[i]", "i[-1]")
    assert not found("sort-for-max", sort)


FIELD = """
class Memory:
    def __init__(self, d):
        self.d = d

    def renew(self):
        self.d = -self.d

    @jax.jit
    def best(self, held):
        i, k = jnp.argmax(self.d), jnp.argmax(held["d"])
        {}
        return self.d[i], held["d"][k]
"""


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("print(self.d, held)", 2),
        ("self.renew()", 1),
        ("self.d += 1", 1),
        ("del self.d", 1),
        ("held.update(d=self.d)", 1),
        ("held['d'] = 2 * self.d", 2),
    ],
)
def test_a_field_that_may_have_changed_since_is_read_again(between: str, told: int) -> None:
    assert len(found("argmax-then-pick", HEAD + FIELD.format(between))) == told


@pytest.mark.parametrize(
    ("pick", "instead"),
    [
        ("d[jnp.arange(8), jnp.argmax(d, axis=1)]", "jnp.max(d, axis=1)"),
        ("d[jnp.arange(8), jnp.argmax(d, axis=1, keepdims=False)]", "jnp.max(d, axis=1)"),
        ("d[jnp.arange(7, -1, -1), jnp.argmax(d, axis=1)]", None),
        ("d[jnp.arange(0, 1), jnp.argmax(d, axis=1)]", None),
        ("jnp.take_along_axis(d, jnp.argmax(d, axis=1)[:, None], axis=1)", "jnp.max(d, axis=1, keepdims=True)"),
        ("jnp.take_along_axis(d, jnp.argmax(d, axis=1)[None], axis=1)", None),
        ("jnp.take_along_axis(d, jnp.argmax(d, axis=0)[None], axis=0)", "jnp.max(d, axis=0, keepdims=True)"),
        ("jnp.take_along_axis(d, jnp.expand_dims(jnp.argmax(d, axis=1), 0), axis=1)", None),
        ("jnp.take_along_axis(d, jnp.expand_dims(jnp.argmax(d, 1), -1), 1)", "jnp.max(d, axis=1, keepdims=True)"),
        ("jnp.take_along_axis(d, jnp.argmax(d, axis=1, keepdims=keep), axis=1)", None),
    ],
)
def test_a_value_is_picked_along_the_axis_of_its_place(pick: str, instead: str | None) -> None:
    code = f"{HEAD}\n@jax.jit\ndef best(d, keep):\n    return {pick}\n"
    assert fixed("argmax-then-pick", code) == (code if instead is None else code.replace(pick, instead))


def test_a_module_that_the_file_does_not_name_is_not_written() -> None:
    imported = "import jax\nfrom jax.numpy import argmax, fill_diagonal\n\n@jax.jit\ndef run(d):\n    return "
    for rule, what in (
        ("argmax-then-pick", "d[argmax(d)]\n"),
        ("write-on-diagonal", "fill_diagonal(d, 0, inplace=False)\n"),
    ):
        assert found(rule, imported + what)
        assert fixed(rule, imported + what) == imported + what
        assert "jnp.max(d)" in fixed(rule, HEAD + imported + what) or "jnp.where" in fixed(rule, HEAD + imported + what)
        shadowed = HEAD + imported.replace("run(d)", "run(d, jnp)") + what
        assert fixed(rule, shadowed) == shadowed


@pytest.mark.parametrize(
    ("read", "instead"),
    [
        ("jnp.sort(x, axis=0)[-1][2]", "jnp.max(x, axis=0)[2]"),
        ("jnp.sort(x)[-1:][0]", "jnp.max(x, keepdims=True)[0]"),
        ("jnp.sort(x)[::-1][0][None]", "jnp.max(x)[None]"),
        ("jnp.sort(x, axis=-2)[:, -1]", None),
        ("jnp.sort(x, axis=-2)[..., -1, :]", "jnp.max(x, axis=-2)"),
        ("jnp.sort(x, axis=-2)[-1, ...]", None),
        ("jnp.sort(x)[()]", None),
    ],
)
def test_what_is_read_behind_the_end_of_a_sort_is_read_of_the_largest_too(read: str, instead: str | None) -> None:
    code = f"{HEAD}\n@jax.jit\ndef largest(x):\n    return {read}\n"
    assert fixed("sort-for-max", code) == (code if instead is None else code.replace(read, instead))


@pytest.mark.parametrize(
    ("made", "is_found"),
    [
        ("y = x + 1", True),
        ("y = jnp.zeros(3) + x", True),
        ("y = jnp.zeros((3,))", True),
        ("y = jnp.sum(jnp.zeros((3, 4)) + x, axis=0)", True),
        ("y = jnp.zeros((3, 4)) + x", False),
        ("shape = (3, 4, 5); y = jnp.abs(jnp.ones(shape) * x)", False),
        ("y = rows", False),
        ("y = -row", True),
    ],
)
def test_the_first_of_what_is_seen_to_have_rows_is_a_row(made: str, is_found: bool) -> None:
    head = f"{HEAD}from jaxtyping import Array, Float\n\n@jax.jit\n"
    head += "def least(x, rows: Float[Array, 'b n'], row: Float[Array, '*b n']):\n"
    assert bool(found("sort-for-max", f"{head}    {made}\n    return jnp.sort(y)[0]\n")) is is_found


ELSEWHERE_N = """
n = 3
places = jnp.arange(n)

@jax.jit
def run(x, n):
    x = jnp.full((n, n), x)
    return x.at[places, places].set(0.0)

@jax.jit
def coded(i):
    n = 6
    return jnp.zeros((n, 4)).at[places, i].set(1)
"""


@pytest.mark.parametrize("rule", ["write-on-diagonal", "one-hot-by-at-set"])
def test_a_length_of_another_scope_is_not_taken_for_the_one_here(rule: str) -> None:
    assert found(rule, HEAD + ELSEWHERE_N)
    assert fixed(rule, HEAD + ELSEWHERE_N) == HEAD + ELSEWHERE_N
    same = HEAD + ELSEWHERE_N.replace("x, n)", "x)").replace("    n = 6\n", "")
    assert fixed(rule, same) != same


@pytest.mark.parametrize(
    ("write", "advised", "is_fixed"),
    [
        ("x.at[i, i].set([1.0, 2.0, 3.0])", "jnp.where(jnp.eye(n, dtype=bool), jnp.array([1.0, 2.0, 3.0]), x)", False),
        ("x.at[i, i].set((1.0, 2.0, 3.0))", "jnp.where(jnp.eye(n, dtype=bool), jnp.array((1.0, 2.0, 3.0)), x)", False),
        ("x.at[jnp.diag_indices_from(y)].set(0.0)", "jnp.where(jnp.eye(y.shape[0], dtype=bool), 0.0, x)", False),
        ("x.at[jnp.diag_indices_from(x)].set(0.0)", "jnp.where(jnp.eye(x.shape[0], dtype=bool), 0.0, x)", True),
        ("x.at[i, i].set(0.0)", "jnp.where(jnp.eye(n, dtype=bool), 0.0, x)", True),
    ],
)
def test_a_diagonal_takes_arrays_and_numbers_and_the_length_that_was_asked_for(
    write: str, advised: str, is_fixed: bool
) -> None:
    head = f"{HEAD}\n@jax.jit\ndef run(x, y):\n    x = x @ y\n    n, i = x.shape[0], jnp.arange(x.shape[0])\n"
    code = f"{head}    i = jnp.arange(n)\n    return {write}\n"
    (finding,) = found("write-on-diagonal", code)
    assert finding.suggestion is not None
    assert finding.suggestion.text.startswith(advised)
    assert fixed("write-on-diagonal", code) == (code.replace(write, advised) if is_fixed else code)


@pytest.mark.parametrize(
    ("before", "is_fixed"),
    [
        ("n = x.shape[0]", True),
        ("n = len(x)", True),
        ("n, _ = x.shape", True),
        ("n = 4; x = jnp.full((n, n), y)", True),
        ("n = 4; x = jnp.full((n, 8), y)", False),
        ("n = 3", False),
        ("n = y.shape[0]", False),
        ("n = x.shape[0]; x = jnp.tile(x, (2, 2))", False),
    ],
)
def test_a_mask_is_written_only_where_the_array_is_seen_to_be_as_long(before: str, is_fixed: bool) -> None:
    body = f"    {before}\n    i = jnp.arange(n)\n    return x.at[i, i].set(0.0)\n"
    code = f"{HEAD}\n@jax.jit\ndef run(x, y):\n{body}"
    assert found("write-on-diagonal", code)
    assert ("jnp.where(jnp.eye(n, dtype=bool), 0.0, x)" in fixed("write-on-diagonal", code)) is is_fixed


@pytest.mark.parametrize(
    "matrix",
    [
        "x.T @ x + jnp.eye(4, k=1)",
        "x.T @ x / -3 + jnp.eye(4)",
        "x.T @ x + shift * jnp.eye(4)",
        "shift * (x.T @ x) + jnp.eye(4)",
    ],
)
def test_a_matrix_that_need_not_be_definite_is_solved_as_it_was(matrix: str) -> None:
    code = f"{HEAD}\n@jax.jit\ndef solved(x, b):\n    shift = -0.5\n    return jnp.linalg.solve({matrix}, b)\n"
    assert not found("solve-for-cholesky", code)
    assert found("solve-for-cholesky", code.replace(matrix, "x.T @ x + 0.5 * jnp.eye(4)"))


@pytest.mark.parametrize("asked", ["value.block_until_ready()", "value.devices()", "isinstance(value, jax.Array)"])
def test_elements_that_are_asked_for_what_jax_alone_has_stay_arrays_of_jax(asked: str) -> None:
    code = HEAD + ROWS.replace("(value))", f"(value))\n        out.append({asked})")
    assert found("iterating-device-array", code)
    assert fixed("iterating-device-array", code) == code


def test_one_number_for_all_rows_is_no_class_for_each() -> None:
    for one in ("i.max()", "jnp.max(i)", "jnp.int32(2)", "None", "i[:, None]"):
        code = f"{HEAD}\n@jax.jit\ndef coded(i):\n    return jnp.zeros((5, 4)).at[jnp.arange(5), {one}].set(1)\n"
        assert not found("one-hot-by-at-set", code)


@pytest.mark.parametrize(
    ("rule", "made", "read", "advised"),
    [
        ("diag-then-matmul", "jnp.diag(a)", "b @ d", "b * {}"),
        ("inverse-then-matmul", "jnp.linalg.inv(a)", "d @ b", "jnp.linalg.solve({}, b)"),
        ("inverse-then-matmul", "jnp.linalg.inv(a)", "b @ d", "jnp.linalg.solve({}.mT, b.mT).mT"),
    ],
)
def test_what_has_changed_since_is_not_advised_by_its_name(rule: str, made: str, read: str, advised: str) -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(m, b):\n    d = {made}\n    {{}}\n    return {read}\n".replace("(a)", "(m)")
    own = code.replace("    d = ", "    m = ").replace("d @", "m @").replace("@ d", "@ m")
    changed = "v" if "diag" in rule else "a"
    for text, name in ((code.format("b = 2 * b"), "m"), (code.format("m = 2 * m"), changed), (own.format("pass"), "m")):
        (finding,) = found(rule, text)
        assert finding.suggestion is not None
        assert finding.suggestion.text.startswith(advised.format(name))


@pytest.mark.parametrize(
    ("rule", "writes", "advised"),
    [
        ("chained-at-set", "x.at[i].set(a).at[j].set(b)", "jnp.where(k == j, b, jnp.where(k == i, a, x)) with `k = "),
        (
            "chained-at-set",
            "x.at[k].set(a).at[n].set(b)",
            "jnp.where(k_ == n, b, jnp.where(k_ == k, a, x)) with `k_ = ",
        ),
        ("chained-at-set", "x.at[i].set(n).at[-1].set(b)", "jnp.where(k == n_ - 1, b, jnp.where(k == i, n, x)) with"),
        (
            "boundary-writes",
            'i.at[0].set(a).at[-1].set(b, mode="drop")',
            "jnp.where(i_ == n - 1, last, jnp.where(i_ == 0, first, i))",
        ),
    ],
)
def test_a_name_that_advice_makes_up_is_none_of_the_code(rule: str, writes: str, advised: str) -> None:
    (finding,) = found(rule, f"{HEAD}\n@jax.jit\ndef run(x, i, j, k, n, a, b):\n    return {writes}\n")
    assert finding.suggestion is not None
    assert finding.suggestion.text.startswith(advised)


def test_a_new_axis_is_no_place() -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x, i, a):\n    return x.at[i].set(a).at[None].add(2 * a)\n"
    assert "None" not in "".join(str(finding.suggestion) for finding in found("chained-at-set", code))


@pytest.mark.parametrize(
    ("kept", "total", "advised"),
    [
        ("jax.nn.softmax(x) * mask", "p.sum(-1, keepdims=True)", "jax.nn.softmax(jnp.where(mask, x, -jnp.inf))"),
        ("jax.nn.softmax(x, axis=0) * ~dead", "p.sum(0)", "jax.nn.softmax(jnp.where(~dead, x, -jnp.inf), axis=0)"),
        ("(1 - dead) * jax.nn.softmax(x)", "p.sum()", "jax.nn.softmax(jnp.where(1 - dead, x, -jnp.inf))"),
        ("jax.nn.softmax(x) * mask", "p.sum(0)", None),
        ("jax.nn.softmax(x, axis=0) * mask", "jnp.sum(p, axis=1, keepdims=True)", None),
        ("jax.nn.softmax(x) * prior", "p.sum(-1, keepdims=True)", None),
        ("jax.nn.softmax(x) * (prior * mask)", "p.sum(-1, keepdims=True)", None),
    ],
)
def test_a_masked_softmax_keeps_its_axis_and_its_mask(kept: str, total: str, advised: str | None) -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x, mask, dead, prior):\n    p = {kept}\n    return p / {total}\n"
    told = [finding.suggestion.text for finding in found("softmax-then-mask", code) if finding.suggestion]
    assert told == ([] if advised is None else [advised])


@pytest.mark.parametrize(
    ("reduced", "advised"),
    [
        ("jnp.max(x.at[k].set(-1.0))", "jnp.where(jnp.arange(n) == k, -1.0, x)"),
        ("jnp.max(x.at[k].set(-1.0), axis=1)", "jnp.where(jnp.arange(n)[:, None] == k, -1.0, x)"),
        ("x.at[:, k].set(-1.0).max(1)", "jnp.where(jnp.arange(n) == k, -1.0, x)"),
        ("jax.nn.logsumexp((x - x[k]).at[k].set(0.0))", "jnp.where(jnp.arange(n) == k, 0.0, x - x[k])"),
        ("jax.nn.logsumexp((x - x[k]).at[k].set(-jnp.inf))", "jnp.where(jnp.arange(n) == k, -jnp.inf, x - x[k])"),
    ],
)
def test_what_is_overwritten_before_a_reduction_is_a_row_or_an_element_of_it(reduced: str, advised: str) -> None:
    (finding,) = found("write-before-reduction", f"{HEAD}\n@jax.jit\ndef run(x, k):\n    return {reduced}\n")
    assert finding.suggestion is not None
    assert finding.suggestion.text == advised


TREES = """
def is_finite(tree):
    return jnp.isfinite(tree["a"]).all()


@jax.jit
def step(params, new, k):
    new = bettered(new)
    params = lax.cond({}, lambda _: new, lambda _: params, None)
    return params
"""


@pytest.mark.parametrize(
    ("test", "is_named"),
    [("k == 0", False), ("k % len(new) + k // 3 == 17", True), ("is_finite(new)", True), ("jnp.any(k > 0)", False)],
)
def test_what_a_choice_of_each_leaf_asks_has_a_name_where_it_is_long_or_called(test: str, is_named: bool) -> None:
    code = HEAD + TREES.format(test)
    asked = "condition" if is_named else test
    lines = [f"    condition = {test}"] * is_named
    lines.append(f"    params = jax.tree.map(lambda a, b: jnp.where({asked}, a, b), new, params)")
    assert "\n".join(lines) in fixed("cond-for-where", code)


def test_what_is_called_for_each_leaf_and_has_no_line_for_a_name_stays() -> None:
    code = HEAD + TREES.format("is_finite(new)").replace("params = lax", "params = k and lax")
    assert fixed("cond-for-where", code) == code
