"""compiled-per-instance where the page cannot say it: classes of other files, and what makes instances equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("compiled-per-instance",))
HEAD = "import abc, dataclasses, functools, jax\nfrom flax import struct\n"
STEP = "    @functools.partial(jax.jit, static_argnums=0)\n    def step(self, x): return x * self.a\n"
INIT = "    def __init__(self, a=1): self.a = a\n"
MADE = "def relax(x):\n    for i in range(99):\n        x = Solver(2).step(x)\n    return x\n"


def count(code: str) -> int:
    return len(check_text((HEAD + code).encode(), "m.py", ONLY))


@pytest.mark.parametrize(
    "classes",
    [
        f"class Solver:\n{INIT}{STEP}",
        f"class Base(abc.ABC):\n{STEP}class Solver(Base):\n{INIT}",
        f"class Solver:\n{INIT}    @functools.partial(jax.jit, static_argnames=['self'])\n    def step(self, n): 0\n",
        "class Solver:\n    def __init__(self, a): self.step = jax.jit(lambda x: a * x)\n",
        "class Solver:\n    def __init__(self, a): self.step = jax.jit(functools.partial(max, a))\n",
    ],
)
def test_instances_that_are_equal_to_nothing_else_are_compiled_anew(classes: str) -> None:
    assert count(classes + MADE) == 1


@pytest.mark.parametrize(
    "classes",
    [
        f"@dataclasses.dataclass(frozen=True)\nclass Solver:\n    a: float\n{STEP}",
        f"@struct.dataclass\nclass Solver:\n    a: float\n{STEP}",
        f"class Solver(struct.PyTreeNode):\n    a: float\n{STEP}",
        f"class Solver:\n{INIT}{STEP}    def __hash__(self): return 1\n",
        f"class Base:\n    def __eq__(self, other): ...\n    __hash__ = None\nclass Solver(Base):\n{INIT}{STEP}",
        f"class Solver:\n{INIT}{STEP}jax.tree_util.register_pytree_node(Solver, None, None)\n",
        f"from elsewhere import Base\nclass Solver(Base):\n{INIT}{STEP}",
        f"class Solver:\n{INIT}    @jax.jit\n    def step(self, x): return x\n",
        "class Solver:\n    def __init__(self, step): self.step = jax.jit(step)\n",
        f"class Solver:\n{INIT}    def step(self, x): return x\n",
    ],
)
def test_equal_instances_pytrees_and_what_nobody_sees_into_are_left_alone(classes: str) -> None:
    assert count(classes + MADE) == 0


@pytest.mark.parametrize(
    "made",
    [
        "def main(x):\n    solver = Solver(2)\n    for i in range(99): x = solver.step(x)\n",
        "def main(xs):\n    for a in xs: Solver(a).step(xs)\n",
        "def main(x):\n    for i in range(3): Solver(2).step(x)\n",
        "def main(grid, x):\n    for n in x:\n        grid.points = n\n        x = Solver(grid).step(x)\n",
        "def test_step(x):\n    for i in range(99): Solver(2).step(x)\n",
        "def make_all(x):\n    return [Solver(2) for i in range(99)]\n",
        "@jax.jit\ndef update(x):\n    return Solver(2).step(x)\n",
    ],
)
def test_what_is_made_once_or_with_other_settings_or_in_a_trace_is_left_alone(made: str) -> None:
    assert count(f"class Solver:\n{INIT}{STEP}{made}") == 0


def test_the_class_may_stand_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "solvers.py").write_text(f"{HEAD}class Solver:\n{INIT}{STEP}")
    driver = tmp_path / "driver.py"
    driver.write_text(f"from solvers import Solver\n{MADE}")
    (tmp_path / "pyproject.toml").write_text("")
    found = check_files([driver, tmp_path / "solvers.py"], ONLY).findings
    assert [(Path(f.location.path).name, f.location.line) for f in found] == [("driver.py", 4)]


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        ("jax.jit(lambda env, x: jax.lax.scan(lambda x, _: (env.step(x), None), x, None, 9))", 0),
        ("lambda env, x: [env.step(x) for _ in range(9)]", 1),
    ],
    ids=["in the body of a scan", "by Python"],
)
def test_what_a_step_makes_that_a_trace_calls_is_made_once_for_each_trace(rollout: str, expected: int) -> None:
    world = f"class World:\n{INIT}    def __init__(self, a): self.move = jax.jit(lambda x: a * x)\n"
    env = "class Env:\n    def step(self, x):\n        return World(5).move(x)\n"
    assert count(f"{world}{env}rollout = {rollout}\n") == expected
