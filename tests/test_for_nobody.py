"""Of code that nobody runs in earnest nothing is said: cases of a table, private functions that nothing names, files
that cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("argmax-then-pick",))
HEAD = "import jax, jax.numpy as jnp\n"


def found(code: str) -> int:
    return len(check_text((HEAD + code).encode(), "m.py", ONLY))


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ('CASES = [{"callable": lambda d: d[jnp.argmin(d)], "shapes": [(3,)]}]', 0),
        ("@register(cases=[dict(callable=lambda d: d[jnp.argmin(d)], shapes=[(3,)])])\nclass Plugin: ...", 0),
        ('RANKS = {"least": lambda d: d[jnp.argmin(d)]}', 1),  # somebody may choose it
        ("least = lambda d: d[jnp.argmin(d)]", 1),
        ('def cases():\n    return [{"callable": lambda d: d[jnp.argmin(d)]}]', 1),
    ],
)
def test_cases_of_a_table_run_once(table: str, count: int) -> None:
    assert found(table + "\n") == count


LEAST = "def _least(d):\n    return d[jnp.argmin(d)]\n"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (LEAST, 0),
        (LEAST + "def _both(d):\n    return _least(d) + _least(-d)\n", 0),
        (LEAST + "def both(d):\n    return _least(d) + _least(-d)\n", 1),
        (LEAST + "mapped = jax.vmap(_least)\n", 1),
        (LEAST + '__all__ = ["_least"]\n', 1),
        ("@jax.jit\n" + LEAST, 1),
        (LEAST.replace("_least", "least"), 1),
    ],
)
def test_a_private_function_that_nothing_names_is_dead(code: str, count: int) -> None:
    assert found(code) == count


MODEL = "def model(d):\n    return d[jnp.argmin(d)]\n"
CALLED = "register(name='least', testcases=[{'callable': model, 'shapes': [(3,)]}])\n"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (MODEL + CALLED, 0),
        (MODEL + CALLED.replace("model", "lambda d: model(-d)"), 0),
        (MODEL + 'CASES = [{"callable": made(model, layers=1)}, {"callable": model}]\n', 0),
        ("class model:\n    def __call__(self, d):\n        return d[jnp.argmin(d)]\n" + CALLED, 0),
        (MODEL + "def _both(d):\n    return model(d) + model(-d)\n" + CALLED.replace("model", "_both"), 0),
        (MODEL + "def both(d):\n    return model(d) + model(-d)\n" + CALLED, 1),
        (MODEL + CALLED + "least = jax.jit(model)\n", 1),
        (MODEL + CALLED.replace("testcases", "choices"), 1),  # somebody may choose it
        (MODEL + "register(testcases=[model])\n", 1),
        (MODEL, 1),
    ],
)
def test_what_only_cases_name_runs_once(code: str, count: int) -> None:
    assert found(code) == count


@pytest.mark.parametrize(
    "other", ["from one import _least\ndef most(d):\n    return _least(-d)\n", "import one\nx = one._least(y)\n"]
)
def test_what_another_file_calls_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"one.py": HEAD + LEAST, "two.py": other}
    for name, text in files.items():
        Path(name).write_text(text)
    assert len(check_files([Path(name) for name in files], ONLY).findings) == 1


def found_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> int:
    """How much is found in a project of these files."""
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return len(check_files([Path(name) for name in files if name.endswith(".py")], ONLY).findings)


LEAST_OF = "def least(d):\n    return d[jnp.argmin(d)]\n"
OTHER = "from p.experiments.least import most\n"


@pytest.mark.parametrize(
    ("path", "code", "other", "count"),
    [
        ("p/experiments/least.py", LEAST_OF, OTHER, 0),
        ("p/experiments/least.py", "@jax.jit\n" + LEAST_OF, OTHER, 0),
        ("p/experiments/least.py", LEAST_OF + "def both(d):\n    return least(d) + least(-d)\n", OTHER, 0),
        ("p/experiments/least.py", LEAST_OF, "", 1),  # who imports it at all?
        ("p/least.py", LEAST_OF, "from p.least import most\n", 1),  # a user may call it
        ("p/experiments/least.py", "@register\n" + LEAST_OF, OTHER, 1),
        ("p/experiments/least.py", LEAST_OF, "from p.experiments.least import least\n", 1),
        ("p/experiments/least.py", LEAST_OF, "from p.experiments.least import *\n", 1),
        ("p/experiments/least.py", LEAST_OF, "import p.experiments.least as l\nf = l.least\n", 1),
        ("p/experiments/least.py", LEAST_OF + "chosen = {'a': least}\n", OTHER, 1),
        ("p/experiments/least.py", LEAST_OF.replace("least", "run"), OTHER, 1),  # where a script begins
    ],
)
def test_of_an_experiment_a_function_that_nothing_names_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: str, other: str, count: int
) -> None:
    files = {
        "setup.py": "",
        "p/__init__.py": "",
        "p/experiments/__init__.py": "",
        path: HEAD + code,
        "p/other.py": other,
    }
    assert found_in(tmp_path, monkeypatch, files) == count


@pytest.mark.parametrize(
    ("code", "other", "count"),
    [
        ("from p.other import gone\n", "", 0),
        ("from .other import gone, there\n", "there = 1\n", 0),
        ("from p.between import there\n", "", 0),  # which cannot be imported either
        ("from p.other import gone\n", "gone = 1\n", 1),
        ("from p.other import gone\n", "def gone(): ...\n", 1),
        ("from p.other import gone\n", "from elsewhere import *\n", 1),
        pytest.param(
            *("from p.other import gone\n", "type gone = int\n", 1),
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="no such statement"),
        ),
        ("from p.other import gone\n", "def __getattr__(name): ...\n", 1),
        ("from p.other import gone\n", "globals().update(made())\n", 1),
        ("from p import gone\n", "", 1),  # what a package has besides nobody sees
        ("from p.other import noticed\n", "", 1),  # by who imports the package
        ("from q.other import gone\n", "", 1),
        ("try:\n    from p.other import gone\nexcept ImportError:\n    gone = None\n", "", 1),
        ("def later():\n    from p.other import gone\n", "", 1),
    ],
)
def test_of_a_file_that_cannot_be_imported_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, other: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    between = "from p.other import there, gone as new\n"
    package = "from p.least import least\n" if "noticed" in code else ""
    files = {"__init__": package, "least": code + HEAD + LEAST_OF, "other": other, "between": between}
    Path("p").mkdir()
    for name, text in files.items():
        Path(f"p/{name}.py").write_text(text)
    assert len(check_files([Path(f"p/{name}.py") for name in files], ONLY).findings) == count


GAME = """class Game:
    def step(self, d):
        return d + 1

    def {name}(self, d):
        return d[jnp.argmin(d)]
"""


def of_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, other: str, packaging: str | None) -> int:
    """How much is found in one file, from which another imports."""
    files = {packaging: ""} if packaging is not None else {}
    files |= {"p/__init__.py": "", "p/one.py": HEAD + code, "p/two.py": other}
    return found_in(tmp_path, monkeypatch, files)


@pytest.mark.parametrize(("packaging", "count"), [(None, 0), ("pyproject.toml", 1), ("setup.py", 1), ("setup.cfg", 0)])
@pytest.mark.parametrize(
    ("code", "other"),
    [
        (LEAST_OF, "from p.one import most\n"),
        (GAME.format(name="least"), "from p.one import Game\ngame = Game().step(0)\n"),
    ],
)
def test_what_nothing_names_is_dead_where_nobody_else_can_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packaging: str | None, count: int, code: str, other: str
) -> None:
    assert of_two_files(tmp_path, monkeypatch, code, other, packaging) == count


def test_of_an_experiment_in_a_library_a_user_calls_the_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"setup.py": "", "p/__init__.py": "", "p/baselines/__init__.py": ""}
    files |= {"p/baselines/one.py": HEAD + GAME.format(name="least"), "p/two.py": "from p.baselines.one import Game\n"}
    assert found_in(tmp_path, monkeypatch, files) == 1


@pytest.mark.parametrize(("users", "count"), [(4, 0), (5, 1)])
def test_from_what_many_files_import_a_fork_may_use_what_nobody_here_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: int, count: int
) -> None:
    files = {"p/__init__.py": "", "p/one.py": HEAD + LEAST_OF}
    files |= {f"p/user{number}.py": "from p.one import most\n" for number in range(users)}
    assert found_in(tmp_path, monkeypatch, files) == count


@pytest.mark.parametrize(
    ("code", "other", "count"),
    [
        (GAME.format(name="_least"), "", 0),
        (GAME.format(name="__call__"), "", 1),
        (GAME.format(name="_least"), "from p.one import Game\nf = Game()._least\n", 1),
        (GAME.format(name="_least") + "    def other(self, kind):\n        return getattr(self, '_' + kind)\n", "", 1),
        (GAME.format(name="_least").replace("Game:", "Game(Base):"), "", 1),  # which may call it
        ("class Base(abc.ABC):\n    pass\n" + GAME.format(name="_least").replace("Game:", "Game(Base[int]):"), "", 0),
        ("class Base(Other):\n    pass\n" + GAME.format(name="_least").replace("Game:", "Game(Base):"), "", 1),
        ("@dataclass\n" + GAME.format(name="_least"), "", 1),
        (GAME.format(name="_least").replace("    def _", "    @hook\n    def _"), "", 1),
        (GAME.format(name="_least").replace("    def _", "    @jax.jit\n    def _"), "", 0),
        (GAME.format(name="_least") + "    kinds = ['_least']\n", "", 1),
    ],
)
def test_a_private_method_that_nothing_names_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, other: str, count: int
) -> None:
    assert of_two_files(tmp_path, monkeypatch, code, other, "setup.py") == count


LEFT_TO_OTHERS = """class Game:
    def reset(self, key):
        {left}

    def step(self, d):
        return d[jnp.argmin(d)]

class Maze(Game):
    def reset(self, key):
        return key
{own}
"""
ITS_OWN = "\n    def step(self, d):\n        return {}\n"


@pytest.mark.parametrize(
    ("left", "own", "count"),
    [
        ("raise NotImplementedError", ITS_OWN.format("-d"), 0),
        ('"""Begins."""\n        raise NotImplementedError', ITS_OWN.format("-d"), 0),
        ("raise NotImplementedError", ITS_OWN.format("super().step(-d)"), 1),
        ("raise NotImplementedError", ITS_OWN.format("Game.step(self, -d)"), 1),
        ("raise NotImplementedError", ITS_OWN.format("-d") + "class Other(Game): ...", 1),
        ("raise NotImplementedError", "", 1),
        ("return key", ITS_OWN.format("-d"), 1),  # an object of the class may play
    ],
)
def test_a_method_that_all_have_their_own_of_runs_nowhere(left: str, own: str, count: int) -> None:
    assert found(LEFT_TO_OTHERS.format(left=left, own=own)) == count


def test_a_method_of_which_others_have_their_own_may_run_for_a_class_that_is_not_seen() -> None:
    assert found(LEFT_TO_OTHERS.split("class Maze")[0].format(left="raise NotImplementedError")) == 1
