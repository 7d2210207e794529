"""What the page of columns-of-a-stack has no room for: other loops, other ways to take a state apart, other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n"
RULE = Scope(("columns-of-a-stack",))
STEP = "def step(s):\n    return jnp.stack([s[:, 0] + s[:, 1], s[:, 1]], axis=1)\n"


def found(code: str) -> int:
    return len(check_text((HEAD + code).encode(), "code.py", RULE))


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("lax.scan(lambda s, _: (step(s), s), s, length=9)", id="scan"),
        pytest.param("lax.fori_loop(0, 9, lambda i, s: step(s), s)", id="fori_loop"),
        pytest.param("lax.while_loop(lambda s: True, step, s)", id="while_loop"),
        pytest.param("lax.scan(lambda s, _: (jax.vmap(step)(s), None), s, length=9)", id="vmap"),
    ],
)
def test_the_loop_that_calls_the_step(loop: str) -> None:
    assert found(f"{STEP}def run(s):\n    return {loop}\n") == 1


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        pytest.param("lambda s: jnp.all(s[:, 1] < 9.0)", 1, id="a column"),
        pytest.param("lambda s: jnp.all(s < 9.0)", 0, id="the whole"),
        pytest.param("going", 0, id="the whole, by a function with a name"),
    ],
)
def test_what_a_while_loop_s_condition_needs_whole_is_no_state_of_columns(condition: str, number: int) -> None:
    going = "def going(s):\n    return jnp.linalg.norm(s) < 9.0\n"
    assert found(f"{going}{STEP}def run(s):\n    return lax.while_loop({condition}, step, s)\n") == number


def test_two_stacks_between_which_a_step_chooses_are_one_state() -> None:
    one, other = "jnp.array([s[0], s[0] + s[1]])", "jnp.array([s[0] * s[1], s[1]])"
    step = f"def step(i, s):\n    return jnp.where(s[0] > s[1], {one}, {other})\n"
    (said,) = check_text(f"{HEAD}{step}def run(s):\n    return lax.fori_loop(0, 9, step, s)\n".encode(), "a.py", RULE)
    assert said.suggestion is not None
    assert said.suggestion.text.startswith("carry a tuple of the parts,")


def test_a_function_that_no_loop_calls_is_no_step() -> None:
    assert found(f"{STEP}def twice(s):\n    return step(step(s))\n") == 0


@pytest.mark.parametrize(
    ("take", "give"),
    [
        pytest.param("x, v = s.T", "jnp.stack([x + v, v], axis=-1)", id="T"),
        pytest.param("x, v = jnp.unstack(s, axis=1)", "jnp.stack([x + v, v], axis=1)", id="unstack"),
        pytest.param("x, v = jnp.split(s, 2, axis=-1)", "jnp.concatenate([x + v, v], axis=-1)", id="split"),
        pytest.param("x, v = s", "jnp.array([x + v, v])", id="unpacked"),
        pytest.param("x, v = s[0], s[-1]", "jnp.stack((x + v, v))", id="first and last"),
        pytest.param("x, v = s[..., 0], s[..., 1:]", "jnp.column_stack([x + v, v])", id="column_stack"),
        pytest.param("x, v = s[:, 0], s[:, 1]", "jnp.clip(jnp.stack([x + v, v], 1), -1, 1)", id="clipped"),
    ],
)
def test_ways_to_take_apart_and_put_together(take: str, give: str) -> None:
    assert (
        found(f"def body(s, _):\n    {take}\n    return {give}, None\ndef run(s):\n    return lax.scan(body, s)\n") == 1
    )


@pytest.mark.parametrize(
    ("take", "give"),
    [
        pytest.param("x, v = s[:, 0], s[:, 1]", "(x + v, v)", id="a tuple"),
        pytest.param("x, v = s[:, 0], s[:, 1]", "jnp.stack([x + v, v])", id="stacked along another axis"),
        pytest.param("x, v = s[:, 0], s[:, 1]", "s + jnp.stack([v, x], axis=1)", id="a vector"),
        pytest.param(
            "x, v = s[:, 0], s[:, 1]", "jnp.where(x[:, None] > 0, jnp.stack([x, v], 1), 2 * s)", id="the whole"
        ),
        pytest.param("x, v = s[i], s[j]", "jnp.stack([x + v, v])", id="rows that vary"),
        pytest.param("x, v = s[:3], s[2:]", "jnp.concatenate([x, v])", id="pieces that overlap"),
        pytest.param("x = s[:, 0]", "jnp.stack([x + 1, x], axis=1)", id="one column"),
        pytest.param("a, b = s[0], s[1]", "jnp.array([[a, b], [b, a]])", id="a matrix"),
    ],
)
def test_what_is_no_state_of_columns(take: str, give: str) -> None:
    assert (
        found(f"def body(s, _):\n    {take}\n    return {give}, None\ndef run(s):\n    return lax.scan(body, s)\n") == 0
    )


def test_a_field_that_another_function_needs_whole_is_silent() -> None:
    step = "def step(env):\n    return env.replace(track=jnp.array([env.track[0] + 1, env.track[1]]))\n"
    assert found(step) == 1
    assert found(f"{step}def speed(env):\n    return jnp.linalg.norm(env.track)\n") == 0


def test_a_loop_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "physics.py").write_text(HEAD + STEP)
    (tmp_path / "run.py").write_text(
        f"{HEAD}from physics import step\ndef body(s, _):\n    return step(s), None\n"
        "def run(s):\n    return lax.scan(body, s, length=9)\n"
    )
    paths = sorted(tmp_path.glob("*.py"))
    assert [Path(f.location.path).name for f in check_files(paths, RULE).findings] == ["physics.py"]


@pytest.mark.parametrize(("name", "number"), [("step", 1), ("translated", 0)])
def test_a_field_that_is_given_back_is_the_next_step_s_where_it_is_a_step(name: str, number: int) -> None:
    stack = "jnp.stack([s.modes[:, 0] + s.modes[:, 1], s.modes[:, 1]], axis=1)"
    assert found(f"def {name}(s):\n    return s.replace(modes={stack})\n") == number


@pytest.mark.parametrize(("decorator", "number"), [("", 1), ('@jnp.vectorize(signature="(2)->(2)")\n', 0)])
def test_a_function_of_single_vectors_is_no_step(decorator: str, number: int) -> None:
    step = "def step(s):\n    return jnp.stack([s[0] + s[1], s[1]])\n"
    assert found(f"{decorator}{step}def run(s):\n    return lax.fori_loop(0, 9, lambda i, s: step(s), s)\n") == number
