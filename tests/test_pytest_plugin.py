"""The pytest plugin, in suites of their own: the fixture, the budgets, the summary; silent unless used."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import SHOWN

from fusionlint.compiling import targets

pytest.importorskip("jax")

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[1]
STEP = """\
import jax
import jax.numpy as jnp
import numpy as np
import pytest


@jax.jit
def swing(s):
    def body(s, _):
        return jnp.stack([s[:, 0] + 1, jnp.sin(s[:, 1])], axis=1), None

    return jax.lax.scan(body, s, None, length=50)[0]


@jax.jit
def double(s):
    return s * 2


def ones(n):
    return jax.device_put(np.ones((n, 2), np.float32))  # no operation
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for a suite, which runs on the CPU whatever compilers there are."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("CI", raising=False)  # there pytest shows explanations whole
    pytester.makepyfile(steps=STEP)
    return pytester


def ran(suite: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    suite.makepyfile(test_it=f"from steps import *\n\n{tests}")
    return suite.runpytest_subprocess("--strict-markers", *arguments)


def test_a_failed_assertion_shows_the_barriers_at_their_lines(suite: pytest.Pytester) -> None:
    tests = """\
def test_few(fusion):
    report = fusion(swing, "f32[64,2]", target="cpu")
    assert report.launches <= 6


def test_turned_round(fusion):
    assert 6 >= fusion(swing, ones(64), target="cpu").launches


def test_of_the_settings(fusion):
    assert fusion(double, "f32[8,2]").target == "cpu"
"""
    suite.makepyprojecttoml('[tool.fusionlint]\ntarget = ["cpu"]\n')
    done = ran(suite, tests)
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        [
            ">       assert report.launches <= 6",
            "E       AssertionError: assert 152 <= 6",
            "E         steps.py:swing(s: f32[[]64,2]) on cpu: 50 steps x 3 launches + 2 = 152 launches, *",
            "E         1. concatenate steps.py:10* 50 launches, *",
            "*- Captured fusionlint call -*",
            "these are CPU counts: no guide to a GPU or TPU; name one with --fusionlint-target",
            "1. concatenate  steps.py:10*",
            "     10 |         return jnp.stack([[]s[[]:, 0] + 1, jnp.sin(s[[]:, 1])], axis=1), None",
            "E       AssertionError: assert 6 >= 152",
            "E         1. concatenate steps.py:10*",
        ]
    )
    done.stdout.no_fnmatch_line("*truncated*")


BUDGETS = """\
def test_compiles_it_before():
    swing(ones(8))


@pytest.mark.max_launches(6, target="cpu")
def test_too_many():
    swing(ones(8))


@pytest.mark.max_launches(152, target="cpu")
@pytest.mark.max_compiles(1)
def test_within():
    swing(ones(8))
    swing(ones(8))
    double(ones(8))


@pytest.mark.max_compiles(1)
def test_again():
    double(ones(8))
    double(ones(16))


@pytest.fixture
def warm():
    double(ones(8))


@pytest.mark.max_compiles(0)
def test_ready(warm):
    double(ones(8))


@pytest.mark.max_launches(6, target="cpu")
class TestNearest:
    @pytest.mark.max_launches(152, target="cpu")
    def test_its_own(self):
        swing(ones(8))

    def test_the_classs(self):
        swing(ones(8))
"""


@pytest.mark.any_jax
def test_budgets_count_what_the_test_itself_compiles_of_each_function(suite: pytest.Pytester) -> None:
    done = ran(suite, BUDGETS)
    done.assert_outcomes(passed=4, failed=3)
    done.stdout.fnmatch_lines(
        [
            "*_ test_too_many _*",
            "max_launches: 152 launches on cpu, 6 allowed",
            "these are CPU counts: no guide to a GPU or TPU; name one with --fusionlint-target",
            "1. concatenate  steps.py:10*",
            "     10 |         return jnp.stack([[]s[[]:, 0] + 1, jnp.sin(s[[]:, 1])], axis=1), None",
            "*_ test_again _*",
            "max_compiles: double was compiled 2 times, 1 allowed",
            "double  steps.py:15, called at test_it.py:22: compiled 2 times, *",
            "   again at test_it.py:23: s: f32[[]8,2] -> f32[[]16,2]",
            "*_ TestNearest.test_the_classs _*",
        ]
    )
    if "from swing:12" in done.stdout.str():  # an old jax says the line alone
        assert "steps.py:12:12 in swing, from test_too_many at test_it.py:9 " in done.stdout.str()


ALIKE = """\
import functools


class Model:
    def __init__(self, layers):
        self.layers = layers

    @functools.partial(jax.jit, static_argnums=0)
    def __call__(self, x):
        for _ in range(self.layers):
            x = jnp.sort(x, axis=0) + 1
        return x


def made(layers):
    @jax.jit
    def step(x):
        return Model(layers)(x)

    return step


@pytest.mark.max_launches(2, target="cpu")
def test_static_self():
    Model(1)(ones(8))
    Model(9)(ones(8))


@pytest.mark.max_launches(2, target="cpu")
def test_closure():
    made(9)(ones(8))
    made(1)(ones(8))
"""


def test_a_budget_holds_for_every_program_whatever_its_arguments_look_like(suite: pytest.Pytester) -> None:
    done = ran(suite, ALIKE)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["max_launches: 1? launches on cpu, 2 allowed"] * 2)


OF_ANOTHER = """\
import jaxlib


@pytest.mark.max_launches(6, target="cpu", jaxlib="0.0.1")
@pytest.mark.max_compiles(0, jaxlib="0.0.1")
def test_of_another():
    swing(ones(8))


@pytest.mark.max_launches(152, target="cpu", jaxlib="0.0.1")
def test_of_another_and_within():
    swing(ones(8))


@pytest.mark.max_launches(6, target="v5e")
def test_a_compiler_that_is_missing():
    swing(ones(8))


@pytest.mark.max_compiles(0, jaxlib=".".join(jaxlib.__version__.split(".")[:2]))
def test_of_this():
    double(ones(8))


@pytest.mark.max_compiles(0, jaxlib=jaxlib.__version__[:-1])
def test_of_one_that_begins_alike():
    double(ones(8))
"""
# In the suite's process: whatever is installed here, it finds no compiler for a TPU.
WITHOUT_LIBTPU = """\
import importlib.metadata

version = importlib.metadata.version


def without_libtpu(name):
    if name == "libtpu":
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)


importlib.metadata.version = without_libtpu
"""


def test_under_another_jaxlib_a_budget_warns_unless_it_is_strict(suite: pytest.Pytester) -> None:
    suite.makeconftest(WITHOUT_LIBTPU)
    done = ran(suite, OF_ANOTHER)
    done.assert_outcomes(passed=4, failed=1, warnings=4)
    done.stdout.fnmatch_lines(
        [
            "*BudgetWarning: max_launches: 152 launches on cpu, 6 allowed",
            "*1. concatenate  steps.py:10*",
            f"*(the budget was counted with jaxlib 0.0.1, this is {importlib.metadata.version('jaxlib')})",
            "*BudgetWarning: max_compiles: swing was compiled 1 time, 0 allowed",
            "*BudgetWarning: max_launches: cannot be checked: the compiler for v5e is not installed: *",
        ]
    )
    ran(suite, OF_ANOTHER, "--fusionlint-strict").assert_outcomes(passed=1, failed=4)


def test_a_budget_that_can_count_nothing_fails(suite: pytest.Pytester) -> None:
    tests = """\
@pytest.mark.max_launches(6, target="cpu")
def test_eager():
    jnp.sin(ones(8))


@pytest.mark.max_launches(6, target="h1000", jaxlib="0.0.1")
def test_no_target():
    double(ones(8))


@pytest.mark.max_launches("6")
def test_no_number():
    pass


@pytest.mark.max_compiles(1, target="cpu")
def test_no_such_word():
    pass


@pytest.mark.max_launches(target="cpu")
def test_nothing():
    pass


@pytest.mark.max_launches(6, target="cpu")
@pytest.mark.xfail(strict=True)
def test_that_fails_by_itself():
    assert double(ones(8)).sum() == 0
"""
    done = ran(suite, tests)
    done.assert_outcomes(failed=2, errors=3, xfailed=1)
    done.stdout.fnmatch_lines_random(
        [
            "max_launches: the test compiled no function of yours: there is nothing to count",
            "max_launches: there is no target 'h1000'; did you mean 'h100'?*",
            "@pytest.mark.max_launches: the most it may have is a whole number, not '6'",
            "@pytest.mark.max_compiles: got an unexpected keyword argument 'target'",
            "@pytest.mark.max_launches: missing a required argument: 'most'",
        ]
    )


@pytest.mark.any_jax
def test_a_whole_suite_is_reported_on_as_run_does_it(suite: pytest.Pytester) -> None:
    tests = """\
@pytest.mark.parametrize("n", [8, 16])
def test_swing(n):
    assert swing(ones(n) * 1).shape == (n, 2)
"""
    done = ran(suite, tests, "--fusionlint", "--fusionlint-target", "cpu")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        [
            "*= fusionlint =*",
            "fusionlint: pytest * compiled 1 function 2 times in * (jax *, on cpu)",
            "and * programs of one operation each, outside of any jit, in *",
            "1. swing  steps.py:7, called at test_it.py:5: compiled 2 times, *",
            "   again at test_it.py:5: s: f32[[]8,2] -> f32[[]16,2]",
            "   50 steps x 3 launches + 2 = 152 launches, *",
            "   these are CPU counts: no guide to a GPU or TPU; name one with --fusionlint-target",
            "eager operations: * programs of one operation each, *",
            "*= 2 passed in *",
        ]
    )


SHARED = """\
import os
import time


@pytest.mark.parametrize("n", [8, 16, 24, 32])
def test_swing(n):
    swing(ones(n))
    double(ones(8))
    time.sleep(0.5)  # so that no worker takes them all


def test_double():
    double(ones(8) * 1)
"""


def test_under_xdist_the_workers_hand_over_what_they_compiled_and_one_report_is_made(suite: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    done = ran(suite, SHARED, "--fusionlint", "--fusionlint-target", "cpu", "-n2")
    done.assert_outcomes(passed=5)
    said = done.stdout.str()
    assert said.count("fusionlint: pytest ") == 1
    assert "compiled 2 functions 6 times in " in said
    assert re.search(r"^1\. swing  steps\.py:7, called at test_it\.py:9: compiled 4 times, ", said, re.M)
    assert said.count("50 steps x 3 launches + 2 = 152 launches") == 1
    assert "steps.py:swing(s: f32[32,2]) on cpu" in said  # the largest, whoever compiled it
    # Both workers compiled `double` for the same shape; no two did so with `swing`.
    assert "   again at test_it.py:10: in another process, which has a cache of its own\n" in said
    assert len(re.findall(r"^   again at test_it\.py:9: s: f32\[\d+,2\] -> f32\[\d+,2\]$", said, re.M)) == 3
    assert re.search(r"^eager operations: \d+ programs? of one operation", said, re.M)


def test_a_worker_of_xdist_that_dies_is_said_and_the_others_are_reported_on(suite: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    dies = SHARED + "\n\ndef test_dies():\n    os._exit(1)\n"
    done = ran(suite, dies, "--fusionlint", "--fusionlint-target", "cpu", "-n2")
    said = done.stdout.str()
    assert len(re.findall(r"^worker gw\d died: what it compiled is not known$", said, re.M)) == 1
    assert re.search(r"^\d\. swing  steps\.py:7, ", said, re.M)  # which of two took longer is chance
    assert "152 launches" in said


def test_under_xdist_without_jax_that_is_said_once(suite: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    suite.makepyfile(test_plain="def test_it():\n    pass\n")
    done = suite.runpytest_subprocess("--fusionlint", "--fusionlint-target", "cpu", "-n2", "test_plain.py")
    done.assert_outcomes(passed=1)
    assert done.stdout.str().count("no test imported jax") == 1


def test_a_target_that_is_none_is_said_before_the_tests_run(suite: pytest.Pytester) -> None:
    done = ran(suite, "def test_it():\n    pass\n", "--fusionlint", "--fusionlint-target", "h1000,cpu")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: fusionlint: there is no target 'h1000'; did you mean 'h100'?*"])


@pytest.mark.compilers
def test_what_is_shown_is_what_pytest_prints(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    if targets.versions(targets.get("h100"))["jax"] != "0.10.2":
        pytest.skip("what is shown is what jax 0.10.2 makes")
    shown = re.search(r"^<!-- pytest: (.*) -->\n```python\n(.*?)^```\n+^```\n(.*?)^\.\.\.\n```$", SHOWN, re.M | re.S)
    assert shown
    folder, tests, printed = shown.groups()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    pytester.makeconftest(
        "import pytest, numpy\n\n\n@pytest.fixture\ndef start():\n    return numpy.zeros((2048, 4))\n"
    )
    pytester.makepyfile(test_rollout=tests)
    monkeypatch.chdir(ROOT / folder)  # pytester has it on the path
    done = pytester.run(sys.executable, "-mpytest", "-pno:cacheprovider", pytester.path)
    done.assert_outcomes(failed=2)
    for line in printed.splitlines():
        assert line in done.outlines
    assert "max_launches: 4003 launches on h100, 3003 allowed" in done.outlines


def test_it_is_silent_unless_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_was_imported():
            assert not {"jax", "libcst", "click", "fusionlint.explained", "fusionlint.budgets"} & set(sys.modules)
        """
    )
    done = pytester.runpytest_subprocess("--disable-warnings")
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("*launches*")
    done = pytester.runpytest_subprocess("--fusionlint", "--fusionlint-target", "cpu")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*= fusionlint =*", "no test imported jax"])
    pytester.runpytest_subprocess("-p", "no:fusionlint").assert_outcomes(passed=1)


def test_pytest_imports_next_to_nothing_for_it() -> None:
    (entry,) = importlib.metadata.entry_points(group="pytest11", name="fusionlint")
    code = f"import sys, pytest; a = {{*sys.modules}}; import {entry.value}; print(*sorted({{*sys.modules}} - a))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fusionlint", "fusionlint.pytesting", entry.value]


def test_the_markers_are_told(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_subprocess("--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.max_launches(most, [*], target, jaxlib): *"])
    done.stdout.fnmatch_lines(["@pytest.mark.max_compiles(most, [*], jaxlib): *"])
