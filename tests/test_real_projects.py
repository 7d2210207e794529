"""`fusionlint check` reads whole projects that others wrote, each in one run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import package_index
import projects
import pytest

# The slowest of them, on one busy core, several times over: what this catches is work that grows with a file's square.
SECONDS_PER_1000_LINES = 3.0


@pytest.fixture(params=projects.PROJECTS.values(), ids=projects.PROJECTS.keys())
def project(request: pytest.FixtureRequest) -> Path:
    if not projects.cached(request.param).exists():
        package_index.require()
    return projects.fetch(request.param)


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fusionlint", "check", "--no-cache", "--output-format", "json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_project_is_read_in_one_run_without_a_crash(project: Path) -> None:
    began = time.monotonic()
    done = check(project)
    seconds = time.monotonic() - began

    assert "Traceback" not in done.stderr
    said = json.loads(done.stdout)
    assert said["version"] == 1
    assert done.returncode == (2 if said["errors"] else 1 if said["findings"] else 0)
    lines = sum(path.read_bytes().count(b"\n") for path in project.rglob("*.py"))
    assert seconds < 5 + SECONDS_PER_1000_LINES * lines / 1000


def test_every_finding_points_at_text_that_is_there(project: Path) -> None:
    for finding in json.loads(check(project).stdout)["findings"]:
        lines = Path(finding["path"]).read_text(encoding="utf-8").splitlines()
        begin, end = (finding["line"], finding["column"]), (finding["end_line"], finding["end_column"])
        assert (1, 1) <= begin < end, finding
        assert end[0] <= len(lines), finding
        assert finding["column"] <= len(lines[finding["line"] - 1]), finding
        assert finding["end_column"] <= len(lines[finding["end_line"] - 1]) + 1, finding
