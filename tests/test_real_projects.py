"""`fusionlint check` reads whole projects that others wrote, each in one run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import package_index
import projects
import pytest

# Several times what the slowest takes on a busy core: this catches work that grows with the square of a file.
SECONDS_PER_1000_LINES = 3.0


@dataclass(frozen=True)
class Run:
    folder: Path
    done: subprocess.CompletedProcess[str]
    seconds: float


@pytest.fixture(scope="module", params=projects.PROJECTS)
def run(request: pytest.FixtureRequest) -> Run:
    project = projects.PROJECTS[request.param]
    if not projects.cached(project).exists():
        package_index.require()
    folder = projects.fetch(project)
    command = [sys.executable, "-m", "fusionlint", "check", "--output-format", "json", folder]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Run(folder, done, time.monotonic() - began)


def test_a_project_is_read_in_one_run_without_a_crash(run: Run) -> None:
    assert "Traceback" not in run.done.stderr
    said = json.loads(run.done.stdout)
    assert said["version"] == 1
    assert said["errors"] == []
    assert run.done.returncode == (1 if said["findings"] else 0)


def test_a_project_is_read_while_one_waits(run: Run) -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in run.folder.rglob("*.py"))
    assert run.seconds < 5 + SECONDS_PER_1000_LINES * lines / 1000


def test_every_finding_points_at_text_that_is_there(run: Run) -> None:
    for finding in json.loads(run.done.stdout)["findings"]:
        lines = Path(finding["path"]).read_text(encoding="utf-8").splitlines()
        begin, end = (finding["line"], finding["column"]), (finding["end_line"], finding["end_column"])
        assert (1, 1) <= begin < end, finding
        assert end[0] <= len(lines), finding
        assert begin[1] <= len(lines[begin[0] - 1]), finding
        assert end[1] <= len(lines[end[0] - 1]) + 1, finding
