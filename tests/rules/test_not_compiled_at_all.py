"""A plain function that traces or compiles something anew, and the loop, in whatever file, that calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

STEPS = """
import functools, jax
import jax.numpy as jnp

def loss(params, batch):
    return jnp.sum((batch @ params) ** 2)

{decorator}
def {name}(params, batch):
    {body}
"""
LOOP = """
import time, jax
from steps import {name}

def main(params, batches):
    start = time.time()
    for batch in batches:
        {before}params = {name}(params, batch)
    return params, time.time() - start
"""
GRADIENT = "return params - jax.grad(loss)(params, batch)"


def _found(folder: Path, name: str, body: str, decorator: str = "", before: str = "", loop: str = "loop.py") -> int:
    (folder / "steps.py").write_text(STEPS.format(name=name, body=body, decorator=decorator))
    (folder / loop).write_text(LOOP.format(name=name, before=before))
    return len(check_files(sorted(folder.glob("*.py")), Scope(("eager-control-flow",))).findings)


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (GRADIENT, 1),
        ("gradient = jax.value_and_grad(loss)\n    return params - gradient(params, batch)[1]", 1),
        ("return jax.lax.fori_loop(0, 9, lambda i, p: 0.9 * p, params)", 1),
        ("def body(i, p):\n        return 0.9 * p\n    return jax.lax.fori_loop(0, 9, body, params)", 1),
        ("return jax.lax.fori_loop(0, 9, functools.partial(loss, batch), params)", 1),
        ("return jax.lax.fori_loop(0, 9, loss, params)", 0),  # found again
        ("return jax.jit(jax.grad(loss)), params", 0),
        ("return loss(params, batch)", 0),
        (f"print(params.shape)\n    {GRADIENT}", 0),  # a jit would print it once
    ],
)
def test_what_is_made_anew_in_every_call(tmp_path: Path, body: str, number: int) -> None:
    assert _found(tmp_path, "step", body) == number


@pytest.mark.parametrize(
    ("name", "number"), [("train_step", 1), ("update", 1), ("train", 0), ("train_epoch", 0), ("step_nojit", 0)]
)
def test_a_step_and_not_a_whole_training(tmp_path: Path, name: str, number: int) -> None:
    assert _found(tmp_path, name, GRADIENT) == number


@pytest.mark.parametrize(
    ("decorator", "before", "loop", "number"),
    [
        ("", "", "loop.py", 1),
        ("@jax.jit", "", "loop.py", 0),
        ("@somebody.knows", "", "loop.py", 0),
        ("", "if batch is None: ", "loop.py", 0),  # now and then
        ("", "", "train_no_jit.py", 0),  # for comparison
    ],
)
def test_who_compiles_it_and_how_often_it_is_called(
    tmp_path: Path, decorator: str, before: str, loop: str, number: int
) -> None:
    assert _found(tmp_path, "step", GRADIENT, decorator, before, loop) == number


TRAINER = """
import jax

class Trainer:
    def update(self, batch):
        gradient = jax.grad(lambda params: ((batch @ params) ** 2).sum())(self.{kept})
        {kept}self.{kept} - gradient

    def main(self, batches):
        import time
        start = time.time()
        for batch in batches:
            self.update(batch)
        return time.time() - start
"""


@pytest.mark.parametrize(
    ("kept", "stored", "number"),
    [
        ("params", "return ", 1),
        ("params", "self.params = ", 0),  # a jit would leave its tracers there
        ("optimizer.params", "self.optimizer.params = ", 0),
    ],
)
def test_a_method_that_keeps_what_it_makes(tmp_path: Path, kept: str, stored: str, number: int) -> None:
    code = TRAINER.replace("        {kept}self", f"        {stored}self").replace("{kept}", kept)
    (tmp_path / "trainer.py").write_text(code)
    found = check_files([tmp_path / "trainer.py"], Scope(("eager-control-flow",))).findings
    assert len(found) == number


@pytest.mark.parametrize(
    ("joined", "number"),
    [
        ("seen = seen.joined(gradient, concatenate)", 0),  # one more in every iteration
        ("seen = concatenate(seen[1:], gradient)", 1),
        ("kept = concatenate(params, batch)", 1),
    ],
)
def test_what_grows_has_another_size_each_time(tmp_path: Path, joined: str, number: int) -> None:
    (tmp_path / "loop.py").write_text(f"""
import jax

def main(params, seen, batches, concatenate, f):
    for batch in batches:
        gradient = jax.grad(f)(params, seen)
        {joined}
    return jax.device_get(seen)
""")
    assert len(check_files([tmp_path / "loop.py"], Scope(("eager-control-flow",))).findings) == number
