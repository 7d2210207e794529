"""CI's second run has every test that the compilers matter to: one that lacks the mark `compilers` fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
HEAD = """\
import pytest
from fusionlint.compiling import targets

"""
SKIPPED = "def test_one():\n    pytest.skip(\"v5e: pip install 'fusionlint[tpu]'\")\n"
IN_A_FIXTURE = """\
@pytest.fixture(scope="module")
def compiled():
    pytest.skip("v5e: pip install 'fusionlint[tpu]'")

def test_one(compiled): pass
"""
ASKED = 'def test_one():\n    assert targets.missing(targets.get("h100")) != ""\n'
PRETENDED = """\
def test_one(monkeypatch):
    monkeypatch.setattr(targets, "_version", lambda name: None)
    assert targets.missing(targets.get("h100"))
"""
CPU = 'def test_one():\n    assert targets.missing(targets.get("cpu")) is None\n'
MARK = "pytestmark = pytest.mark.compilers\n"


def outcome(folder: Path, code: str, *arguments: str, ci: str = "") -> str:
    """The last line that pytest prints of a file with this code."""
    (folder / "test_it.py").write_text(HEAD + code)
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compilers", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths, "CI": ci}
    done = subprocess.run([*command, "test_it.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("code", [SKIPPED, IN_A_FIXTURE, ASKED])
def test_a_test_that_the_compilers_matter_to_fails_without_the_mark(tmp_path: Path, code: str) -> None:
    assert "1 failed" in outcome(tmp_path, code) or "1 error" in outcome(tmp_path, code)


@pytest.mark.parametrize(("code", "says"), [(SKIPPED, "1 skipped"), (IN_A_FIXTURE, "1 skipped"), (ASKED, "1 passed")])
def test_with_the_mark_it_passes_or_is_skipped(tmp_path: Path, code: str, says: str) -> None:
    assert outcome(tmp_path, MARK + code, ci="1").startswith(says)


def test_where_ci_has_installed_them_nothing_is_skipped_for_want_of_a_compiler(tmp_path: Path) -> None:
    assert "1 failed" in outcome(tmp_path, MARK + SKIPPED, "-m", "compilers", ci="1")
    assert "1 skipped" in outcome(tmp_path, MARK + SKIPPED, "-m", "compilers")


@pytest.mark.parametrize("code", [PRETENDED, CPU])
def test_who_pretends_or_needs_a_cpu_alone_has_no_mark(tmp_path: Path, code: str) -> None:
    assert outcome(tmp_path, code).startswith("1 passed")
