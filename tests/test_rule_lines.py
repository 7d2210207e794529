"""What a hand-written rule does stands at its own lines, not at the step that it is the rule of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import compilers
import jax
import jax.numpy as jnp
import pytest

import fusionlint
from fusionlint.explained import Report
from fusionlint.report.explain_text import report_text

CODE = """
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir


@jax.custom_vjp
def sloped(x):
    return jnp.tanh(x)


def sloped_fwd(x):
    y = jnp.sort(x)  # forwards
    return y, y


def sloped_bwd(y, g):
    total = jnp.sort(g * y)  # backwards
    square = total.reshape(64, 64)
    inner = jax.vjp(lambda z: z @ square, square)[1](square)[0]  # a gradient in it
    return ((inner * square).reshape(y.shape),)


sloped.defvjp(sloped_fwd, sloped_bwd)

primitive = Primitive("of_several_steps")


def made_of(x):
    y = jnp.sort(x)  # of the primitive

    def body(carry, row):
        return jnp.sort(carry + row), None  # of its loop

    return jax.lax.scan(body, y, jnp.ones((7, 1)))[0]


primitive.def_abstract_eval(lambda x: x)
mlir.register_lowering(primitive, mlir.lower_fun(made_of, multiple_results=False))


def gradient(x):
    return jax.grad(lambda x: jnp.sum(sloped(x * 2) ** 2))(x)


def in_a_loop(x):
    def loss(x):
        return jnp.sum(jax.lax.scan(lambda c, _: (sloped(c), None), x, length=3)[0] ** 2)

    return jax.grad(loss)(x)


def of_a_primitive(x):
    return primitive.bind(x * 2) + 1


def ordinary(x):
    return jax.grad(lambda x: jnp.sum(jnp.cumsum(jnp.sin(x)) ** 2))(x)  # of jax
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.py"
    path.write_text(CODE)
    return path


@pytest.fixture(scope="module")
def reports(file: Path) -> dict[str, Report]:
    names = ("gradient", "in_a_loop", "of_a_primitive", "ordinary")
    return compilers.explained({name: f"{file}:{name}(f32[4096])" for name in names}, "cpu")


def _lines(report: Report, opcode: str) -> set[tuple[str, str, bool]]:
    """The comment at the line of each value that work of that kind made, in which function, and whether jax made it."""
    lines = CODE.splitlines()
    stacks = {(one.barrier.stack, one.barrier.of_gradient) for one in report.barriers if opcode in one.barrier.opcodes}
    return {
        (lines[stack[0].line - 1].partition("  # ")[2], stack[0].function.rpartition(".")[2], made)
        for stack, made in stacks
    }


@pytest.mark.parametrize("name", ["gradient", "in_a_loop"])
def test_a_written_gradient_has_its_own_lines(reports: dict[str, Report], name: str) -> None:
    assert {("forwards", "sloped_fwd", False), ("backwards", "sloped_bwd", False)} <= _lines(reports[name], "sort")


def test_what_jax_makes_of_a_step_in_a_written_gradient_is_of_its_gradient(reports: dict[str, Report]) -> None:
    assert _lines(reports["gradient"], "dot") == {("a gradient in it", "<lambda>", True)}


def test_behind_a_rule_comes_the_call_of_its_step(reports: dict[str, Report]) -> None:
    stacks = {one.barrier.stack for one in reports["gradient"].barriers if "sort" in one.barrier.opcodes}
    called = {[frame.function for frame in stack][1:] == ["gradient.<locals>.<lambda>", "gradient"] for stack in stacks}
    assert called == {True}


def test_what_a_primitive_is_made_of_has_its_own_lines(reports: dict[str, Report]) -> None:
    report = reports["of_a_primitive"]
    assert {("of the primitive", "made_of", False), ("of its loop", "body", False)} <= _lines(report, "sort")
    assert "in made_of, from of_a_primitive:" in report_text(report)


def test_rules_of_jax_stay_at_the_step(reports: dict[str, Report]) -> None:
    places = {(stack[0].line, stack[0].is_rule) for one in reports["ordinary"].barriers if (stack := one.barrier.stack)}
    assert places == {
        (CODE.splitlines().index(next(line for line in CODE.splitlines() if "of jax" in line)) + 1, False)
    }


def test_in_python_the_frames_of_whoever_asks_are_left_out() -> None:
    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.sort(g * x)[::2].sum() * x,))
    report = fusionlint.explain(jax.grad(lambda x: jnp.sum(f(x) ** 2)), "f32[64]", target="cpu")
    (stack,) = {one.barrier.stack for one in report.barriers if "sort" in one.barrier.opcodes}
    first, *behind = [(frame.line - stack[0].line, frame.is_rule) for frame in stack]
    assert (first, {*behind}) == ((0, True), {(1, False)})


def test_of_a_program_that_runs_too(file: Path, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(file.parent)!r})\nimport jax, jax.numpy as jnp, rules\n\n\n"
        "def main():\n    jax.jit(rules.gradient)(jnp.ones(4096))\n\n\nmain()\n"
    )
    command = [sys.executable, "-m", "fusionlint", "run", "--target", "cpu", "--all", str(script)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert "in sloped_bwd, from gradient.<lambda>" in told


def test_jax_is_as_before_after_a_report() -> None:
    from jax._src import source_info_util

    before = source_info_util.current, source_info_util.user_context
    fusionlint.explain(jnp.sin, "f32[64]", target="cpu")
    assert (source_info_util.current, source_info_util.user_context) == before
