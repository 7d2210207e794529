"""`fusionlint.explain()`: functions of this process, by real arguments, by shapes, and at each of jax's stages."""

from __future__ import annotations

import functools
import json
import os
import pickle
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import fusionlint
from fusionlint.compiling.lowering import lowered_for
from fusionlint.compiling.targets import get, missing
from fusionlint.recorded import entry_text
from fusionlint.report.explain_page import explain_page

jax = pytest.importorskip("jax")
jaxtyping = pytest.importorskip("jaxtyping")
jnp = jax.numpy

CPU = {"target": "cpu"}


def swing(s, n=2):
    """The stack is a value that the loop carries whole."""

    def body(s, _):
        return jnp.stack([s[:, 0] + n, jnp.sin(s[:, 1])], axis=1), None

    return jax.lax.scan(body, s, None, length=50)[0]


@functools.cache
def of_swing() -> fusionlint.Report:
    return fusionlint.explain(swing, "f32[64,2]", target="cpu")


def test_a_report_has_the_barriers_at_their_lines() -> None:
    report = of_swing()
    assert report.launches == report.totals.launches == 50 * report.loops[0].launches_per_iteration + 2
    assert report.bytes == report.totals.bytes > 0
    assert report.microseconds is None
    assert report.launches_per_iteration == 0
    concatenate = next(one.barrier for one in report.barriers if one.barrier.cause == "concatenate")
    first, *callers = concatenate.stack
    assert (first.path, first.line) == (__file__, swing.__code__.co_firstlineno + 4)
    if callers:  # an old jax says the line alone
        assert [first.function, callers[0].function] == ["swing.<locals>.body", "swing"]
    assert not any("/fusionlint/compiling/" in frame.path for frame in concatenate.stack)


def test_only_shapes_and_dtypes_of_arrays_count() -> None:
    struct = jax.ShapeDtypeStruct((64, 2), jnp.float32)
    arrays = (jnp.ones((64, 2)), jax.device_get(jnp.ones((64, 2))), struct, "f32[64,2]")
    assert len({lowered_for(swing, (array,), {}, "cpu").largest.programs["cpu"] for array in arrays}) == 1
    assert fusionlint.explain(swing, arrays[0], **CPU).totals == of_swing().totals


@pytest.mark.any_jax
def test_what_is_no_array_is_part_of_the_program_unless_the_jitted_function_says_otherwise() -> None:
    def entry(function, *args, **kwargs) -> str:
        recorded = lowered_for(function, ("f32[8,2]", *args), kwargs, "cpu")
        text = entry_text(recorded, recorded.largest)
        return text[text.index("swing(") :]

    assert entry(swing, 3) == entry(swing, n=3) == "swing(s: f32[8,2], n=3)"
    assert entry(functools.partial(swing, n=3)) == "swing(s: f32[8,2], n=3)"
    assert entry(jax.jit(swing), 3.0) == "swing(s: f32[8,2], n: f32[])"
    jitted = jax.jit(swing, static_argnames="n", donate_argnums=0)
    assert entry(jitted, n=3) == "swing(s: f32[8,2] donated, n=3)"


def test_shapes_stand_for_arrays_anywhere_in_a_pytree_and_other_strings_for_themselves() -> None:
    def draw(parameters, key, kind):
        assert kind == "normal"
        return parameters["w"] @ getattr(jax.random, kind)(key, (3,)) + parameters["b"][0]

    report = fusionlint.explain(draw, {"w": "f32[3,3]", "b": ["f32[]"]}, "key", "normal", **CPU)
    assert report.entry.endswith("draw(parameters: 2 arrays, key: key, kind='normal')")


@pytest.mark.parametrize("wrong", ["f23[8,2]", "f32[8,2", "f32[8,n]"])
def test_a_shape_that_is_none_is_no_string_either(wrong: str) -> None:
    with pytest.raises(ValueError, match="cannot read the SPEC at column"):
        fusionlint.explain(swing, wrong, **CPU)


@pytest.mark.any_jax
def test_what_is_traced_or_lowered_has_its_arguments() -> None:
    traced = jax.jit(swing).trace(jax.ShapeDtypeStruct((64, 2), jnp.float32))
    for stage in (traced, traced.lower()):
        report = fusionlint.explain(stage, **CPU)
        assert report.totals == of_swing().totals
        assert report.entry.startswith("swing(")
        with pytest.raises(ValueError, match=f"a {type(stage).__name__} has its arguments: give none"):
            fusionlint.explain(stage, 3, **CPU)


@pytest.mark.any_jax
def test_what_is_compiled_is_read_as_it_is() -> None:
    compiled = jax.jit(swing).lower(jnp.ones((64, 2))).compile()
    for report in (fusionlint.explain(compiled, **CPU), fusionlint.explain(compiled)):
        assert report.totals == of_swing().totals
        assert report.entry == "swing, compiled"
        assert (report.target, report.versions["jax"]) == ("cpu", jax.__version__)
    with pytest.raises(ValueError, match="a Compiled has its arguments: give none"):
        fusionlint.explain(compiled, "f32[128,2]")


@pytest.mark.compilers
@pytest.mark.parametrize("target", ["h100", "v5e"])
def test_hardware_that_is_not_there(target: str) -> None:
    if absent := missing(get(target)):
        pytest.skip(absent)
    report = fusionlint.explain(jax.jit(swing), jnp.ones((64, 2)), target=target)
    assert report.target == target
    assert report.microseconds > 0
    with pytest.raises(fusionlint.ExplainError, match="it is lowered for cpu already"):
        fusionlint.explain(jax.jit(swing).lower(jnp.ones((64, 2))), target=target)
    with pytest.raises(fusionlint.ExplainError, match="swing is compiled for cpu already"):
        fusionlint.explain(jax.jit(swing).lower(jnp.ones((64, 2))).compile(), target=target)


def test_a_compiler_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.10.2" if name.startswith("jax") else None)
    with pytest.raises(fusionlint.ExplainError, match=r"pip install 'fusionlint\[tpu\]'"):
        fusionlint.explain(swing, "f32[8,2]", target="v5e")


def test_mistakes_are_said() -> None:
    with pytest.raises(ValueError, match="there is no target 'h1000'; did you mean 'h100'"):
        fusionlint.explain(swing, "f32[8,2]", target="h1000")
    with pytest.raises(TypeError, match="is no function"):
        fusionlint.explain("train.py:swing(f32[8,2])", **CPU)
    with pytest.raises(ValueError, match=r"swing\(s\) needs arguments: give its arguments, as in `explain\(swing, "):
        fusionlint.explain(swing, **CPU)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        fusionlint.explain(swing, n=3, **CPU)
    with pytest.raises(fusionlint.ExplainError, match=r"no verdict on .*alone.* for cpu: jax cannot lower it for cpu"):
        fusionlint.explain(_without_a_rule(), "f32[8]", **CPU)


def _without_a_rule():
    from jax.extend.core import Primitive

    primitive = Primitive("of_no_platform")
    primitive.def_abstract_eval(lambda x: x)

    def alone(x):
        return primitive.bind(x)

    return alone


def test_without_arguments_examples_beside_the_function_are_taken_or_its_annotations() -> None:
    def sized(x: jaxtyping.Float[jax.Array, "batch *rest"], by: float = 2.0):
        return x * by

    def entry(**dims) -> str:
        return fusionlint.explain(sized, dims=dims, **CPU).entry.rpartition("sized")[2]

    assert entry(batch=4, rest=(3, 2)) == "(x: f32[4,3,2])"
    assert entry(batch=4, rest=3) == "(x: f32[4,3])"
    with pytest.raises(ValueError, match=r'sized needs a size for rest \(x: "batch \*rest"\): .*dims=.\'rest\': 8'):
        entry(batch=4)
    sized.example_args = ("f32[7]", 3.0)
    assert entry() == "(x: f32[7], by=3.0)"
    assert entry(batch=4, rest=()) == "(x: f32[4])"
    with pytest.raises(ValueError, match="dims are for the annotations of a function that is given no arguments"):
        fusionlint.explain(sized, "f32[4]", dims={"batch": 4}, **CPU)


def test_it_looks_the_same_everywhere() -> None:
    report = of_swing()
    text = str(report)
    assert text.startswith(f"{report.entry} on cpu (jax ")
    assert "return jnp.stack([s[:, 0] + n, jnp.sin(s[:, 1])], axis=1), None" in text
    bundle = report._repr_mimebundle_()
    assert bundle == {"text/plain": text, "text/html": report._repr_html_()}
    shown, _ = bundle["text/html"].split("<iframe ")
    assert shown.count("<details") == text.count("\n\n") + 1
    assert "jnp.sin(s[:, 1])], axis=1)" in bundle["text/html"]
    assert repr(report) == f"<Report {report.entry} on cpu: 50 steps x 3 launches + 2 = 152 launches, 104 kB>"


def test_a_notebook_has_the_page_of_the_command_in_a_frame_of_its_own() -> None:
    shown = of_swing()._repr_html_()
    (page,) = re.findall(r'<iframe srcdoc="([^"]*)"', shown)
    assert unescape(page) == explain_page([of_swing()], option='target="h100"')
    assert "these are CPU counts: no guide to a GPU or TPU; name one with target=&quot;h100&quot;" in unescape(page)


def test_html_is_escaped() -> None:
    report = fusionlint.explain(lambda s: swing(s), "f32[8,2]", **CPU)
    assert "&lt;lambda&gt;(s: f32[8,2])" in report._repr_html_()
    assert "<lambda>" not in report._repr_html_()


def test_numbers_know_their_report_and_stay_numbers() -> None:
    launches = of_swing().launches
    assert isinstance(launches, int)
    assert launches.report is of_swing()
    assert json.dumps([launches]) == f"[{int(launches)}]"
    again = pickle.loads(pickle.dumps(launches))
    assert (again, again.report.entry) == (launches, launches.report.entry)


SPREAD = """\
import jax
import numpy as np
import fusionlint
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.sharding.Mesh(np.array(jax.devices()), "d")
apart = NamedSharding(mesh, PartitionSpec("d"))
for function, x in (
    (lambda x: x * 2, jax.device_put(jax.numpy.ones((4, 2)), apart)),
    (jax.jit(lambda x: x * 2, in_shardings=apart), jax.ShapeDtypeStruct((4, 2), "float32")),
):
    report = fusionlint.explain(function, x, target="cpu")
    assert report.devices == 2, report
    assert report.bytes == 2 * 4 * 4, report.bytes  # each device reads and writes two of four rows
"""


def test_what_runs_on_several_devices_is_explained_as_it_runs_on_each(tmp_path: Path) -> None:
    (tmp_path / "spread.py").write_text(SPREAD)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "spread.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_who_runs_the_tests_calls_no_code() -> None:
    """The line of a lambda in a test was said to be called from pytest_pyfunc_call:187."""
    report = fusionlint.explain(lambda x: jnp.sort(x) * 2.0, "f32[64]", **CPU)
    (barrier,) = report.barriers
    assert {Path(frame.path).name for frame in barrier.barrier.stack} == {Path(__file__).name}
    assert ", from " not in str(report)


@pytest.mark.any_jax
def test_code_that_asks_what_it_runs_on_is_told_the_target_and_runs_here_as_before() -> None:
    @jax.jit
    def inner(x):
        return jnp.sin(x) if jax.default_backend() == "gpu" else x

    @jax.jit
    def outer(x):
        return inner(x)

    ones = jnp.ones(3)
    said = [lowered_for(outer, (ones,), {}, name).largest.programs[name] for name in ("cuda", "cpu", "cuda")]
    assert [b"sine" in one for one in said] == [True, False, True]
    assert (outer(ones) == ones).all()


def test_the_call_path_is_that_of_this_call_whoever_called_the_function_first() -> None:
    @jax.jit
    def ordered(x: jax.Array) -> jax.Array:
        return jnp.sort(x) * 2.0

    def train(x: jax.Array) -> jax.Array:
        return ordered(x)

    def asked() -> fusionlint.Report:
        return fusionlint.explain(ordered, "f32[64]", target="cpu")

    train(jnp.ones(64))
    paths = [[frame.function.rpartition(".")[2] for frame in one.barrier.stack] for one in asked().barriers]
    assert paths
    assert all("asked" in path and "train" not in path for path in paths)


def test_what_was_compiled_before_is_not_compiled_again_after_a_report() -> None:
    @jax.jit
    def ordered(x: jax.Array) -> jax.Array:
        return jnp.sort(x) * 2.0

    ordered(jnp.ones(64))
    fusionlint.explain(ordered, "f32[64]", target="cpu")
    x = jnp.ones(64)
    with fusionlint.capture() as captured:
        ordered(x)
    assert not captured.recording.functions
