"""The hooks of .pre-commit-hooks.yaml do their work when pre-commit itself installs and runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import package_index
import pytest

ROOT = Path(__file__).parents[1]

HAZARD = """\
import jax.numpy as jnp


def turn(s):
    return jnp.zeros((1024, 2)).at[:, 0].set(jnp.sin(s[:, 1])).at[:, 1].set(-s[:, 0])
"""

CLEAN = """\
import jax.numpy as jnp


def turn(s):
    return jnp.stack([jnp.sin(s[:, 1]), -s[:, 0]], axis=1)
"""


@dataclass(frozen=True)
class Hooks:
    """This repository as pre-commit wants it, and the environment to run in: PRE_COMMIT_HOME is a folder of ours."""

    repository: Path
    revision: str
    environment: dict[str, str]


def git(*arguments: str, cwd: Path, env: dict[str, str]) -> str:
    command = ["git", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """The working tree, committed to a repository of its own: pre-commit installs commits only."""
    package_index.require()
    person = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    # Run from a git hook, this process would have GIT_DIR and the like point at the repository being committed to.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = outside | person | {"PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit"))}
    repository = tmp_path_factory.mktemp("fusionlint")
    for name in git("ls-files", "-co", "--exclude-standard", cwd=ROOT, env=outside).splitlines():
        if (ROOT / name).is_file():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, repository / name)
    return Hooks(repository, commit(repository, environment), environment)


def commit(repository: Path, env: dict[str, str]) -> str:
    git("init", "--quiet", cwd=repository, env=env)
    git("add", "--all", cwd=repository, env=env)
    git("commit", "--quiet", "--message", "all", cwd=repository, env=env)
    return git("rev-parse", "HEAD", cwd=repository, env=env)


def run(hooks: Hooks, hook: str, project: Path, code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run one hook in a repository whose only Python file is env.py."""
    (project / "env.py").write_text(code)
    (project / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: {hooks.repository}, rev: {hooks.revision}, hooks: [{{id: {hook}, args: {list(args)}}}]}}]\n"
    )
    commit(project, hooks.environment)
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"]
    return subprocess.run(command, cwd=project, env=hooks.environment, capture_output=True, text=True, check=False)


def test_check_fails_on_a_hazard_and_names_it(hooks: Hooks, tmp_path: Path) -> None:
    done = run(hooks, "fusionlint", tmp_path, HAZARD)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "env.py:5:" in done.stdout
    assert "columns-by-at-set" in done.stdout
    assert (tmp_path / "env.py").read_text() == HAZARD


def test_check_passes_clean_code(hooks: Hooks, tmp_path: Path) -> None:
    done = run(hooks, "fusionlint", tmp_path, CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_fix_leaves_alone_what_could_change_a_result(hooks: Hooks, tmp_path: Path) -> None:
    assert run(hooks, "fusionlint-fix", tmp_path, HAZARD).returncode == 1
    assert (tmp_path / "env.py").read_text() == HAZARD


def test_fix_rewrites_the_file_and_has_nothing_more_to_say(hooks: Hooks, tmp_path: Path) -> None:
    done = run(hooks, "fusionlint-fix", tmp_path, HAZARD, "--unsafe-fixes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "files were modified by this hook" in done.stdout
    fixed = (tmp_path / "env.py").read_text()
    assert fixed == CLEAN

    again = tmp_path / "again"
    again.mkdir()
    assert run(hooks, "fusionlint-fix", again, fixed).returncode == 0
