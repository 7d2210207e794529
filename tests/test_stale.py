"""stale: what a change of one file means for what was found in others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.rule import pages
from fusionlint.source.asked import ByPath, by_path
from fusionlint.source.facts import Facts
from fusionlint.source.judging import check_file
from fusionlint.source.listings import look_again
from fusionlint.source.places import Place
from fusionlint.source.read import facts_of
from fusionlint.source.reading import read_raw
from fusionlint.source.scope import Scope, speaking
from fusionlint.source.stale import Rejoined, rejoined, stale
from fusionlint.source.world import join

EVERYTHING = Scope(speaking(tuple(pages()), ()))
FILES = {
    "library.py": """
import jax

@jax.jit
def step(x):
    return helper(x)

def helper(x):
    return x

def other(x):
    return x
""",
    "driver.py": "from library import step\nfor _ in range(9):\n    x = step(x)\n",
    "passed_on.py": "from library import *\n",
    "by_passing.py": """
from passed_on import step

def run(x):
    for _ in range(9):
        x = step(x)
    return x
""",
    "by_name.py": "import library\n\ndef twice(x):\n    return library.other(library.other(x))\n",
    "elsewhere.py": "def g(x):\n    return x\n",
}
LIBRARY = FILES["library.py"]


def facts_in(folder: Path, files: dict[str, str]) -> dict[str, Facts]:
    look_again()
    for name, text in files.items():
        (folder / name).write_text(text)
    paths = {str(folder / name): text for name, text in sorted(files.items())}
    return {path: facts_of(read_raw(text, path).packed(), path) for path, text in paths.items()}


def changed(folder: Path, after: str, files: dict[str, str] = FILES) -> tuple[set[str], Rejoined]:
    """The files to look into again when library.py becomes `after`, and the project then."""
    before = facts_in(folder, files)
    world = join(before)
    asked: dict[str, ByPath] = {}
    for path in before:
        with world.project.log.apart() as questions:
            check_file(path, EVERYTHING, world)
        asked[path] = by_path(questions, path)
    rests = {question: by_path(of_one) for question, of_one in world.project.rests.items()}
    library = str(folder / "library.py")
    now = facts_in(folder, {**files, "library.py": after})
    found = rejoined(now, {library: before[library]}, world.packed())
    return {Path(path).name for path in stale(found, asked, rests)}, found


@pytest.mark.parametrize(
    ("after", "again"),
    [
        (LIBRARY.replace("return x\n", "return x  # so\n"), set()),
        (LIBRARY + "\ndef added(x):\n    return helper(x)\n", {"library.py"}),
        (LIBRARY.replace("@jax.jit\n", ""), {"library.py", "driver.py", "by_passing.py"}),
        (LIBRARY.replace("def other", "def another"), {"library.py", "by_name.py"}),
        (
            LIBRARY.replace("    return helper(x)", "    return helper(other(x))"),
            {"library.py", "driver.py", "by_passing.py", "by_name.py"},  # `other` runs under a trace now
        ),
    ],
    ids=["a comment", "a new function", "no longer compiled", "called otherwise", "another body"],
)
def test_only_files_that_asked_about_what_changed_are_looked_into_again(
    after: str, again: set[str], tmp_path: Path
) -> None:
    found, _ = changed(tmp_path, after)
    assert found == again


@pytest.mark.parametrize(
    "after",
    [LIBRARY + "\ndef added(x):\n    return other(x)\n", LIBRARY.replace("@jax.jit\n", ""), "step = 1\n", ""],
    ids=["a new function", "no longer compiled", "nothing but a number", "nothing"],
)
def test_a_project_that_is_joined_again_is_the_project_joined_anew(after: str, tmp_path: Path) -> None:
    _, now = changed(tmp_path, after)
    anew = join(facts_in(tmp_path, {**FILES, "library.py": after}))
    assert now.world.packed() == anew.packed()
    assert now.world.contexts == anew.contexts


def test_what_a_new_function_calls_is_no_longer_called_by_set_up_code_alone(tmp_path: Path) -> None:
    tables = LIBRARY + "\ndef table():\n    return 1\n\nTABLE = table()\n"
    after = tables + "\ndef added(x):\n    return table()\n"
    _, now = changed(tmp_path, after, {**FILES, "library.py": tables})
    table = Place(str(tmp_path / "library.py"), "table")
    assert table in join(facts_in(tmp_path, {**FILES, "library.py": tables})).contexts
    assert table not in now.world.contexts


def test_what_rests_on_an_answer_about_all_files_is_looked_into_again_when_that_changes(tmp_path: Path) -> None:
    files = {**FILES, "bodies.py": "def body(carry, _):\n    return carry.at[0].set(carry[1]), None\n"}
    loop = "\nfrom bodies import body\n\ndef roll(x):\n    return jax.lax.scan(body, x, None, 9)\n"
    found, _ = changed(tmp_path, LIBRARY + loop, files)
    assert found == {"library.py", "bodies.py"}


def test_what_no_file_named_is_looked_into_again_when_one_does(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    least = "import jax.numpy as jnp\n\ndef least(d):\n    return d[jnp.argmin(d)]\n"
    before = LIBRARY + "\nfrom experiments.least import most\n"
    files = {**FILES, "library.py": before, "experiments/__init__.py": "", "experiments/least.py": least}
    found, _ = changed(tmp_path, before + "from experiments.least import least\n", files)
    assert found == {"library.py", "least.py"}
