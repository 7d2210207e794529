"""Lines, reasons and `check` whatever jax there is; of a jax that is not known, one line says that there is no verdict.

`.ci/versions.py` runs this, and all other tests with the mark `any_jax`, on each version of jax that is supported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fusionlint.compiling.artifacts import Artifacts
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_entry, new_folder
from fusionlint.compiling.targets import get
from fusionlint.explained import explain
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.lines import lines

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.any_jax

CODE = """\
import jax.numpy as jnp


def step(x, v):
    parts = [jnp.sin(x) + v, v * 2.0]
    both = jnp.stack(parts, axis=1)
    return jnp.cumsum(both, axis=0) + both
"""
SPEC = "env.py:step(f32[512], f32[512])"
HAZARD = (
    "import jax.numpy as jnp\n\n\ndef swap(s):\n    o = jnp.zeros((8, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])\n"
)
SCRIPT = """\
import jax
import jax.numpy as jnp


@jax.jit
def twice(x):
    return jnp.sin(x) * 2


twice(jnp.ones(3))
twice(jnp.ones(5))
jnp.cumsum(jnp.ones(4))
print("its own words")
raise SystemExit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("env.py", CODE), ("hazard.py", HAZARD), ("script.py", SCRIPT)):
        (tmp_path / name).write_text(text)
    return tmp_path


def fusionlint(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, in `folder`, with `path` before all that Python imports from."""
    command = [sys.executable, "-m", "fusionlint", *arguments]
    paths = os.pathsep.join([*([str(path)] if path else []), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def artifacts() -> Artifacts:
    path = new_folder() / "env.py"
    path.write_text(CODE)
    return compile_entry(parse_spec(f"{path}:step(f32[512], f32[512])"), get("cpu"))


# This jax


def test_hlo_names_the_users_lines_in_one_of_two_formats(artifacts: Artifacts) -> None:
    text = artifacts.after
    assert ("\nFileNames\n" in text and "stack_frame_id=" in text) != (
        "source_file=" in text and "source_line=" in text
    )
    (path,) = [path for path in lines(hlo.parse(text)) if path.endswith("env.py")]
    made = {line for first, last in lines(hlo.parse(text))[path] for line in range(first, last + 1)}
    assert made <= {4, 5, 6, 7}
    assert {6, 7} & made


def test_explain_shows_a_barrier_at_its_line_with_xlas_reason(folder: Path) -> None:
    done = fusionlint(folder, "explain", SPEC, "--target", "cpu")
    assert done.stderr == ""
    assert done.returncode in (0, 1)
    assert re.search(r"^\d+\. .*  env\.py:[67]\b", done.stdout, re.MULTILINE)
    assert re.search(r"^   XLA: \w+", done.stdout, re.MULTILINE)
    assert "not known here" not in done.stdout


def test_run_says_what_was_compiled_why_again_and_what_ran_eagerly(folder: Path) -> None:
    done = fusionlint(folder, "run", "--target", "cpu", "script.py")
    assert (done.returncode, done.stdout) == (3, "its own words\n")
    assert "fusionlint: script.py compiled 1 function 2 times in " in done.stderr
    assert "\n1. twice  script.py:5, called at script.py:10: compiled 2 times, " in done.stderr
    assert "\n   again at script.py:11: x: f32[3] -> f32[5]\n" in done.stderr
    assert "\n   1 launch, " in done.stderr
    assert re.search(r"^eager operations: \d+ programs of one operation each, ", done.stderr, re.MULTILINE)
    assert re.search(r"^   script\.py:12: \d+ programs? \(.*cumsum", done.stderr, re.MULTILINE)
    assert "not known here" not in done.stderr


def test_check_finds_the_same_and_imports_no_jax(folder: Path) -> None:
    (folder / "none" / "jax").mkdir(parents=True)
    (folder / "none" / "jax" / "__init__.py").write_text("raise SystemExit('jax was imported')\n")
    done = fusionlint(folder, "check", "--no-cache", "--output-format", "concise", "hazard.py", path=folder / "none")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("hazard.py:5:9: columns-by-at-set: ")


# A jax that is not known

BEFORE = """\
import sys
from importlib.util import find_spec


class Other:
    '''Finds jax, and makes it another as soon as it is imported, before anybody else sees it.'''

    def find_spec(self, name, path=None, target=None):
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("jax")
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            exec(CHANGE, {"jax": module})

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(1, Other())  # after that of `fusionlint run`, which asks the others
"""
# What another jax may be like, and what is said of it then.
WATCHED = {
    "a hook is gone": (
        "import jax.numpy; jax.numpy.ones(1)\n"  # what jax imports late still needs it
        "from jax._src import traceback_util; del traceback_util.register_exclusion",
        (
            r"not known here \(.*register_exclusion.*\): functions are listed without arguments and launches$",
            "1. twice",
        ),
    ),
    "its monitoring is gone": (
        "import jax.monitoring; del jax.monitoring.register_event_duration_secs_listener",
        (r"not known here \(.*\): nothing is captured$", " compiled 0 functions"),
    ),
    "it tells its compilations by another name": (
        "from jax._src import dispatch; dispatch.BACKEND_COMPILE_EVENT = '/jax/another'",
        (
            r"not known here \(it does not say when it compiles\): nothing was captured$",
            " compiled 0 functions",
        ),
    ),
    "it lowers by another function": (
        "import types; from jax._src import pjit; other = types.ModuleType('other')\n"
        "vars(other).update(vars(pjit.pxla)); pjit.pxla = other",
        (r"not known here \(it lowers in another way\): functions are listed without arguments", "1. twice"),
    ),
    "it cannot be watched at all": (
        "del jax.__version__",
        (r"this jax cannot be watched \(AttributeError: .*__version__.*\): nothing was captured$", ""),
    ),
}
READ = {
    "its HLO is another language": (
        "jax.stages.Compiled.as_text = lambda self: 'HloModule jit_step\\n\\nmodule @jit_step {'",
        r"no verdict on env\.py:step.* for cpu: jaxlib [\d.]+ writes HLO that is not known here: line 3: .*",
    ),
    "its HLO is asked for in another way": (
        "del jax.stages.Lowered.compiler_ir",
        r"no verdict on env\.py:step.*: this jax or jaxlib is not known here: AttributeError: .*compiler_ir.*",
    ),
    "it does not come up": (
        "del jax.config",
        r"the worker could not start: AttributeError: .*config.*",
    ),
}


def other_jax(folder: Path, change: str) -> Path:
    """A folder to import from, in which Python finds what makes jax another."""
    home = folder / "other"
    home.mkdir()
    (home / "sitecustomize.py").write_text(f"{BEFORE}CHANGE = {change!r}\n")
    return home


@pytest.mark.parametrize("case", WATCHED)
def test_a_program_under_a_jax_that_is_not_known_runs_as_ever_and_the_report_says_what_is_missing(
    folder: Path, case: str
) -> None:
    change, (says, lists) = WATCHED[case]
    done = fusionlint(folder, "run", "--target", "cpu", "script.py", path=other_jax(folder, change))
    assert (done.returncode, done.stdout) == (3, "its own words\n")
    assert "Traceback" not in done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("no verdict: ")]
    assert len(notes) == 1, done.stderr
    assert re.search(says, notes[0]), notes
    assert lists in done.stderr


@pytest.mark.parametrize("case", READ)
def test_of_a_jax_that_is_not_known_explain_has_no_verdict_and_says_so_in_one_line(folder: Path, case: str) -> None:
    change, says = READ[case]
    done = fusionlint(folder, "explain", SPEC, "--target", "cpu", path=other_jax(folder, change))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"fusionlint: {says}\n", done.stderr), done.stderr


def test_reasons_and_lines_in_words_that_are_not_known_are_said_to_be_missing(artifacts: Artifacts) -> None:
    assert explain(artifacts).notes == ()
    home = new_folder()
    for name, text in (("after", artifacts.after), ("before", artifacts.before)):
        plain = re.sub(r", metadata=\{[^{}]*\}", "", text)
        plain = re.sub(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*", "", plain, flags=re.M)
        (home / f"{name}.hlo.txt").write_text(plain)
    (home / "log.txt").write_text("I0101 fusion.cc:1] %a stays where it is, said in other words\n")
    notes = explain(replace(artifacts, folder=home)).notes
    assert [note.partition(":")[0] for note in notes] == ["no verdict", "no lines"]
