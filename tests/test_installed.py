"""What is installed is known as importlib.metadata knows it, without importing that for nothing."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint.installed import entry_points, version

# What takes long to import.
NOT_NEEDED = {"importlib.metadata", "multiprocessing", "email", "pathspec", "libcst._nodes", "tomllib"}


def test_a_version_is_the_one_that_importlib_knows() -> None:
    assert version("libcst") == importlib.metadata.version("libcst")


def test_a_package_that_is_not_installed_has_no_version() -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        version("no-such-package-anywhere")


def test_entry_points_are_those_that_importlib_knows() -> None:
    assert [point.value for point in entry_points("pytest11") if point.name == "fusionlint"] == [
        "fusionlint.pytesting.plugin"
    ]
    assert entry_points("no.such.group") == []


def test_a_file_is_checked_without_what_only_many_files_or_other_packages_need(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import jax\n")
    program = "import sys\nfrom fusionlint.cli import main\ntry: main(['check', 'a.py', '--no-cache'])\n"
    program += "except SystemExit: pass\n"
    program += f"print(sorted({NOT_NEEDED!r} & {{*sys.modules}}))"
    site = [path for path in sys.path if path and Path(path) != Path.cwd()]
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],  # site would import what its .pth files ask for
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *site])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
