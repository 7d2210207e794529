"""CONTRIBUTING's "add a rule in ten minutes", done as it is written there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compilers

ROOT = Path(__file__).parents[1]
_FILE = re.compile(r"<!-- file: (\S+) -->\n(`{3,})\w*\n(.*?)^\2$", re.M | re.S)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the two files that CONTRIBUTING shows."""
    copy = tmp_path_factory.mktemp("checkout")
    half_written = "*.pyc.*"  # by another process; what is compiled already need not be again
    for name in ("fusionlint", "rules", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(half_written, "hlo*.txt"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    shown = {name: text for name, _, text in _FILE.findall((ROOT / "CONTRIBUTING.md").read_text())}
    assert set(shown) == {"rules/norm-squared.md", "fusionlint/rules/norm_squared.py"}
    for name, text in shown.items():
        (copy / name).write_text(text)
    return copy


def run(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run([sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True)


def test_a_newcomers_rule_is_measured_and_passes(checkout: Path) -> None:
    tests = ["-m", "pytest", "-q", "tests/test_pages.py", "-k", "norm-squared"]
    updated = run(checkout, *tests, "--update-pages")
    assert updated.returncode == 0, updated.stdout
    assert "| cpu |" in (checkout / "rules" / "norm-squared.md").read_text()
    passed = run(checkout, *tests)
    assert passed.returncode == 0, passed.stdout


def test_the_rule_is_listed_and_finds_what_it_is_for(checkout: Path) -> None:
    (checkout / "try.py").write_text("import jax.numpy as np\n\n\ndef f(x):\n    return np.linalg.norm(x) ** 2\n")
    assert "norm-squared" in run(checkout, "-m", "fusionlint", "rule").stdout
    found = run(checkout, "-m", "fusionlint", "check", "try.py", "--select", "norm-squared").stdout
    assert found.startswith("try.py:5:12: norm-squared")
