"""`fusionlint.capture()` in a program of one's own, and the public names that come with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fusionlint

pytestmark = [  # a program without JAX_PLATFORMS meets the compilers that are installed
    pytest.mark.compilers,
    pytest.mark.any_jax,
]

PROGRAM = """\
import jax
import jax.numpy as jnp
import fusionlint


@jax.jit
def step(x):
    return jnp.sin(x).sum()


def main():
    step(jnp.ones(3))
    with fusionlint.capture() as captured:
        step(jnp.ones(3))
        step(jnp.ones(5))
        step(jnp.ones(7))
        inside = captured.recording
    step(jnp.ones(9))
    assert captured.recording == inside
    (function,) = inside.functions
    assert [one.why for one in function.compilations] == [(), ("x: f32[5] -> f32[7]",)]
    (told,) = captured.explain("cpu")
    assert told.results[0].totals.launches == 1
    assert told.compilation.number == function.largest.number
    try:
        captured.explain("h1000")
    except ValueError as error:
        assert "h1000" in str(error)
    captured.save("recorded.json")


main()
"""


def test_what_is_compiled_inside_is_captured_and_explained(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (function,) = fusionlint.read_recording(tmp_path / "recorded.json").functions
    assert set(function.largest.programs) == {"cpu", "cuda", "tpu"}


UNKNOWN = """\
import jax
import jax.numpy as jnp
from jax._src import traceback_util
import fusionlint

jnp.ones(1)  # what jax imports late needs it still
del traceback_util.register_exclusion  # as a jax would that is not known


@jax.jit
def step(x):
    return jnp.sin(x).sum()


def main():
    x = jnp.ones(3)
    with fusionlint.capture() as captured:
        step(x)
        step(x * 2)
        jnp.cumsum(x)
    (note,) = captured.recording.notes
    assert f"jax {jax.__version__} is not known here" in note
    (function,) = captured.recording.functions
    assert (function.name, function.defined.line, function.owner) == ("step", 10, "user")
    (compilation,) = function.compilations
    assert (compilation.called.function, compilation.arguments) == ("main", ())
    assert compilation.seconds > 0
    assert {line.called.line for line in captured.recording.eager} == {19, 20}
    assert captured.explain("cpu") == []


main()
"""


def test_a_jax_that_is_not_known_costs_what_it_does_not_tell_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "program.py").write_text(UNKNOWN)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there_and_documented() -> None:
    for name in fusionlint.__all__:
        assert getattr(fusionlint, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fusionlint.nothing  # noqa: B018


def test_importing_fusionlint_imports_little() -> None:
    code = "import sys, fusionlint; print([n for n in ('jax', 'click', 'libcst', 'json') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
