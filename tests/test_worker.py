"""Real compilations in worker processes: what they leave behind, and what is said when they fail."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fusionlint.compiling import jobs, targets
from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, read_artifacts
from fusionlint.compiling.blame import JobError, blaming, message
from fusionlint.compiling.devices import _NoDevice
from fusionlint.compiling.dumps import platform_of
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_entry, compile_many, run_jobs
from fusionlint.compiling.targets import get, missing

pytestmark = pytest.mark.compilers

CPU = get("cpu")
Result = Artifacts | CompileError

USER = '''
from __future__ import annotations
import functools
import jax
import jax.numpy as jnp
from jax import lax

def shapes_as_tuples(x, y):
    return x @ y

shapes_as_tuples.example_args = ((4, 8), (8,))

def inner(x):
    return jnp.concatenate([x, jnp.cos(x)])

def outer(x):
    return jnp.sin(inner(x)) + 1

def plain(x, y=2.0):
    print("the user's words")
    return x * y

@functools.partial(jax.jit, static_argnames=("n", "mode"))
def decorated(x, n, mode="sum"):
    return getattr(jnp, mode)(x * n, axis=0)

@functools.partial(jax.jit, donate_argnums=0)
def donating(state, scale):
    return state * scale

@functools.partial(jax.jit, static_argnames="n")
def scaled(by, n=5):
    return jnp.arange(n) * by

def static_values(x, sizes, activation, *, flag):
    for size in sizes:
        x = getattr(jnp, activation)(x[:size])
    return x if flag is None else -x

def tree(params, batch, config):
    x, y = batch
    return x @ params["w"] + params["b"] + config["scale"] * y, params

def rng(key, keys, n):
    return jax.random.normal(key, (n,)), jax.vmap(lambda k: jax.random.uniform(k, (2,)))(keys)

def nothing():
    return jnp.arange(8.0) * 2

class Env:
    """Made without arguments."""
    scale = 2.0
    def step(self, x):
        return x * self.scale
    @functools.partial(jax.jit, static_argnums=0)
    def jitted(self, x):
        return x + self.scale
    @staticmethod
    def static(x):
        return x - 1
    @classmethod
    def of_class(cls, x):
        return x - cls.scale
    def __call__(self, x):
        return x / self.scale

class Sized(Env):
    def __init__(self, size):
        self.scale = size

class Checked(type):
    def __call__(cls, *args):  # as that of flax.nnx, behind which the parameters are hidden
        return super().__call__(*args)

class Module(metaclass=Checked):
    def __init__(self, rngs):
        self.scale = rngs
    def __call__(self, x):
        return x * self.scale

sized = Sized(3.0)
env = Env()
double = functools.partial(plain, y=3.0)
number = 3


def field(state):
    return state.x

def with_own_examples(x, n):
    return x[:n]
with_own_examples.example_args = (jnp.ones((5, 2)), 3)

def with_module_examples(x):
    return x * 2
example_args = {"with_module_examples": (jax.ShapeDtypeStruct((7,), "int32"),), "Env.step": (jnp.ones(9),)}

def annotated(x: Float[Array, "8 128"], i: Int[Array, ""], key: PRNGKeyArray, *, mask: Bool[Array, "128"]):
    return jnp.where(mask, x, i) + jax.random.uniform(key)

def half_annotated(x: Float[Array, "8 n"]):
    return x

def unsayable(x: jax.Array):
    return x

def made_late(x):
    return x
made_late.example_args = lambda: (jnp.ones(3), 1 // 0)

def constant(x):
    return x + jnp.arange(100_000.0).at[3].set(1.0)

def looped(x):
    return lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=5)

def bad_shapes(x, y):
    return inner(x) + y

def leaves(x):
    import sys
    sys.exit("done")

def bad_branch(x):
    if x > 0:
        return x
'''
LINES = USER.splitlines()

# SPEC -> the program's name and the types of its outputs
COMPILES = {
    "plain(f32[4])": ("plain", "float32[4]"),
    "plain(f32[4], f32[2,4])": ("plain", "float32[2,4]"),
    "plain(f32[4], y=3)": ("plain", "float32[4]"),
    "plain(bf16[4], y=f32[])": ("plain", "float32[4]"),
    "decorated(f32[3,4], 5)": ("decorated", "float32[4]"),
    'decorated(f32[3,4], n=5, mode="max")': ("decorated", "float32[4]"),
    "donating(f32[4], 3.0)": ("donating", "float32[4]"),
    "scaled(3)": ("scaled", "int32[5]"),
    "scaled(3, n=4)": ("scaled", "int32[4]"),
    'static_values(f32[9], [8, 4], "tanh", flag=None)': ("static_values", "float32[4]"),
    "tree({w: f32[2,3], b: f32[3]}, (f32[5,2], f32[5,1]), {scale: 2.0})": (
        "tree",
        "float32[5,3] float32[3] float32[2,3]",
    ),
    "rng(key, key[3], 4)": ("rng", "float32[4] float32[3,2]"),
    "rng(u32[2], u32[3,2], 4)": ("rng", "float32[4] float32[3,2]"),
    "nothing": ("nothing", "float32[8]"),
    "Env.step(f32[4])": ("step", "float32[4]"),
    "Env.jitted(f32[4])": ("jitted", "float32[4]"),
    "Env.static(f32[4])": ("static", "float32[4]"),
    "Env.of_class(f32[4])": ("of_class", "float32[4]"),
    "sized.step(f32[4])": ("step", "float32[4]"),
    "env(f32[4])": ("Env", "float32[4]"),
    "double(f32[4])": ("plain", "float32[4]"),
    "with_own_examples": ("with_own_examples", "float32[3,2]"),
    "with_module_examples": ("with_module_examples", "int32[7]"),
    "Env.step": ("step", "float32[9]"),
    "annotated": ("annotated", "float32[8,128]"),
    "outer(f32[4])": ("outer", "float32[8]"),
    "constant(f32[])": ("constant", "float32[100000]"),
    "looped(f32[4])": ("looped", "float32[4] float32[5,4]"),
}

# SPEC -> the arguments that were found, which reports say
FOUND = {
    "nothing": "()",
    "with_own_examples": "(f32[5,2], 3)",
    "with_module_examples": "(i32[7])",
    "Env.step": "(f32[9])",
    "annotated": "(f32[8,128], i32[], key, mask=bool[128])",
}

# SPEC -> the kind of error, what its one line says, and the user's line it names
FAILS = {
    "bad_shapes(f32[4], f32[3])": ("trace", "bad_shapes could not be traced: TypeError: add got ", "inner(x) + y"),
    "bad_branch(f32[])": ("trace", "bad_branch could not be traced: TracerBoolConversionError: ", "if x > 0"),
    "otter(f32[4])": ("absent", "has no otter; did you mean outer?", None),
    "Env.stop(f32[4])": ("absent", ":Env has no stop; did you mean step", None),
    "Sized.step(f32[4])": ("entry", "make one in the module, `sized = Sized(...)`, and name sized.step", None),
    "Module.__call__(f32[4])": ("entry", "Module cannot be made without arguments (TypeError: Module.__init", None),
    "Env": ("entry", "is a class, not a function; name a method of it: Env.step", None),
    "number": ("entry", "number is an int, not a function", None),
    "field((f32[4], f32[4]))": ("trace", "no attribute 'x'; a SPEC has plain tuples, ", "return state.x"),
    "plain(f32[4], 3, 4)": ("entry", "plain(x, y=2.0) does not take (float32[4], 3, 4): too many positional", None),
    "half_annotated(key, f32[4])": ("entry", "half_annotated(x) does not take (key, float32[4]): too many", None),
    "plain(f32[4], z=3)": ("entry", "plain(x, y=2.0) does not take (float32[4], z=3): it has no z", None),
    "plain(z=3)": ("entry", "plain(x, y=2.0) does not take (z=3): it has no z", None),
    "decorated(f32[3,4], i32[])": ("trace", "; what jax.jit is told is static is no array: write", "(x * n, axis=0)"),
    "rng(key, key[3], i32[])": ("trace", "; what shapes and Python's loops are made of is no array", "key, (n,)"),
    "plain": ("entry", "plain(x) needs arguments: say its arguments, as in `", None),
    "half_annotated": ("entry", 'half_annotated needs a size for n (x: "8 n"): say --dim n=8', None),
    "unsayable": ("entry", "the annotation of `x: jax.Array` says no shape: say its arguments, as in `", None),
    "made_late": ("arguments", "made_late could not be made: ZeroDivisionError", "1 // 0"),
    "shapes_as_tuples": ("trace", '; (4, 8) is a static value: an array of that shape is "f32[4,8]"', "return x @ y"),
    "leaves(f32[4])": ("trace", "leaves could not be traced: SystemExit: done", 'sys.exit("done")'),
    "plain(f64[4])": ("entry", "float64[4]: jax runs in 32 bits; write float32, or set JAX_ENABLE_X64=1", None),
}  # fmt: skip


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("user") / "code.py"  # like a module of Python's own
    path.write_text(USER)
    return path


@pytest.fixture(scope="module")
def results(user: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """All of COMPILES and FAILS, compiled for the CPU by one process."""
    specs = [*COMPILES, *FAILS]
    entries = [parse_spec(f"{user}:{spec}") for spec in specs]
    return dict(zip(specs, compile_many(entries, CPU, outdir=tmp_path_factory.mktemp("out")), strict=True))


@pytest.fixture(scope="module")
def made(results: dict[str, Result]) -> Callable[[str], Artifacts]:
    def made(spec: str) -> Artifacts:
        result = results[spec]
        assert isinstance(result, Artifacts), result
        return result

    return made


@pytest.fixture(autouse=True)
def in_scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def fails(spec: str, timeout: float = 60) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_entry(parse_spec(spec), CPU, timeout)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("spec", COMPILES)
def test_every_kind_of_entry_compiles_under_its_own_name(made: Callable[[str], Artifacts], spec: str) -> None:
    name, outputs = COMPILES[spec]
    found = made(spec)
    assert (found.function, " ".join(found.outputs)) == (name, outputs)
    assert re.search(rf"^HloModule jit_{name}\b", found.after)
    assert found.target == "cpu"
    assert found.entry.endswith(spec if "(" in spec else f"{spec}{FOUND[spec]}")


@pytest.mark.parametrize("spec", FAILS)
@pytest.mark.any_jax
def test_a_failure_is_one_line_at_the_users_own_line(results: dict[str, Result], user: Path, spec: str) -> None:
    kind, says, code = FAILS[spec]
    error = results[spec]
    assert isinstance(error, CompileError)
    assert error.kind == kind
    assert says in str(error)
    assert "\n" not in str(error)
    assert error.where == ("" if code is None else f"{user}:{line_of(code)}")


def test_dims_are_the_sizes_of_annotations_and_reports_say_what_was_compiled(user: Path) -> None:
    job = Job(parse_spec(f"{user}:half_annotated"), dims={"n": (5,)})
    (found,) = run_jobs([job], CPU, read_artifacts)
    assert isinstance(found, Artifacts)
    assert (found.entry, found.outputs) == (f"{user}:half_annotated(f32[8,5])", ("float32[8,5]",))


def test_what_a_spec_cannot_say_of_arguments_that_were_found_is_said_shortly(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(
        "import jax.numpy as jnp\nweights = {f'layer_{i}': jnp.ones((8, 8)) for i in range(9)}\n"
        "def f(w, pair, act, n): return w\nf.example_args = (weights, (jnp.ones(2), 3), jnp.tanh, {'a': jnp.ones(1)})\n"
    )
    (found,) = compile_many([parse_spec("long.py:f")], CPU)
    assert isinstance(found, Artifacts)
    assert re.fullmatch(r"long.py:f\(9 arrays, \(f32\[2\], 3\), [\w. ]+, \{a: f32\[1\]\}\)", found.entry)


def line_of(code: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if code in line)


def test_all_texts_are_there_and_tell_of_the_same_function(made: Callable[[str], Artifacts]) -> None:
    found = made("outer(f32[4])")
    assert "concatenate" in found.jaxpr
    assert "stablehlo.concatenate" in found.stablehlo
    assert "concatenate(" in found.before
    assert "is_scheduled=true" in found.after
    assert {"jax", "jaxlib"} == set(found.versions)
    assert min(found.trace_seconds, found.lower_seconds, found.compile_seconds) > 0


@pytest.mark.any_jax
def test_the_log_holds_xlas_fusion_decisions_and_nothing_else_of_the_process(made: Callable[[str], Artifacts]) -> None:
    log = made("outer(f32[4])").log
    assert "instruction_fusion.cc" in log
    assert re.search(r"[Nn]ot fusing|Fusing|Considering for fusion", log)
    assert "the user's words" not in made("plain(f32[4])").log


@pytest.mark.any_jax
def test_source_lines_are_the_users_own_and_nobody_elses(made: Callable[[str], Artifacts], user: Path) -> None:
    for spec in ("outer(f32[4])", "tree({w: f32[2,3], b: f32[3]}, (f32[5,2], f32[5,1]), {scale: 2.0})"):
        for text in (made(spec).before, made(spec).after):
            assert set(re.findall(r'"(/[^"]*\.py)"', text)) == {str(user)}


@pytest.mark.any_jax
def test_the_call_path_to_a_line_is_kept_where_the_format_has_one(made: Callable[[str], Artifacts]) -> None:
    text = made("outer(f32[4])").after
    assert re.search(rf"line={line_of('jnp.concatenate')}\b", text)
    if "StackFrames" in text:
        assert {"inner", "outer"} <= set(re.findall(r'^\d+ "(\w+)"$', text, re.MULTILINE))


def test_a_definition_and_parameters_have_the_users_names(made: Callable[[str], Artifacts], user: Path) -> None:
    assert made("outer(f32[4])").defined == f"{user}:{line_of('def outer')}"
    assert made("double(f32[4])").defined == f"{user}:{line_of('def plain')}"
    assert made("env(f32[4])").defined == f"{user}:{line_of('def __call__')}"
    assert made("decorated(f32[3,4], 5)").parameters == ("x",)
    tree = made("tree({w: f32[2,3], b: f32[3]}, (f32[5,2], f32[5,1]), {scale: 2.0})")
    assert tree.parameters == ("params['b']", "params['w']", "batch[0]", "batch[1]")


def test_a_jitted_functions_own_donations_hold(made: Callable[[str], Artifacts]) -> None:
    assert "input_output_alias" in made("donating(f32[4], 3.0)").after


def test_a_jitted_function_says_itself_that_a_number_is_an_input(made: Callable[[str], Artifacts]) -> None:
    """Without any array it was bound, and XLA folded the constants."""
    for spec in ("scaled(3)", "scaled(3, n=4)"):
        assert made(spec).parameters == ("by",)
        assert "parameter(0)" in made(spec).after


def test_static_values_are_part_of_the_program(made: Callable[[str], Artifacts]) -> None:
    assert "parameter(1)" not in made("plain(f32[4], y=3)").after
    assert "tanh" in made('static_values(f32[9], [8, 4], "tanh", flag=None)').jaxpr


def test_large_constants_are_left_out_of_every_text(made: Callable[[str], Artifacts]) -> None:
    found = made("constant(f32[])")
    assert max(len(text) for text in (found.after, found.before, found.stablehlo, found.jaxpr)) < 20_000


def test_artifacts_and_errors_travel_between_processes(results: dict[str, Result]) -> None:
    found, error = results["plain(f32[4])"], results["plain"]
    assert pickle.loads(pickle.dumps(found)) == found
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_module_by_name_is_found_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "shared.py").write_text("SCALE = 2.0\n")
    (tmp_path / "pkg" / "model.py").write_text("from .shared import SCALE\ndef apply(x): return x * SCALE\n")
    (tmp_path / "src" / "far").mkdir(parents=True)
    (tmp_path / "src" / "far" / "__init__.py").write_text("")
    (tmp_path / "src" / "far" / "away.py").write_text("def f(x): return x\n")
    (tmp_path / "broken.py").write_text("import jax\nimport not_there\n")
    (tmp_path / "typo.py").write_text("import jax\n\ndef f(x:\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit('no display')\n")
    (tmp_path / "parses.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--power', type=int, default=2)\n"
        "given = parser.parse_args()\ndef f(x): return x ** given.power\n"
    )
    specs = {
        "pkg.model:apply(f32[4])": None,
        "pkg/model.py:apply(f32[4])": None,
        "far.away:f(f32[4])": None,
        "far.home:f(f32[4])": "no module far.home",
        "pkg.modle:apply(f32[4])": "no module pkg.modle; did you mean pkg.model?",
        "pgk.model:apply(f32[4])": "no module pgk (for pgk.model); did you mean pkg?",
        "pkg.model.apply:apply(f32[4])": "a function is named pkg.model:apply",
        "pkg/modle.py:apply(f32[4])": "modle.py; did you mean model.py?",
        "broken:f(f32[4])": "broken could not be imported: ModuleNotFoundError: No module named 'not_there' "
        f"({tmp_path}/broken.py:2)",
        "typo:f(f32[4])": f"typo could not be imported: SyntaxError: .*({tmp_path}/typo.py:3)",
        "typo.py:f(f32[4])": f"typo.py could not be imported: SyntaxError: '(' was never closed ({tmp_path}/typo.py:3)",
        "leaves.py:f(f32[4])": "leaves.py could not be imported: SystemExit: no display; let what reads arguments, or "
        f'runs, stand below `if __name__ == "__main__":` ({tmp_path}/leaves.py:2)',
        "parses.py:f(f32[4])": None,
    }
    found = compile_many([parse_spec(spec) for spec in specs], CPU)
    for (spec, says), result in zip(specs.items(), found, strict=True):
        if says is None:
            assert isinstance(result, Artifacts), (spec, result)
        else:
            assert re.search(re.escape(says).replace(r"\.\*", ".*"), str(result)), spec


def test_a_file_named_like_a_module_of_pythons_own_breaks_nothing(tmp_path: Path) -> None:
    """`python -m` looks into the working folder first: jax imported the user's random.py, and no worker started."""
    for name in ("random", "types", "numpy", "queue"):
        (tmp_path / f"{name}.py").write_text("def f(x): return x + 1\n")
    (tmp_path / "beside.py").write_text("SIZE = 2\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text(
        "import random, beside\ndef f(x): return x * beside.SIZE * random.Random(0).random()\n"
    )
    specs = ["random.py:f(f32[4])", "numpy.py:f(f32[4])", "scripts/train.py:f(f32[4])"]
    found = compile_many([parse_spec(spec) for spec in specs], CPU)
    assert all(isinstance(one, Artifacts) for one in found), found


def test_jobs_of_one_process_do_not_see_each_other(tmp_path: Path) -> None:
    for name, text in {
        "one": "import jax\njax.config.update('jax_enable_x64', True)\nimport helper\ndef f(x): return x * 2.0\n",
        "two": "import helper\ndef f(x): return x[:helper.SIZE]\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "block.py").write_text(text)
        (tmp_path / name / "helper.py").write_text(f"SIZE = {len(name) - (name == 'two')}\n")
    first, second, third = compile_many(
        [
            parse_spec(f"{name}/block.py:f({kind}[4])")
            for name, kind in (("one", "f64"), ("two", "f32"), ("two", "f64"))
        ],
        CPU,
    )
    assert isinstance(first, Artifacts)
    assert isinstance(second, Artifacts)
    assert (first.outputs, second.outputs) == (("float64[4]",), ("float32[2]",))
    assert "jax runs in 32 bits" in str(third)


def test_a_worker_that_dies_costs_its_own_job_alone(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("def f(x): return x\n")
    (tmp_path / "exits.py").write_text("import os\nprint('going', flush=True)\nos._exit(7)\n")
    (tmp_path / "aborts.py").write_text("import os\ndef f(x): os.abort()\n")
    names = ("good", "exits", "good", "aborts")
    before, exits, after, aborts = compile_many([parse_spec(f"{name}:f(f32[4])") for name in names], CPU)
    assert isinstance(before, Artifacts)
    assert isinstance(after, Artifacts)
    assert isinstance(exits, CompileError)
    assert isinstance(aborts, CompileError)
    assert str(exits) == "the worker that had exits:f for cpu ended with exit status 7; its last words: going"
    assert str(aborts).startswith("the worker that had aborts:f for cpu died of SIGABRT; its last words: ")
    assert (exits.kind, aborts.kind) == ("crash", "crash")
    assert "going" in exits.stderr


def test_the_last_words_of_a_worker_are_what_it_died_of(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(
        "import os, sys\ndef f(x):\n"
        "    print('F1126 20:22:50.1 7 rewriter.cc:1] Unsupported f64', file=sys.stderr)\n"
        "    print('E1126 20:22:50.2 7 signals.cc:1] Raising signal 6', file=sys.stderr, flush=True)\n    os.abort()\n"
    )
    assert str(fails("dies:f(f32[4])")).endswith("its last words: F1126 20:22:50.1 7 rewriter.cc:1] Unsupported f64")


def test_metadata_of_a_package_that_is_not_installed_is_no_missing_module(tmp_path: Path) -> None:
    (tmp_path / "uninstalled").mkdir()
    (tmp_path / "uninstalled" / "__init__.py").write_text("from importlib.metadata import version\nversion(__name__)\n")
    (tmp_path / "uninstalled" / "m.py").write_text("def f(x): return x\n")
    assert "uninstalled.m could not be imported: PackageNotFoundError" in str(fails("uninstalled.m:f(f32[4])"))


def test_a_job_has_a_time_limit_and_says_how_far_it_came(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(600)\n")
    error = fails("hangs:f(f32[4])", timeout=3)
    assert error.kind == "timeout"
    assert str(error).startswith("hangs:f took more than 3 s for cpu: raise the time limit")
    assert "see what hangs does when it is imported" in str(error)


def test_a_generator_is_no_fault_of_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "yields.py").write_text("def f(x):\n    yield x\n")
    assert str(fails("yields:f(f32[4])")).startswith("yields:f could not be traced: TypeError: ")


def test_an_exception_whose_first_line_announces_others_is_told_with_them(tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("def f(x):\n    raise ValueError('these do not fit:\\n  a (3,)\\n  b (4,)')\n")
    assert "ValueError: these do not fit: a (3,) b (4,)" in str(fails("says:f(f32[4])"))


def test_code_that_fails_is_traced_once(tmp_path: Path) -> None:
    (tmp_path / "traced.py").write_text("def f(x):\n    open('said', 'a').write('traced')\n    raise ValueError\n")
    assert fails("traced:f(f32[4])").kind == "trace"
    assert (tmp_path / "said").read_text() == "traced"


def test_without_jax_no_process_starts_and_the_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_version", lambda name: None)
    monkeypatch.setattr(jobs.subprocess, "Popen", None)
    error = fails("m:f(f32[4])")
    assert (error.kind, str(error)) == ("missing", "jax is not installed: pip install 'fusionlint[explain]'")


@pytest.mark.parametrize("name", ["h100", "v5e"])
def test_hardware_that_is_not_there_is_compiled_for(user: Path, name: str) -> None:
    target = get(name)
    if absent := missing(target):
        pytest.skip(absent)
    specs = ["looped(f32[4])", "nothing", "rng(key, key[3], 4)", "bad_shapes(f32[4], f32[3])"]
    *good, bad = compile_many([parse_spec(f"{user}:{spec}") for spec in specs], target)
    for found in good:
        assert isinstance(found, Artifacts)
        assert "is_scheduled=true" in found.after
        assert len(found.versions) == 3
    assert isinstance(bad, CompileError)
    assert bad.where == f"{user}:{line_of('inner(x) + y')}"


def test_who_is_jitted_for_one_platform_is_not_said_to_be_compiled_for_another(tmp_path: Path) -> None:
    """It was compiled for the CPU, and its launches were told as an H100's."""
    if absent := missing(get("h100")):
        pytest.skip(absent)
    (tmp_path / "here.py").write_text(
        "import jax\n\ncpu = jax.devices('cpu')[0]\n\n"
        "backend = jax.jit(lambda x: x + 1, backend='cpu')\n"
        "device = jax.jit(lambda x: x + 1, device=cpu)\n"
        "shardings = jax.jit(lambda x: x + 1, in_shardings=jax.sharding.SingleDeviceSharding(cpu))\n"
        "def asks(x):\n    return jax.device_put(x, jax.devices('gpu')[0])\n"
        "def unused(x):\n    return jax.numpy.arange(9.0) * 2\n"
        "def nothing(x):\n    pass\n"
    )
    names = ["backend", "device", "shardings", "asks"]
    *found, unused, nothing = compile_many(
        [parse_spec(f"here:{name}(f32[4])") for name in (*names, "unused", "nothing")], get("h100")
    )
    # Nothing that is given places what is made of nothing.
    assert isinstance(unused, Artifacts)
    assert platform_of(unused.after) == "cuda"
    assert isinstance(nothing, Artifacts)
    said = {name: str(one) for name, one in zip(names, found, strict=True) if isinstance(one, CompileError)}
    assert said.keys() == {*names}
    assert said["backend"] == (
        "here:backend is jitted for cpu (by backend, device or in_shardings), whatever the target: do without to "
        "compile it for h100"
    )
    assert said["device"].startswith("here:device is jitted for cpu ")
    assert "do without, or say the axes of its mesh, as in --mesh data=4" in said["shardings"]
    assert "it asks jax for the GPU of this machine, as jax.devices('gpu') does: do without" in said["asks"]


@pytest.mark.parametrize("target", ["cpu", "h100"])
def test_what_runs_on_several_devices_is_not_sent_to_another_target(tmp_path: Path, target: str) -> None:
    """An h100's error said to name --target cpu, and the CPU's that there is one device."""
    if absent := missing(get(target)):
        pytest.skip(absent)
    (tmp_path / "spread.py").write_text(
        "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\n"
        "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec\n\n"
        "mesh = jax.make_mesh((4,), ('d',))\n"
        "f = jax.jit(lambda x: x + 1, out_shardings=NamedSharding(mesh, PartitionSpec('d')))\n"
    )
    (found,) = compile_many([parse_spec("spread:f(f32[8])")], get(target))
    assert isinstance(found, CompileError)
    assert "it runs on several devices at once: say the axes of its mesh, as in --mesh data=4" in str(found)
    assert "--target" not in str(found)


def test_what_a_library_computes_while_it_is_lowered_is_computed_here(tmp_path: Path) -> None:
    """As lineax does in a linear solve: no Newton step of optimistix was compiled for what is not there."""
    if absent := missing(get("h100")):
        pytest.skip(absent)
    (tmp_path / "solves.py").write_text(
        "import jax\nimport jax.numpy as jnp\nfrom jax.extend.core import Primitive\n"
        "from jax.interpreters import mlir\n\n"
        "def twice(x):\n    with jax.ensure_compile_time_eval():\n        two = jnp.ones(()) + 1\n"
        "    return x * float(two)\n\n"
        "solve = Primitive('solve')\nsolve.def_abstract_eval(lambda x: x)\n"
        "mlir.register_lowering(solve, mlir.lower_fun(twice, multiple_results=False))\n\n"
        "def f(x):\n    return solve.bind(x)\n"
    )
    (found,) = compile_many([parse_spec("solves:f(f32[4])")], get("h100"))
    assert isinstance(found, Artifacts)
    assert platform_of(found.after) == "cuda"


def test_callbacks_are_compiled_for_an_h100_that_is_not_there_as_for_one_that_is(tmp_path: Path) -> None:
    if absent := missing(get("h100")):
        pytest.skip(absent)
    (tmp_path / "talks.py").write_text(
        "import jax\n\ndef f(x):\n    jax.debug.print('{}', x, ordered=True)\n"
        "    y, _ = jax.lax.scan(lambda c, _: (jax.debug.callback(print, c[0]) or c * 2, None), x, None, length=3)\n"
        "    return jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(y.shape, y.dtype), y)\n"
    )
    found = compile_entry(parse_spec("talks:f(f32[4])"), get("h100"))
    calls = re.findall(r'custom_call_target="(xla_\w*python_gpu_callback)"', found.after)
    assert len(calls) == 3, found.after


@pytest.mark.any_jax
def test_what_an_older_jax_asks_of_the_backend_is_still_told_in_plain_words() -> None:
    with pytest.raises(RuntimeError) as caught:
        _NoDevice().get_emit_python_callback_descriptor(None)
    assert "take it out to compile for one that is not there" in message(caught.value, "lower", parse_spec("m:f"))


def test_a_gpu_compilation_leaves_xlas_dumps_and_no_more(user: Path) -> None:
    if absent := missing(get("h100")):
        pytest.skip(absent)
    found = compile_entry(parse_spec(f"{user}:outer(f32[4096])"), get("h100"))
    assert "fusion_steps" in found.dumped("*priority_fusion_dump.txt")
    assert "HloModule" in found.dumped("*before_priority-fusion*.txt")
    assert "HloModule" in found.dumped("*after_priority-fusion*.txt")
    assert found.dumped("*thunk_sequence.txt")
    assert found.dumped("*.ptx") == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [("lower", "m:f could not be lowered for h100"), ("compile", "XLA could not compile m:f for h100")],
)
def test_what_fails_for_one_target_names_it(kind: str, said: str) -> None:
    with (
        pytest.raises(JobError, match=f"^{said}: ValueError: no kernel"),
        blaming(kind, parse_spec("m:f()"), target="h100"),
    ):
        raise ValueError("no kernel")


NAMES = """
import enum

import jax
import jax.numpy as jnp


class Mode(enum.Enum):
    TWICE = 2


class Settings:
    def __init__(self, act):
        self.act = act


settings = Settings(jnp.tanh)
weights = jnp.ones((8, 4))


def apply(x, settings, mode, dtype=jnp.float32):
    return settings.act(x.astype(dtype)) * mode.value


def product(weights, x):
    return weights @ x
"""


@pytest.mark.any_jax
def test_a_name_in_a_spec_is_what_the_module_has(tmp_path: Path) -> None:
    """What is no literal, a configuration or a type, had to stand beside the function as its example_args."""
    (tmp_path / "names.py").write_text(NAMES)
    calls = ("apply(f32[8], settings, Mode.TWICE, dtype=jnp.bfloat16)", "product(weights, f32[4])")
    calls += ("apply(f32[8], setings, Mode.TWICE)", "apply(f32[8], adam, Mode.THRICE)")
    found = compile_many([parse_spec(f"{tmp_path / 'names.py'}:{call}") for call in calls], get("cpu"))
    named, product, near, absent = found
    assert isinstance(named, Artifacts)
    assert "bf16[8]" in named.after
    assert isinstance(product, Artifacts)
    assert product.parameters == ("weights", "x")  # an array is an input
    assert "`setings` in the SPEC: names has no setings; did you mean settings?" in str(near)
    assert '`adam` in the SPEC: names has no adam; write "adam" for a string, f32[8,128] for an array' in str(absent)
