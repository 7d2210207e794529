"""Rules that another package brings, installed as CONTRIBUTING says: a folder of modules, pages and an entry point."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
_FILE = re.compile(r"<!-- file: (\S+) -->\n(`{3,})\w*\n(.*?)^\2$", re.M | re.S)
_ENTRY = re.compile(r"<!-- plugin: pyproject.toml -->\n```toml\n\[project.entry-points.\"(.+)\"\]\n(.+?)```", re.S)
TABLE = "\n\n| target | launches |\n|---|---|\n| h100 | 2 -> 1 |\n"
CODE = "import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.linalg.norm(x) ** 2\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """site-packages with the package that CONTRIBUTING describes, as pip would leave it; the page is measured."""
    site = tmp_path / "site"
    rules = site / "our_package" / "fusion_rules"
    rules.mkdir(parents=True)
    (site / "our_package" / "__init__.py").touch()
    (rules / "__init__.py").touch()
    shown = {Path(name).name: text for name, _, text in _FILE.findall(CONTRIBUTING)}
    (rules / "norm_squared.py").write_text(shown["norm_squared.py"])
    page = shown["norm-squared.md"]
    (rules / "norm-squared.md").write_text(page.replace("```\n\n## Not meant", f"```{TABLE}\n## Not meant"))
    entry = _ENTRY.search(CONTRIBUTING)
    assert entry
    info = site / "our_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{entry[1]}]\n{entry[2].replace(chr(34), '')}")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "model.py").write_text(CODE)
    return site


def fusionlint(installed: Path, *arguments: str, inside: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    where = inside or installed.parent / "work"
    command = [sys.executable, "-m", "fusionlint", *arguments]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)


def test_a_rule_from_elsewhere_finds_what_it_is_for_and_quotes_its_page(installed: Path) -> None:
    done = fusionlint(installed, "check", "model.py")
    assert done.stdout.startswith("model.py:5:12: norm-squared")
    assert "h100 2 -> 1" in done.stdout
    assert done.returncode == 1


def test_a_rule_from_elsewhere_is_listed_selected_ignored_and_shown(installed: Path) -> None:
    assert "norm-squared" in fusionlint(installed, "rule").stdout
    assert fusionlint(installed, "rule", "norm-squared").stdout.startswith("# norm-squared")
    assert "norm-squared" in fusionlint(installed, "check", "--select", "norm-squared").stdout
    assert fusionlint(installed, "check", "--ignore", "norm-squared").returncode == 0


def test_a_rule_from_elsewhere_speaks_only_for_the_targets_of_its_table(installed: Path) -> None:
    assert fusionlint(installed, "check", "--target", "h100").returncode == 1
    assert fusionlint(installed, "check", "--target", "v5e").returncode == 0


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("norm_squared.py", "import a_module_that_is_missing\n", "No module named 'a_module_that_is_missing'"),
        ("norm-squared.md", None, "has no page norm-squared.md"),
        (
            "columns_by_at_set.py",
            "from fusionlint.rules.columns_by_at_set import rule\n",
            "is a rule 'columns-by-at-set'",
        ),
    ],
)
def test_rules_that_cannot_be_used_are_one_line_and_the_others_go_on(
    installed: Path, file: str, text: str | None, why: str
) -> None:
    broken = installed / "our_package" / "fusion_rules" / file
    broken.unlink() if text is None else broken.write_text(text)
    (installed.parent / "work" / "model.py").write_text(
        "import jax.numpy as jnp\n\n\ndef f(x, v):\n    return jnp.zeros((8, 2)).at[:, 0].set(x).at[:, 1].set(v)\n"
    )
    done = fusionlint(installed, "check", "model.py")
    assert done.stdout.startswith("model.py:5:12: columns-by-at-set")
    (line,) = done.stderr.splitlines()
    assert line.startswith("our_package.fusion_rules: its rules cannot be used: ")
    assert why in line
    assert done.returncode == 1


def test_what_lies_in_the_working_folder_is_not_imported(installed: Path) -> None:
    (installed / "our_package" / "fusion_rules" / "norm_squared.py").write_text("open('ran', 'w')\n")
    done = fusionlint(installed, "check", ".", inside=installed)
    assert done.stderr == ""
    assert not (installed / "ran").exists()
