"""What fixes write looks as the code around it does: an argument a line, its quotes, and no line that is too long."""

from __future__ import annotations

import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.reading import read_facts
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

HEAD = "import jax\nimport jax.numpy as jnp\n\n"
LONG = "an_argument_whose_name_fills_a_line_that_would_else_be_short"


def fixed(rule: str, code: str) -> str:
    """The code behind the imports after `check --fix --unsafe-fixes`."""
    data, scope = (HEAD + code).encode(), Scope((rule,))
    after = fix_text("m.py", data, check_text(data, "m.py", scope), scope, join({}), unsafe=True).after
    return after.decode().removeprefix(HEAD)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("(a, v)", '(a, v, method="scan_unrolled")'),
        ("(a, (v + 1))", '(a, (v + 1), method="scan_unrolled")'),
        ("(\n        a, v\n    )", '(\n        a, v, method="scan_unrolled"\n    )'),
        ("(\n        a,\n        v,\n    )", '(\n        a,\n        v,\n        method="scan_unrolled",\n    )'),
        ("(a,\n      v)", '(a,\n      v,\n      method="scan_unrolled")'),
        ("(a, v, side='left')", "(a, v, side='left', method='scan_unrolled')"),
    ],
)
def test_an_argument_is_added_where_the_last_one_is(call: str, after: str) -> None:
    code = "def cells(a, v):\n    return jnp.searchsorted{}\n"
    assert fixed("default-searchsorted", code.format(call)) == code.format(after)


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        (
            f"{LONG} = jnp.clip(jnp.searchsorted(a, v), 1, len(a) - 1)",
            f'{LONG} = jnp.clip(\n        jnp.searchsorted(a, v, method="scan_unrolled"),\n        1,\n'
            "        len(a) - 1,\n    )",
        ),
        (
            f"return jnp.minimum(jnp.searchsorted(a, v), jnp.searchsorted(a, {LONG}))",
            'return jnp.minimum(\n        jnp.searchsorted(a, v, method="scan_unrolled"),\n        jnp.searchsorted(\n'
            f'            a,\n            {LONG},\n            method="scan_unrolled",\n        ),\n    )',
        ),
        (
            f"{LONG} = jnp.searchsorted(a, vvvvvvv) - 1",
            f'{LONG} = jnp.searchsorted(\n        a,\n        vvvvvvv,\n        method="scan_unrolled",\n    ) - 1',
        ),
    ],
)
def test_what_an_argument_makes_too_long_is_broken_at_the_calls_around(statement: str, after: str) -> None:
    code = f"@jax.jit\ndef cells(a, v, vvvvvvv, {LONG}):\n    {{}}\n"
    assert fixed("default-searchsorted", code.format(statement)) == code.format(after)


def test_a_line_before_is_broken_where_it_is_too_long() -> None:
    code = f"@jax.jit\ndef ranked({LONG}):\n    order = jnp.argsort({LONG})\n    return jnp.sort({LONG}), order[::-1]\n"
    assert fixed("argsort-then-gather", code).endswith(
        "    values, order = jax.lax.sort_key_val(\n"
        f"        {LONG},\n"
        "        jax.lax.broadcasted_iota(\n"
        f"            int,\n            {LONG}.shape,\n            {LONG}.ndim - 1,\n"
        "        ),\n    )\n"
        "    return values, order[::-1]\n"
    )


def test_lines_that_are_added_end_as_the_others_do() -> None:
    code = "def cells(a, v):\r\n    return jnp.searchsorted(\r\n        a,\r\n        v)\r\n"
    assert fixed("default-searchsorted", code).endswith('        v,\r\n        method="scan_unrolled")\r\n')


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(4):", "    x = x.at[i].set(jnp.sin(x[i]) * i)", "return x"),
        ("for i in range(1, 4):", "    x = x.at[i].set(x[i - 1] * 0.5 + jnp.tanh(y[i]))", "return x"),
        ("x = x.at[0].set(jnp.maximum(x[0], y))", "z = jnp.sin(x[0]) + y", "x = x.at[2].set(x[0] + z)", "return x * 2"),
    ],
)
def test_statements_that_are_added_end_as_the_others_do(lines: tuple[str, ...]) -> None:
    body = "".join(f"    {line}\n" for line in lines)
    code = f"@jax.jit\ndef f(x: jax.Array, y: jax.Array):\n{body}"
    rules = ("chained-at-set", "recurrence-by-at-set")
    (after,) = {one for rule in rules if (one := fixed(rule, code)) != code}
    assert {fixed(rule, code.replace("\n", "\r\n")) for rule in rules} == {
        code.replace("\n", "\r\n"),
        after.replace("\n", "\r\n"),
    }


def test_a_comment_beside_the_last_argument_stays_beside_it() -> None:
    step = "lambda c, x: (c + x, c)"
    code = f"def total(xs):\n    return jax.lax.scan(\n        {step},\n        0.0,\n        xs,  # rows\n    )\n"
    assert "        xs, unroll=16 if" in fixed("scan-without-unroll", code)


def test_a_nest_is_one_line_where_that_is_short() -> None:
    code = "def f(x):\n    return jnp.select(\n        [x < 0, x < 1],\n        [x, 1.0],\n        2.0,\n    )\n"
    assert fixed("select-or-piecewise", code) == (
        "def f(x):\n    return jnp.where(x < 0, x, jnp.where(x < 1, 1.0, 2.0))\n"
    )


def test_a_nest_has_an_argument_a_line_where_one_line_would_be_long() -> None:
    code = f"def f(x, {LONG}):\n    return jnp.select([x < 0, x < 1], [x, {LONG}], {LONG})\n"
    assert fixed("select-or-piecewise", code) == (
        f"def f(x, {LONG}):\n    return jnp.where(\n        x < 0,\n        x,\n"
        f"        jnp.where(\n            x < 1,\n            {LONG},\n            {LONG},\n        ),\n    )\n"
    )


def test_code_of_several_lines_is_laid_out_anew() -> None:
    code = f"""def f(x, {LONG}):
  return jnp.select(
    [
      jnp.logical_or(
        x < 0,
        {LONG} < 0,
      ),
      x
      == {LONG},
    ],
    [x, {LONG}],
  )
"""
    assert fixed("select-or-piecewise", code) == (
        f"def f(x, {LONG}):\n  return jnp.where(\n    jnp.logical_or(x < 0, {LONG} < 0),\n    x,\n    jnp.where(\n"
        f"      x == {LONG},\n      {LONG},\n      0,\n    ),\n  )\n"
    )


def test_a_choice_of_two_branches_is_laid_out_likewise() -> None:
    code = f"""@jax.jit
def f(x, {LONG}):
\treturn jax.lax.cond(
\t\t{LONG} > 0,
\t\tlambda: x * {LONG},
\t\tlambda: x,
\t)
"""
    assert fixed("cond-for-where", code).endswith(
        f"\treturn jnp.where(\n\t\t{LONG} > 0,\n\t\tx * {LONG},\n\t\tx,\n\t)\n"
    )


def test_a_text_of_several_lines_is_left_as_it_is() -> None:
    code = 'def f(x, table):\n    return jnp.select([x < 0, x < 1], [table["""a\n  b"""], x])\n'
    assert fixed("select-or-piecewise", code).count('table["""a\n  b"""]') == 1


def test_a_line_that_is_continued_in_a_text_is_left_as_it_is() -> None:
    code = 'def f(x, table):\n    return jnp.select([x < 0, x < 1], [table["a\\\n   b"], x])\n'
    assert fixed("select-or-piecewise", code).count('table["a\\\n   b"]') == 1


def test_one_write_in_place_of_several_is_broken_at_its_longest_brackets() -> None:
    x, y = "index_of_the_ball_in_a_wide_room", "index_of_the_paddle_in_a_wide_room"
    code = (
        f"@jax.jit\ndef f(grid: jax.Array, {x}: int, {y}: int):\n"
        f"    grid = grid.at[0, {x}].set(1.0)\n"
        f"    return grid.at[1, {y}].set(1.0)\n"
    )
    assert fixed("chained-at-set", code).endswith(
        f"    return grid.at[\n        jnp.array([0, 1]),\n        jnp.array([{x}, {y}]),\n    ].set(1.0)\n"
    )


def test_a_sum_that_is_too_long_has_a_line_for_each_operand() -> None:
    code = (
        f"@jax.jit\ndef f(x: jax.Array, {LONG}: float):\n    y = x.at[0].mul({LONG})\n    y = y.at[0].add(1 / {LONG})\n"
    )
    assert fixed("chained-at-set", f"{code}    return y\n").endswith(
        f"    y = x.at[0].set(\n        x[0] * {LONG}\n        + 1 / {LONG}\n    )\n    return y\n"
    )


@pytest.mark.parametrize("imported", ["from tools import *", "from tools import jnp", "import jax.numpy as jnp"])
def test_a_module_may_come_by_way_of_another_file(imported: str) -> None:
    body = "@jax.jit\ndef f(x: jnp.ndarray, a):\n    x = x.at[0].set(a)\n    x = x.at[1].set(2.0)\n    return x * 2\n"
    code, scope = f"import jax\n{imported}\n\n\n{body}".encode(), Scope(("chained-at-set",))
    tools = "import jax.numpy as jnp\n"
    files = {"m.py": read_facts(code.decode(), "m.py", "m"), "tools.py": read_facts(tools, "tools.py", "tools")}
    world = join(files)
    found = check_text(code, "m.py", scope, world)
    after = fix_text("m.py", code, found, scope, world, unsafe=True).after.decode()
    assert "x_places = jnp." in after


def test_blank_lines_go_with_the_lines_before_them() -> None:
    code = "@jax.jit\ndef f(x: jax.Array, a: float):\n    y = x.at[0].mul(a)\n\n    y = y.at[0].add(1)\n    return y\n"
    assert fixed("chained-at-set", code).endswith(":\n    y = x.at[0].set(x[0] * a + 1)\n    return y\n")


@pytest.mark.parametrize(
    ("before", "step", "hang"),
    [
        ("def g(x):\n  y = jnp.sin(\n      x)\n  return jnp.cos(\n      y)\n", "  ", "    "),
        ("def g(x):\n  y = jnp.sin(\n    x)\n  return jnp.cos(\n    y)\n", "  ", "  "),
        ("def g(x):\n  return x\n", "  ", "    "),
        ('def g(x):\n    """Of one number\n\n  x = 2 say\n    """\n    return x\n', "    ", "    "),
    ],
)
def test_lines_within_a_bracket_hang_as_those_of_the_file_do(before: str, step: str, hang: str) -> None:
    code = f"{before}\n\ndef f(x, {LONG}):\n{step}return jnp.select([x < 0], [{LONG}], {LONG} + 1)\n"
    within = f"{step}{hang}"
    assert fixed("select-or-piecewise", code).endswith(
        f"{step}return jnp.where(\n{within}x < 0,\n{within}{LONG},\n{within}{LONG} + 1,\n{step})\n"
    )


@pytest.mark.parametrize("head", ["def g(x):", "def g(\n      x,\n) -> int:", "class G(\n    object\n):  # numbers"])
def test_a_function_that_is_added_has_the_blocks_of_the_file(head: str) -> None:
    code = f"{head}\n  y = 1\n\n\ndef f(a, xs, ys):\n  return jax.jit(jax.vmap(lambda x: jnp.interp(x, xs, ys)))(a)\n"
    assert 'def _interp(x, xp, fp):\n  """' in fixed("default-searchsorted", code)


def test_brackets_around_what_needs_none_go() -> None:
    rolled = "jnp.roll(h['past'], 1)\n        .at[:1]\n        .set(q)"
    code = f"def f(h, q):\n    h = (\n        {rolled}\n    )\n    return h\n"
    assert fixed("roll-then-set", code) == (
        "def f(h, q):\n    h = jnp.concatenate([jnp.full_like(h['past'][:1], q), h['past'][:-1]])\n    return h\n"
    )


def test_brackets_with_a_comment_stay() -> None:
    rolled = "jnp.roll(h['past'], 1).at[:1].set(q)"
    code = f"def f(h, q):\n    h = (  # the last comes first\n        {rolled}\n    )\n    return h\n"
    assert "h = (  # the last comes first\n        jnp.concatenate(" in fixed("roll-then-set", code)


def test_a_line_or_two_that_are_too_long_say_nothing_of_the_others() -> None:
    long = f"    y = x + {LONG}_and_more_than_that_{LONG}\n"
    code = "def g(x):\n" + "    y = x\n" * 900 + long + "\n\n"
    code += f"def f(x, {LONG}):\n    return jnp.select([x < 0], [{LONG}], x)\n"
    assert fixed("select-or-piecewise", code).endswith(f"(\n        x < 0,\n        {LONG},\n        x,\n    )\n")
