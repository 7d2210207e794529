"""Loop bodies that a page of single files cannot show: in another module, behind partial, methods."""

from __future__ import annotations

from pathlib import Path

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

WALK = """\
import jax

def step(scale, carry, _):
    x, key = carry
    key, sub = jax.random.split(key)
    return (x + scale * jax.random.normal(sub, x.shape), key), None
"""


def lines(folder: Path, **files: str) -> list[tuple[str, int]]:
    """Where the rule speaks in a package of these modules."""
    package = folder / "walks"
    package.mkdir(parents=True)
    for name, code in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(code)
    found = check_files(sorted(package.glob("*.py")), Scope(("key-split-in-scan",))).findings
    return [(Path(f.location.path).stem, f.location.line) for f in found]


def test_a_body_that_another_module_scans_with_partial(tmp_path: Path) -> None:
    run = """\
from functools import partial
from jax import lax
from walks.steps import step

def run(x, key):
    return lax.scan(partial(step, 0.1), (x, key), None, length=8)
"""
    assert lines(tmp_path, steps=WALK, run=run) == [("steps", 5)]


def test_a_function_that_no_loop_runs(tmp_path: Path) -> None:
    run = "from walks.steps import step\n\ndef run(x, key):\n    return step(0.1, (x, key), None)\n"
    assert lines(tmp_path, steps=WALK, run=run) == []


def test_a_method_that_the_class_scans(tmp_path: Path) -> None:
    code = """\
import jax

class Maze:
    def step(self, state, _):
        key, sub = jax.random.split(state.key)
        return state.replace(key=key, cell=jax.random.randint(sub, (), 0, 4)), None

    def walk(self, state):
        return jax.lax.scan(self.step, state, None, length=8)
"""
    assert lines(tmp_path, maze=code) == [("maze", 5)]


def test_a_body_whose_step_is_large_in_another_module(tmp_path: Path) -> None:
    physics = "from jax import lax\n\ndef advance(x):\n    return lax.fori_loop(0, 9, lambda i, x: x + 1.0, x)\n"
    run = """\
import jax
from walks.physics import advance

def step(carry, _):
    x, key = carry
    key, sub = jax.random.split(key)
    return (advance(x) + jax.random.normal(sub, x.shape), key), None

def run(x, key):
    return jax.lax.scan(step, (x, key), None, length=8)
"""
    assert lines(tmp_path, physics=physics, run=run) == []


def test_a_step_that_the_body_hands_its_carry_on_to(tmp_path: Path) -> None:
    run = """\
from jax import lax
from walks.steps import step

def run(x, key):
    def body(carry, _):
        return step(0.1, carry, None)

    return lax.scan(body, (x, key), None, length=8)
"""
    assert lines(tmp_path, steps=WALK, run=run) == [("steps", 5)]


def test_a_generator_that_draws_one_by_one_too(tmp_path: Path) -> None:
    code = """\
import jax

class Normal:
    def __call__(self):
        (self.key, _), x = self.__class__.draw((self.key, self.mean), None)
        return x

    def several(self, n):
        (self.key, _), x = jax.lax.scan(Normal.draw, (self.key, self.mean), None, length=n)
        return x

    def draw(carry, _):
        key, mean = carry
        key, sub = jax.random.split(key)
        return (key, mean), mean + jax.random.normal(sub)
"""
    together = code.replace("(self.key, self.mean), None)", "carry, None)")
    assert lines(tmp_path, normal=code) == []
    assert lines(tmp_path / "scanned", normal=together) == [("normal", 14)]


def test_of_a_loop_whose_steps_are_drawn_nobody_knows_how_many_keys_to_split(tmp_path: Path) -> None:
    run = """\
import jax
from jax import lax

def draw(i, carry):
    key, x = carry
    key, sub = jax.random.split(key)
    return key, x + jax.random.normal(sub, x.shape)

def run(x, key):
    return lax.fori_loop(0, {count}, draw, (key, x))
"""
    drawn = run.format(count="jax.random.randint(key, (), 1, 8)")
    assert lines(tmp_path / "known", run=run.format(count="8")) == [("run", 6)]
    assert lines(tmp_path / "drawn", run=drawn) == []


def test_a_loop_whose_turns_a_cond_counts(tmp_path: Path) -> None:
    """jax.random.split takes no traced number of keys."""
    code = """\
import jax

def walk(x, key, n):
    def step(i, carry):
        key, x = carry
        key, sub = jax.random.split(key)
        return key, x + jax.random.normal(sub, x.shape)

    {line}
    return jax.lax.fori_loop(0, n + 1, step, (key, x))
"""
    assert lines(tmp_path / "a", walk=code.format(line="n = jax.lax.cond(x[0] > 0, lambda: 0, lambda: n)")) == []
    assert lines(tmp_path / "b", walk=code.format(line="n = 2 * n")) == [("walk", 6)]


def test_a_norm_is_no_large_step(tmp_path: Path) -> None:
    """It is a sum and a root, unlike what else jax.numpy.linalg has."""
    walk = WALK.replace("return (x +", "far = jnp.linalg.norm(x)\n    return (x + far *").replace(
        "jax\n", "jax, jax.numpy as jnp\n"
    )
    walk += "\ndef walk(x, key):\n    return jax.lax.scan(lambda c, _: step(1.0, c, _), (x, key), None, length=9)\n"
    assert lines(tmp_path, walk=walk) == [("walk", 5)]
    assert lines(tmp_path / "other", walk=walk.replace("norm(x)", "det(x)")) == []


def test_what_a_function_without_parameters_calls_without_arguments_is_no_schedule(tmp_path: Path) -> None:
    walk = WALK.replace("x + scale * ", "jax.lax.cond(scale > 0, lambda: {}, lambda: x) + ")
    run = "import jax\nfrom functools import partial\nfrom walks.steps import step\n\ndef run(x, key):\n"
    run += "    return jax.lax.scan(partial(step, 0.1), (x, key), None, length=8)\n"
    assert lines(tmp_path / "a", steps=walk.format("drawn()"), run=run) == []
    assert lines(tmp_path / "b", steps=walk.format("-x"), run=run) == [("steps", 5)]
