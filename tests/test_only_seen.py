"""What is found in code of which nothing shows how it runs says so, and --only-seen leaves it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import HAZARD, run

TRACED = f"import jax\n{HAZARD}\n\nstep = jax.jit(swap)\n"
LOOP = """\
import jax


@jax.jit
def step(x):
    return x + 1


def advance(x):
    for _ in range(100):
        x = step(x)
    return x
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assumed(*args: str) -> list[bool]:
    """Of each finding whether it assumes how its code runs."""
    return [one["assumed"] for one in json.loads(run("check", "--output-format", "json", *args).stdout)["findings"]]


@pytest.mark.parametrize(
    ("code", "is_assumed"),
    [
        pytest.param(HAZARD, True, id="nobody calls it"),
        pytest.param(TRACED, False, id="it is jitted"),
        pytest.param(LOOP, False, id="a loop over what is compiled, which nobody traces"),
    ],
)
def test_a_finding_says_whether_it_assumes_how_its_code_runs(code: str, is_assumed: bool, folder: Path) -> None:
    (folder / "m.py").write_text(code)
    assert assumed() == [is_assumed]
    assert ("= assumed: " in run("check").stdout) is is_assumed
    assert assumed("--only-seen") == ([] if is_assumed else [False])


def test_of_a_file_that_is_named_the_callers_in_its_project_are_seen(folder: Path) -> None:
    """pre-commit names the files that are to be committed."""
    (folder / "pyproject.toml").touch()
    (folder / "m.py").write_text(HAZARD)
    assert assumed("m.py") == [True]
    (folder / "n.py").write_text("import jax\n\nfrom m import swap\n\nstep = jax.vmap(swap)\n")
    assert assumed("m.py") == assumed("--only-seen", "m.py") == assumed("m.py", "--no-cache") == [False]
    (folder / "n.py").write_text("x = =")
    assert assumed("m.py") == [True]
    assert "n.py" not in run("check", "m.py").stderr
    (folder / "n.py").write_text("import jax\nimport m\n\nstep = jax.vmap(m.swap)\n")
    assert assumed("m.py") == [False]
    (folder / "n.py").unlink()
    assert assumed("m.py") == [True]


def test_of_a_file_that_belongs_to_no_project_nothing_else_is_read(folder: Path) -> None:
    (folder / "m.py").write_text(HAZARD)
    (folder / "n.py").write_text("import jax\n\nfrom m import swap\n\nstep = jax.vmap(swap)\n")
    assert assumed("m.py") == [True]


def test_another_file_that_traces_the_code_shows_how_it_runs(folder: Path) -> None:
    (folder / "m.py").write_text(HAZARD)
    assert assumed() == [True]
    (folder / "n.py").write_text("import jax\n\nfrom m import swap\n\nstep = jax.vmap(swap)\n")
    assert assumed() == [False]


def test_a_project_can_ask_for_what_is_seen_alone(folder: Path) -> None:
    (folder / "m.py").write_text(HAZARD)
    (folder / "pyproject.toml").write_text("[tool.fusionlint]\nonly-seen = true\n")
    assert run("check").exit_code == 0


def test_a_comment_that_silences_what_is_assumed_is_in_use(folder: Path) -> None:
    (folder / "m.py").write_text(HAZARD.rstrip() + "  # fusionlint: ignore[columns-by-at-set]\n")
    assert run("check", "--warn-unused-ignores", "--only-seen").exit_code == 0
