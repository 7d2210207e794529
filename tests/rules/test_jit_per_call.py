"""jit-per-call where the page cannot say it: how often a function runs, and what becomes of the jitted function."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("jit-per-call",))
HEAD = "import jax, functools, jax.numpy as jnp\ndef f(x): return x\n"


def count(code: str, path: str = "m.py") -> int:
    return len(check_text((HEAD + code).encode(), path, ONLY))


def in_function(body: str, name: str = "step") -> str:
    return f"def {name}(x, a):\n" + "".join(f"    {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        "return jax.jit(lambda y: y)(x)",
        "return jax.jit(functools.partial(f, 1))(x)",
        "return jax.jit(jax.grad(f))(x)",
        "return jax.jit(jax.vmap(f))(x)",
        "return jax.jit(jax.jit(f))(x)",
        "return jax.pmap(lambda y: y)(x)",
        "return jax.pmap(jax.vmap(f))(x)",
        "@functools.partial(jax.pmap, axis_name='i')\ndef g(y): return a * y\nreturn g(x)",
        "return functools.partial(jax.jit, donate_argnums=0)(lambda y: y)(x)",
        "def g(y): return a * y\nreturn jax.jit(g)(x)",
        "g = lambda y: a * y\nreturn jax.jit(g)(x)",
        "g = jax.jit(lambda y: a * y)\nreturn g(x) + g(a)",
        "@jax.jit\ndef g(y): return a * y\nreturn g(x)",
        "@functools.partial(jax.jit, static_argnums=1)\ndef g(y, n): return a * y\nreturn g(x, 2)",
    ],
)
def test_a_function_made_anew_in_a_step_is_compiled_anew(body: str) -> None:
    assert count(in_function(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "return jax.jit(f)(x)",
        "return jax.jit(a)(x)",
        "return jax.jit(a.init)(x)",
        "return jax.jit(jnp.sum)(x)",
        "return jax.jit(lambda y: y)",
        "g = jax.jit(lambda y: y)\nreturn g",
        "g = jax.jit(lambda y: y)\nreturn a(g, g(x))",
        "g = jax.jit(lambda y: y)\na.g = g\nreturn g(x)",
        "a.g = jax.jit(lambda y: y)\nreturn a.g(x)",
        "a[x] = jax.jit(lambda y: y)\nreturn a[x](x)",
        "g = jax.jit(lambda y: y)\nreturn lambda z: g(z)",
        "g = jax.jit(lambda y: y)\nreturn [g(y) for y in x]",
        "g = jax.jit(lambda y: y)\nfor y in x: g(y)",
        "@jax.jit\ndef g(y): return y\nreturn g",
        "return jax.jit(lambda y: y).lower(x).compile()(x)",
        "return jax.jit(lambda y: y).eval_shape(x)",
        "return jax.pmap(a.step)(x)",
        "return jax.pmap(lambda y: jax.lax.psum(y, 'i'), 'i')(x)",  # a barrier
        "return jax.pmap(f)(x)",
        "return jax.vmap(lambda y: y)(x)",
        "return jax.jit()(x)",
    ],
)
def test_a_jit_that_is_cached_kept_or_used_often_is_left_alone(body: str) -> None:
    assert count(in_function(body)) == 0


CALL = "return jax.jit(lambda y: y)(x)"


def test_what_is_global_is_kept() -> None:
    code = "def step(x):\n    {}\n    if g is None: g = jax.jit(lambda y: y)\n    return g(x)\n"
    assert count("g = None\n" + code.format("global g")) == 0
    assert count("def step(x):\n    g = jax.jit(lambda y: y)\n    return g(x)\n") == 1


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (in_function(CALL, "solve"), 0),
        (in_function(CALL, "solve") + "def main(xs): return [solve(x, 1) for x in xs]\n", 1),
        (in_function(CALL, "solve") + "def once(x): return solve(x, 1)\n", 0),
        (in_function(CALL, "solve") + "def run(x): return solve(x, 1)\ndef go(xs):\n    for x in xs: run(x)\n", 1),
        (in_function(CALL, "solve") + "def test_solve(xs): return [solve(x, 1) for x in xs]\n", 0),
        (in_function(CALL, "main"), 0),
        (in_function(CALL, "time_for_task") + "def main(xs): return [time_for_task(x, 1) for x in xs]\n", 0),
        (in_function(CALL, "time_step") + "def main(xs): return [time_step(x, 1) for x in xs]\n", 1),
        (in_function(CALL, "init_state") + "states = [init_state(x, 1) for x in y]\n", 0),
        (in_function(CALL, "test_step"), 0),
        ("@functools.lru_cache\n" + in_function(CALL), 0),
        ("@jax.jit\n" + in_function(CALL), 0),
        (in_function(CALL) + "g = jax.vmap(step)\n", 0),
        ("jax.jit(lambda y: y)(3)\n", 0),
        ("for x in range(30): jax.jit(lambda y: y)(x)\n", 1),
        ("for x in range(3): jax.jit(lambda y: y)(x)\n", 0),
        ("for x in range(30): jax.jit(f)(x)\n", 0),
        ("g = functools.partial(f, 1)\nfor x in range(30): jax.jit(g)(x)\n", 0),
        ("fs = [jax.jit(functools.partial(f, k)) for k in range(30)]\n", 0),
        ("for s in range(30): jax.jit(lambda y: y, out_shardings=s)(3)\n", 0),
        ("for x in range(30):\n    if x % 9 == 0: jax.jit(lambda y: y)(x)\n", 0),
        ("for x in range(30):\n    if a: jax.jit(lambda y: y)(x)\n    else: jax.jit(lambda y: -y)(x)\n", 2),
    ],
)
def test_it_matters_how_often_the_function_runs(code: str, found: int) -> None:
    assert count(code) == found


def test_tests_and_benchmarks_may_compile_as_they_like() -> None:
    assert count(in_function(CALL), "tests/test_m.py") == 0
    assert count(in_function(CALL), "benchmarks/m.py") == 0


def test_a_loop_in_another_file_counts(tmp_path: Path) -> None:
    (tmp_path / "solver.py").write_text(HEAD + in_function(CALL, "solve"))
    (tmp_path / "app.py").write_text("from solver import solve\ndef main(xs):\n    return [solve(x, 1) for x in xs]\n")
    result = check_files([tmp_path / "solver.py", tmp_path / "app.py"], ONLY)
    assert [Path(f.location.path).name for f in result.findings] == ["solver.py"]


def test_what_is_compiled_again_on_purpose_or_belongs_to_another_object_each_time() -> None:
    """A flag of the loop asks for it; or the loop makes the environments, each of which has code of its own."""
    wrap = "g = jax.jit(functools.partial(f, 1))"
    assert count(in_function(f"for y in a:\n    {wrap}\n    x = g(y)")) == 1
    assert count(in_function(f"for y in a:\n    if y > 3:\n        {wrap}\n        x = g(y)")) == 0
    step = "step = jax.jit(jax.vmap(env.step))"
    assert count(in_function(f"for name in a:\n    env = make(name)\n    {step}\n    x = step(x)")) == 0
    assert count(in_function(f"env = make(x)\nfor name in a:\n    {step}\n    x = step(x)")) == 1
    assert count(in_function("for env in a:\n    x = jax.jit(jax.vmap(env.step))(x)")) == 0
    assert count(in_function("for c in a:\n    x = jax.jit(jax.vmap(make(c)))(x)")) == 0
    assert count(in_function("for c in a:\n    x = jax.jit(jax.vmap(make(x.shape)))(c)")) == 0
    assert count(in_function("for c in a:\n    g = functools.partial(c.f, x)\n    x = jax.jit(jax.vmap(g))(x)")) == 0
    assert count(in_function("for c in a:\n    g = functools.partial(f, c)\n    x = jax.jit(jax.vmap(g))(x)")) == 1


@pytest.mark.parametrize(
    ("function", "number"),
    [
        ("lambda y: y", 1),
        ("functools.partial(f, 1)", 1),
        ("jax.vmap(f)", 1),
        ("eqx.filter_vmap(lambda y: y)", 1),
        ("eqx.filter_grad(functools.partial(f, 1))", 1),
        ("self.take", 0),
        ("eqx.filter_vmap(f)", 0),
        ("eqx.filter_vmap(self.take, in_axes=(0, None))", 0),
        ("eqx.filter_vmap(jax.tree_util.Partial(self.take, a))", 0),
    ],
)
def test_equinox_finds_again_what_is_equal(function: str, number: int) -> None:
    code = "import equinox as eqx\nclass Walk:\n    def take(self, a, x): return x\n"
    call = f"return eqx.filter_jit({function})(x)"
    named = f"g = {function}\n        return eqx.filter_jit(g)(x)"
    for body in (call, named):
        assert count(f"{code}    def step(self, x, a):\n        {body}\n") == number


@pytest.mark.parametrize(
    ("given", "expected"), [("fn", 0), ("f", 1)], ids=["a function that is handed over", "one of the file"]
)
def test_a_name_for_a_partial_of_what_is_handed_over_is_other_code_each_time(given: str, expected: int) -> None:
    body = f"of_model = functools.partial({given}, x)\nreturn jax.pmap(jax.vmap(of_model))(a)"
    assert count(in_function(body).replace("(x, a)", "(x, a, fn)")) == expected


PER_CASE = "def work(case, x):\n    def g(y): return y * len(case)\n    return jax.jit(g)(x)\n"

GONE_OVER = {
    "a few that are written out": ("for case in ['a', 'b', 'c']: work(case, x)", 0),
    "in a comprehension": ("y = [work(case, x) for case in ('a', 'b')]", 0),
    "by their name": ("for i, case in enumerate(CASES): work(case, x)", 0),
    "unless somebody brings others": ("y = x if x is not None else CASES\n    for case in y: work(case, x)", 0),
    "and once besides": ("work('a', x)\n    for case in CASES: work(case, x)", 0),
    "five": ("for case in ['a', 'b', 'c', 'd', 'e']: work(case, x)", 1),
    "more than is seen": ("for case in ['a', *x]: work(case, x)", 1),
    "a list that grows": ("y = ['a']\n    for case in y: y.append(work(case, x))", 1),
    "each of them often": ("for i in range(99):\n        for case in CASES: work(case, x)", 1),
    "in a function that is called often": ("for case in CASES: work(case, x)\ndef other(x):\n  while x: sweep(x)", 1),
    "and others besides": ("for case in CASES: work(case, x)\n    for case in x: work(case, x)", 1),
}


@pytest.mark.parametrize(("body", "number"), GONE_OVER.values(), ids=GONE_OVER)
def test_a_few_cases_are_a_few_programs(body: str, number: int) -> None:
    assert count(f"CASES = (('a', 1), ('b', 2))\n{PER_CASE}def sweep(x):\n    {body}\n") == number


def test_what_is_called_as_a_step_runs_often_whoever_else_calls_it() -> None:
    cases = "def sweep(x):\n    for case in ('a', 'b'): predict(case, x)\n"
    assert count(PER_CASE.replace("work", "predict") + cases) == 1


@pytest.mark.parametrize(("cases", "number"), [("('a', 'b')", 0), ("tuple('abcdefgh')", 1)])
def test_the_cases_may_be_written_out_in_another_file(tmp_path: Path, cases: str, number: int) -> None:
    (tmp_path / "cases.py").write_text(f"CASES: tuple[str, ...] = {cases}\n")
    run = tmp_path / "run.py"
    run.write_text(f"from cases import CASES\n{HEAD}{PER_CASE}def sweep(x):\n    for case in CASES: work(case, x)\n")
    found = check_files([str(tmp_path / "cases.py"), str(run)], ONLY).findings
    assert len(found) == number


@pytest.mark.parametrize(
    ("wrapped", "found"),
    [("f", 1), ("jax.grad(f)", 1), ("make_train(a)", 0), ("functools.partial(make_train(a), 1)", 0)],
    ids=["a function", "wrapped twice", "of a factory", "of a factory, with numbers"],
)
def test_what_a_factory_makes_of_settings_is_other_code_each_time(wrapped: str, found: int) -> None:
    assert count(in_function(f"return jax.jit(jax.vmap({wrapped}))(x)")) == found
