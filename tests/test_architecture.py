"""The house keeps its shape: imports run one way, and `check` never imports jax."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fusionlint"
# Each room, and the rooms it may import from besides itself.
ROOMS = {
    "branches": set(),
    "finding": set(),
    "config": {"left_out"},
    "left_out": {"lazily"},
    "page": {"finding", "lazily"},
    "installed": set(),
    "lazily": set(),
    "rule": {"finding", "installed", "page"},
    "source": {"finding", "lazily", "left_out", "rule"},
    "hlo": {"branches", "pinned"},
    "patterns": {"finding", "lazily", "rule", "source", "hlo"},
    "rules": {"finding", "lazily", "rule", "source", "hlo", "patterns"},
    "recording": set(),
    "compiling": {"pinned", "recording"},
    "merging": {"compiling", "recording"},
    "stages": {"hlo", "compiling"},
    "trials": {"finding", "explained"},
    "explained": {"finding", "rule", "hlo", "compiling", "stages", "trials"},
    "tasks": {"rule", "hlo", "compiling", "recording", "explained"},
    "recorded": {"rule", "compiling", "folders", "recording", "explained", "tasks"},
    "retrying": {"compiling", "config", "explained", "finding", "recorded", "recording", "tasks", "trials", "trying"},
    "baseline": {"finding", "config", "source"},
    "evidence": {"branches", "finding"},
    "packages": {"finding", "lazily", "source"},
    "checking": {"finding", "config", "rule", "source", "compiling", "baseline", "evidence", "packages"},
    "trying": {"checking", "config", "finding", "source", "compiling", "explained", "tasks", "trials"},
    "diff": {"branches"},
    "folders": set(),
    "revisions": {"compiling"},
    "report": {
        *("branches", "finding", "source", "hlo", "compiling", "recording", "explained", "stages", "recorded", "diff"),
        *("folders", "trials"),
    },
    "diffing": {"diff", "recorded", "recording", "report", "revisions"},
    "serving": {"finding", "rule", "source", "compiling"},
    "cli": {"commands"},
    "commands": {
        *("config", "rule", "source", "compiling", "recording", "explained", "tasks", "recorded", "report", "hlo"),
        *("baseline", "checking", "diff", "diffing", "finding", "revisions", "retrying", "serving", "trying"),
    },
    "__main__": {"cli"},
    "capturing": {"rule", "compiling", "recording", "recorded"},
    "explaining": {"rule", "compiling", "recording", "explained", "tasks", "recorded", "retrying"},
    "budgets": {"recording", "explained", "recorded", "report"},
    "pytesting": {"config", "rule", "recording", "merging", "compiling", "recorded", "explaining", "budgets", "report"},
    "__init__": {"finding", "recording", "capturing"},
}
# Each folder of `patterns/`, and the folders there that it may ask besides itself.
PATTERNS = {
    "code": set(),
    "compiled": set(),
    "values": {"code"},
    "runs": {"code", "values"},
    "branches": {"code", "values", "runs"},
    "operations": {"code", "values", "runs"},
    "loops": {"code", "values", "runs", "branches", "operations"},
    "writes": {"code", "values", "runs", "loops"},
    "dispatch": {"code", "values", "runs", "loops"},
    "callbacks": {"code", "values", "runs", "loops", "dispatch"},
    "donation": {"code", "values", "runs", "loops", "dispatch"},
}
# Rules are found by the module that defines what a rule is, and a Report prints itself: both when they are asked to.
ASKED_BACK = {("rule", "rules"), ("explained", "report")}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules imported anywhere in a file, but for those that only type checkers import."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "fusionlint")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    for name in imports(ast.parse(path.read_text())):
        head, _, rest = name.partition(".")
        if head == "fusionlint" and rest:
            there = rest.partition(".")[0]
            assert there == here or there in ROOMS[here] or (here, there) in ASKED_BACK, name
        if head in ("jax", "jaxlib"):
            assert here == "compiling"
        if head == "libcst":
            assert here in ("source", "patterns", "rules")


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "patterns").glob("*/*.py")), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_patterns_ask_each_other_one_way(path: Path) -> None:
    here = path.parent.name
    for name in imports(ast.parse(path.read_text())):
        if name.startswith("fusionlint.patterns."):
            there = name.split(".")[2]
            assert there == here or there in PATTERNS[here], name


def test_every_pattern_has_a_folder_for_its_question() -> None:
    assert [path.name for path in (PACKAGE / "patterns").glob("*.py")] == ["__init__.py"]
    assert {path.parent.name for path in (PACKAGE / "patterns").glob("*/__init__.py")} == PATTERNS.keys()


def test_sub_packages_hold_no_logic_of_their_own() -> None:
    packages = [*PACKAGE.glob("*/**/__init__.py")]
    assert len(packages) > 8
    for path in packages:
        tree = ast.parse(path.read_text())
        assert len(tree.body) == (ast.get_docstring(tree) is not None), path


def test_every_module_of_rules_is_a_rule() -> None:
    for path in (PACKAGE / "rules").glob("[!_]*.py"):
        assert "rule = Rule(__name__" in path.read_text(), path
    assert [path.name for path in (PACKAGE / "rules").glob("_*.py")] == ["__init__.py"]


def test_what_rules_remember_of_a_project_is_remembered_by_the_project() -> None:
    """A cache of functools gives an answer to a file of which nobody notes then what that answer was made of."""
    for path in (*(PACKAGE / "rules").glob("*.py"), *(PACKAGE / "patterns").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any("cache" in ast.unparse(d) for d in node.decorator_list):
                assert "Project" not in ast.unparse(node.args), f"{path}:{node.lineno}: of_project or remembered fits"


def test_check_never_imports_jax(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import jax\njax.numpy.zeros(3).at[0].set(1)\n")
    program = "import sys; from fusionlint.cli import main\ntry: main(['check', '.'])\nexcept SystemExit: pass\n"
    program += "assert not {'jax', 'jaxlib', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_check_does_not_run_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    subprocess.run([sys.executable, "-m", "fusionlint", "check", "."], cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / "ran").exists()
