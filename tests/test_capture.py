"""A program that runs unchanged is captured whole: every function, why again, and the programs to compile anew."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from fusionlint.compiling.artifacts import Artifacts, Job, read_artifacts
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_entry, run_jobs
from fusionlint.compiling.scripts import Ran, run_script
from fusionlint.compiling.targets import get
from fusionlint.recorded import tasks_recorded
from fusionlint.recording import RecordedFunction, read_recording, recording_json
from fusionlint.report.run_text import function_lines

pytest.importorskip("jax")

pytestmark = [  # a program without JAX_PLATFORMS meets the compilers that are installed
    pytest.mark.compilers,
    pytest.mark.any_jax,
]

PROGRAM = Path(__file__).parent / "data" / "captured.py"
LIBRARY = """\
import functools

import jax
import jax.numpy as jnp


def apply(function, x):
    def wrapped(y):
        return function(y)

    return jax.jit(wrapped)(x)


@jax.jit
def own(x):
    return jnp.cos(x) * 2


@functools.partial(jax.jit, static_argnums=0)
def solve(field, x):
    for _ in range(20):
        x = jnp.cos(x) * 2
    return field(x)


def initialize(function, x):
    return function(x)
"""
PLATFORMS = ("cpu", "cuda", "tpu")


@cache
def library() -> Path:
    """A folder of installed packages, with a library that compiles."""
    from fusionlint.compiling.jobs import new_folder

    folder = new_folder() / "site-packages"
    folder.mkdir()
    (folder / "optax_like.py").write_text(LIBRARY)
    return folder


@cache
def ran(end: str = "well") -> Ran:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(library())
    try:
        return run_script(str(PROGRAM), [end, "--flag"], PLATFORMS)
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def function(name: str, end: str = "well") -> RecordedFunction:
    (found,) = [one for one in ran(end).recording.functions if one.name == name]
    return found


def line(text: str) -> int:
    return 1 + next(i for i, row in enumerate(PROGRAM.read_text().splitlines()) if text in row)


def test_a_function_is_known_by_its_definition_and_its_calls() -> None:
    update = function("update")
    assert update.defined is not None
    assert (update.defined.path, update.defined.line) == (str(PROGRAM), line("static_argnames"))
    assert (update.module, update.owner, update.plain) == ("__main__", "user", True)
    first = update.compilations[0]
    assert first.called is not None
    assert (first.called.line, first.called.function) == (line("jnp.ones(5)"), "recompile")
    assert first.seconds > 0


def test_nothing_of_this_jax_is_unknown() -> None:
    assert ran().recording.notes == ()


def test_arguments_have_names_shapes_dtypes_and_donation() -> None:
    first = function("update").compilations[0]
    told = [(one.name, one.dtype, one.shape, one.donated) for one in first.arguments]
    assert told == [
        ("state['b']", "float32", (4,), True),
        ("state['w']", "float32", (3, 4), True),
        ("x", "float32", (5,), False),
    ]
    assert first.static == {"n": "2"}
    assert first.spec == "({'w': f32[3,4], 'b': f32[4]}, f32[5])"


def test_each_compilation_says_which_argument_changed_from_what_to_what() -> None:
    assert [one.why for one in function("update").compilations] == [
        (),
        ("x: f32[5] -> f32[6]",),
        ("n (static): 2 -> 3",),
        ("x: f32[6] -> i32[6]",),
        ("state['extra']: new, f32[2]",),
    ]


def test_jit_of_a_new_function_in_every_call_is_said_to_be_that() -> None:
    compilations = function(
        "per_call.<locals>.<listcomp>.<lambda>" if sys.version_info < (3, 12) else "per_call.<locals>.<lambda>"
    ).compilations
    assert len(compilations) == 3
    assert all("a new function was given to jit" in one.why[0] for one in compilations[1:])


def test_a_static_self_that_differs_is_said_to_be_another_instance() -> None:
    again = function("Model.forward").compilations[1]
    assert "another" in again.why[0]
    assert "Model" in again.why[0]


def test_an_eager_scan_is_the_users_body() -> None:
    scan = function("scan(body)")
    assert scan.defined is not None
    assert scan.defined.line == line("def body")
    assert not scan.plain


def test_what_a_library_jits_for_the_user_is_the_users_and_its_own_is_its_own() -> None:
    own = function("own")
    assert own.owner == "library"
    assert own.compilations[0].called is not None
    assert own.compilations[0].called.line == line("optax_like.own")
    # Python 3.10 knows the bare name of a code object alone.
    wrapped = function("main.<locals>.<lambda>" if sys.version_info >= (3, 11) else "<lambda>")
    assert (wrapped.owner, wrapped.plain) == ("user", False)
    assert wrapped.defined is not None
    assert wrapped.defined.line == line("optax_like.apply")


def test_a_librarys_function_is_the_users_where_it_calls_one_of_theirs_after_much_of_its_own() -> None:
    (solve,) = [one for one in ran().recording.functions if one.name.startswith("solve(")]
    assert solve.name.endswith("field)")
    assert (solve.owner, solve.plain) == ("user", False)
    assert solve.defined is not None
    assert solve.defined.line == line("def field")
    assert solve.largest.programs


def test_a_function_that_another_makes_in_every_call_is_named_as_the_reason() -> None:
    (solve,) = [one for one in ran().recording.functions if one.name.startswith("solve(")]
    _, again = solve.compilations
    assert again.why[0].startswith("field is made anew by each call of solved, and jax knows functions by identity")


def test_eager_operations_that_a_library_calls_say_who_called_the_library() -> None:
    outer = {one.called.line: one.outer for one in ran().recording.eager if one.called}
    found = outer[line("jnp.sinh")]
    assert found is not None
    assert (found.line, found.function) == (line("optax_like.initialize"), "main")
    assert outer[line("jnp.arange(6), n=3)")] is None


AT_MODULE_LEVEL = """\
import jax.numpy as jnp
import net_like
import run_like


def layer(x):
    return jnp.sinh(x)


def main():
    jnp.tanh(jnp.ones(3))


net_like.init(layer, jnp.ones(3))
run_like.run(main)
"""


def test_a_modules_own_line_called_the_library_unless_that_runs_the_whole_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `network.init(key, x)` beside `app.run(main)`: the one is worth a jax.jit, the other is none of jax's."""
    packages = tmp_path / "site-packages"
    (packages / "net_like").mkdir(parents=True)
    (packages / "net_like" / "__init__.py").write_text("from net_like.linen import init\n")
    (packages / "net_like" / "linen.py").write_text(
        "from jax import lax\n\n\ndef init(function, x):\n    return function(x)\n"
    )
    (packages / "run_like.py").write_text("def run(main):\n    main()\n")
    script = tmp_path / "train.py"
    script.write_text(AT_MODULE_LEVEL)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    lines = AT_MODULE_LEVEL.splitlines()
    outer = {
        lines[one.called.line - 1].strip(): one.outer for one in run_script(str(script)).recording.eager if one.called
    }
    called = outer["return jnp.sinh(x)"]
    assert called is not None
    assert (lines[called.line - 1], called.function) == ("net_like.init(layer, jnp.ones(3))", "<module>")
    assert outer["jnp.tanh(jnp.ones(3))"] is None


def test_a_thread_is_captured_under_its_name() -> None:
    assert [one.thread for one in function("body").compilations] == ["worker"]


def test_eager_operations_are_one_entry_a_line() -> None:
    eager = ran().recording.eager
    by_line = {one.called.line: one for one in eager if one.called}
    assert len(by_line) == len(eager)
    counted = by_line[line("jnp.arange(6), n=3)")]
    assert counted.operations["iota"] == counted.programs == 1
    assert counted.seconds > 0


def test_the_largest_signature_of_the_users_functions_is_lowered_for_every_platform() -> None:
    update = function("update")
    (lowered,) = [one for one in update.compilations if one.programs]
    assert lowered is update.largest
    assert set(lowered.programs) == set(PLATFORMS)
    assert not any(one.programs for one in function("own").compilations)


def test_a_callback_is_lowered_for_hardware_that_is_not_there() -> None:
    noisy = function("noisy").largest
    # jax 0.5 asks a GPU's runtime for an address to call.
    refused = {"cuda"} if ran().recording.versions["jax"].startswith("0.5.") else set()
    assert set(noisy.programs) == set(PLATFORMS) - refused
    said = {one: f"a callback (jax.debug.print, pure_callback) needs the {one.upper()} itself" for one in refused}
    assert noisy.failures == said


@pytest.mark.parametrize(("end", "status"), [("well", 5), ("fails", 1), ("interrupted", 130), ("killed", 137)])
def test_the_exit_status_is_the_scripts_and_what_was_captured_until_then_is_kept(end: str, status: int) -> None:
    assert ran(end).status == status
    names = [one.name for one in ran(end).recording.functions]
    assert names == [one.name for one in ran().recording.functions]


def test_a_script_that_was_killed_has_no_programs_and_the_recording_says_so() -> None:
    recording = ran("killed").recording
    assert not any(one.programs for function in recording.functions for one in function.compilations)
    assert "killed" in recording.notes[0]


def test_output_and_tracebacks_are_those_of_a_plain_run(capfd: pytest.CaptureFixture[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(library())}
    plain = subprocess.run(
        [sys.executable, PROGRAM, "fails", "--flag"], env=environment, capture_output=True, text=True, check=False
    )
    ran.cache_clear()
    ran("fails")
    said = capfd.readouterr()
    assert (said.out, said.err) == (plain.stdout, plain.stderr)
    assert "as it was asked to" in said.err


def test_a_recording_survives_json(tmp_path: Path) -> None:
    recording = ran().recording
    (tmp_path / "r.json").write_text(recording_json(recording))
    assert read_recording(tmp_path / "r.json") == recording


ALIKE = """\
import functools
import jax
import jax.numpy as jnp


class Model:
    def __init__(self, layers):
        self.layers = layers

    @functools.partial(jax.jit, static_argnums=0)
    def forward(self, x):
        for _ in range(self.layers):
            x = jnp.sort(x) + 1
        return x


def made(turns):
    @jax.jit
    def step(x):
        return jax.lax.fori_loop(0, turns, lambda _, y: jnp.sort(y), x)

    return step


x = jnp.ones(8)
Model(9).forward(x)
Model(1).forward(x)
Model(1).forward(x)
made(9)(x)
made(1)(x)
made(9)(x)
"""


def test_programs_of_the_same_arguments_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "alike.py").write_text(ALIKE)
    forward, step = run_script(str(tmp_path / "alike.py"), platforms=["cpu"], everything=True).recording.functions
    assert [one.operations > 9 for one in forward.compilations] == [True, False, False]
    assert [bool(one.programs) for one in forward.compilations] == [True, True, False]
    assert [bool(one.programs) for one in step.compilations] == [True, True, False]


def test_of_programs_of_the_same_arguments_the_one_with_most_operations_stands_for_the_function(tmp_path: Path) -> None:
    (tmp_path / "alike.py").write_text(ALIKE)
    forward, step = run_script(str(tmp_path / "alike.py"), platforms=["cpu"]).recording.functions
    assert [bool(one.programs) for one in forward.compilations] == [True, False, False]
    assert [bool(one.programs) for one in step.compilations] == [False, False, True]
    assert [one.number for one in (forward.largest, step.largest)] == [0, 5]


WEAK = """\
import jax
import jax.numpy as jnp


@jax.jit
def descend(weights, rate, flag, scale):
    return jnp.where(flag, weights - rate * weights, scale * weights)


if __name__ == "__main__":
    descend(jnp.ones(8, jnp.bfloat16), 0.5, True, jnp.full((), 2.0))
"""


def test_a_recorded_spec_says_which_arguments_are_of_weak_type_and_gives_the_same_program(tmp_path: Path) -> None:
    (tmp_path / "weak.py").write_text(WEAK)
    (descend,) = run_script(str(tmp_path / "weak.py")).recording.functions
    assert descend.largest.spec == "(bf16[8], ~f32[], bool[], ~f32[])"
    again = compile_entry(parse_spec(f"{tmp_path / 'weak.py'}:descend{descend.largest.spec}"), get("cpu"))
    assert again.outputs == ("bfloat16[8]",)


OPTIONS = """\
import functools
import jax
import jax.numpy as jnp


def write(buffer, value):
    return buffer.at[0].set(value)


def plain(buffer):
    return buffer * 2


@functools.partial(jax.jit, donate_argnums=0)
def decorated(buffer):
    return buffer * 3


fast, also = jax.jit(write, donate_argnums=0), jax.jit(plain)
x = jnp.ones(8)
decorated(fast(also(x), 1.0))
"""


def test_options_of_jit_that_the_functions_own_name_does_not_lead_to_are_in_no_spec(tmp_path: Path) -> None:
    (tmp_path / "options.py").write_text(OPTIONS)
    plain, write, decorated = run_script(str(tmp_path / "options.py"), platforms=["cpu"]).recording.functions
    assert write.largest.arguments[0].donated
    assert (write.largest.spec, bool(write.largest.programs)) == (None, True)
    assert (plain.largest.spec, decorated.largest.spec) == ("(f32[8])", "(f32[8])")


WIDE = """\
import jax
import jax.numpy as jnp


@jax.jit
def halve(x):
    return x / 2


def main():
    halve(jnp.ones(8, jnp.float32))
    jax.config.update("jax_enable_x64", True)
    halve(jnp.ones(8))


if __name__ == "__main__":
    main()
"""


def test_64_bits_that_the_script_set_itself_are_recorded_and_on_where_it_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    path.write_text(WIDE)
    recording = run_script(str(path)).recording
    assert [one.x64 for one in recording.functions[0].compilations] == [False, True]
    (task,) = tasks_recorded([f"{path}:halve"], [get("cpu")], recording)
    assert isinstance(task, tuple)
    plain = Job(parse_spec(f"{path}:halve(f64[8])"))
    wide, narrow = run_jobs([task[0], plain], task[1], read_artifacts)
    assert isinstance(wide, Artifacts)
    assert wide.outputs == ("float64[8]",)
    assert "jax runs in 32 bits" in str(narrow)  # it was on for the first job alone


LAMBDAS = """\
import jax
import jax.numpy as jnp

first, second = jax.jit(lambda x: x * 2), jax.jit(lambda x: x + 1)
first(jnp.ones(3))
second(jnp.arange(3))
second(jnp.arange(4))
"""


def test_two_lambdas_on_a_line_are_two_functions_where_python_knows_their_columns(tmp_path: Path) -> None:
    (tmp_path / "lambdas.py").write_text(LAMBDAS)
    found = run_script(str(tmp_path / "lambdas.py")).recording.functions
    if sys.version_info < (3, 11):
        (both,) = found
        assert [one.arguments[0].shape for one in both.compilations] == [(3,), (3,), (4,)]
        return
    first, second = found
    assert [one.why for one in first.compilations] == [()]
    assert [one.why for one in second.compilations] == [(), ("x: i32[3] -> i32[4]",)]
    row = LAMBDAS.splitlines()[3]
    assert [one.defined and one.defined.column for one in (first, second)] == [
        1 + row.index("x * 2"),
        1 + row.index("x + 1"),
    ]
    assert next(function_lines("1. ", second)).startswith(f"1. <lambda>  {tmp_path / 'lambdas.py'}:4:")


SPREAD = """\
import os
os.environ |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@jax.jit
def f(x):
    return (x * 2).sum()


mesh = Mesh(np.array(jax.devices()), ("d",))
f(jnp.ones(8))
f(jax.device_put(jnp.ones(16), NamedSharding(mesh, PartitionSpec("d"))))
with jax.default_matmul_precision("highest"):
    f(jnp.ones(8))
jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, PartitionSpec("d")))(jnp.ones(8))
first, second = (jax.jit(f.__wrapped__).lower(jnp.ones(n)) for n in (32, 64))
second.compile()
first.compile()
"""


def test_placement_settings_and_programs_compiled_ahead_of_time_are_told(tmp_path: Path) -> None:
    (tmp_path / "spread.py").write_text(SPREAD)
    found = run_script(str(tmp_path / "spread.py"), platforms=PLATFORMS).recording
    spread, alone = found.functions[0], found.functions[1]
    assert [one.devices for one in spread.compilations] == [1, 4, 1, 1, 1]
    why = [one.why for one in spread.compilations]
    assert why[1][0].startswith("x: f32[8] -> f32[16]")
    assert "other settings" in why[2][0]
    assert [one.arguments[0].shape for one in spread.compilations[3:]] == [(64,), (32,)]
    assert "over d=4" in spread.compilations[1].arguments[0].sharding
    assert set(spread.largest.programs) == set(PLATFORMS)
    assert spread.largest.arguments[0].shape == (64,)
    assert alone.largest.devices == 4
    assert set(alone.largest.programs) == set(PLATFORMS)


SEES = """\
import os, sys
print(sys.argv, sys.path[0], __name__, os.environ.get("PYTHONPATH"), "FUSIONLINT_CAPTURE" in os.environ)
print([entry for entry in sys.path if "compiling" in entry], sys.meta_path[0].__class__.__name__)
"""


def test_a_script_without_jax_sees_nothing_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain.py").write_text(SEES.replace(", sys.meta_path[0].__class__.__name__", ""))
    done = run_script(str(tmp_path / "plain.py"), ["a", "--target"])
    assert done.status == 0
    assert done.recording.notes == ("the program did not import jax",)
    first, second = capfd.readouterr().out.splitlines()
    argv = [str(tmp_path / "plain.py"), "a", "--target"]
    assert first == f"{argv} {tmp_path} __main__ {os.environ.get('PYTHONPATH')} False"
    assert second == "[]"


def test_importing_jax_leaves_the_path_and_the_loader_of_jax_as_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, jax\nprint(sys.path, type(jax.__spec__.loader), type(jax.__loader__))\n")
    subprocess.run([sys.executable, script], check=True)
    plain = capfd.readouterr().out
    assert run_script(str(script)).recording.functions == ()
    assert capfd.readouterr().out == plain


def test_a_sitecustomize_of_the_users_still_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.theirs = 'ran'\n")
    (tmp_path / "script.py").write_text("print(theirs)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_script(str(tmp_path / "script.py")).status == 0
    assert capfd.readouterr().out == "ran\n"


def test_a_module_runs_as_python_runs_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "__main__.py").write_text("import sys\nprint(__package__, sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    done = run_script("thing", ["x"], module=True)
    assert (done.status, done.recording.command) == (0, ("-m", "thing", "x"))
    assert capfd.readouterr().out == "thing ['x']\n"
