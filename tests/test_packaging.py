"""What `pip install fusionlint` brings: little, and all that `check` and `rule` need."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import package_index
import pytest

ROOT = Path(__file__).parents[1]
MEGABYTE = 10**6
# click, libcst and pathspec, and what these bring, whatever the version of Python.
BROUGHT = {"click", "libcst", "pathspec", "pyyaml", "pyyaml-ft", "typing-extensions", "typing-inspect"}
BROUGHT |= {"mypy-extensions", "tomli", "fusionlint", "pip", "setuptools"}

HAZARD = """\
import jax.numpy as jnp


def turn(s):
    return jnp.zeros((1024, 2)).at[:, 0].set(jnp.sin(s[:, 1])).at[:, 1].set(-s[:, 0])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package_index.require()
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(pip, check=True)
    (built,) = folder.glob("fusionlint-*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a fresh environment that holds the wheel, without any extra."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True)
    found = home / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run([found / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    return found


def fusionlint(scripts: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([scripts / "fusionlint", *arguments], capture_output=True, text=True, check=False)


def test_every_page_is_in_the_wheel(wheel: Path) -> None:
    pages = {path.name for path in (ROOT / "rules").glob("*.md")}
    assert pages
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"fusionlint/pages/{page}" for page in pages} <= names
    assert "fusionlint/py.typed" in names


def test_installing_brings_neither_jax_nor_anything_unexpected(scripts: Path) -> None:
    command = [scripts / "python", "-m", "pip", "list", "--format", "json"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert {package["name"].lower().replace("_", "-") for package in listed} <= BROUGHT


def test_the_environment_stays_small(scripts: Path) -> None:
    installed = [path for path in scripts.parent.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in installed) < 60 * MEGABYTE


def test_it_tells_its_version(scripts: Path, wheel: Path) -> None:
    done = fusionlint(scripts, "--version")
    assert wheel.name.split("-")[1] in done.stdout


def test_it_prints_its_pages_without_jax(scripts: Path) -> None:
    listed = fusionlint(scripts, "rule")
    assert listed.returncode == 0, listed.stderr
    assert all(path.stem in listed.stdout for path in (ROOT / "rules").glob("*.md"))
    page = fusionlint(scripts, "rule", "columns-by-at-set")
    assert page.returncode == 0, page.stderr
    assert "```python bad" in page.stdout


def test_it_checks_a_file_without_jax(scripts: Path, tmp_path: Path) -> None:
    code = tmp_path / "env.py"
    code.write_text(HAZARD)
    done = fusionlint(scripts, "check", "--output-format", "concise", code)
    assert done.returncode == 1, done.stderr
    assert "columns-by-at-set" in done.stdout


def test_it_says_what_to_install_where_a_compiler_is_needed(scripts: Path, tmp_path: Path) -> None:
    code = tmp_path / "env.py"
    code.write_text(HAZARD)
    done = fusionlint(scripts, "explain", f"{code}:turn(f32[1024,2])")
    assert done.returncode == 2
    assert "fusionlint[explain]" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
