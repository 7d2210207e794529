"""`fusionlint check` reads whole projects that others wrote, each in one run."""

from __future__ import annotations

import json
from pathlib import Path

from projects import Checked

# Several times what the slowest takes on a busy core: this catches work that grows with the square of a file.
SECONDS_PER_1000_LINES = 3.0


def test_a_project_is_read_in_one_run_without_a_crash(checked: Checked) -> None:
    assert "Traceback" not in checked.done.stderr
    said = json.loads(checked.done.stdout)
    assert said["version"] == 1
    assert said["errors"] == []
    assert checked.done.returncode == (1 if said["findings"] else 0)


def test_a_project_is_read_while_one_waits(checked: Checked) -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in checked.folder.rglob("*.py"))
    assert checked.seconds < 5 + SECONDS_PER_1000_LINES * lines / 1000


def test_every_finding_points_at_text_that_is_there(checked: Checked) -> None:
    for finding in json.loads(checked.done.stdout)["findings"]:
        lines = Path(finding["path"]).read_text(encoding="utf-8").splitlines()
        begin, end = (finding["line"], finding["column"]), (finding["end_line"], finding["end_column"])
        assert (1, 1) <= begin < end, finding
        assert end[0] <= len(lines), finding
        assert begin[1] <= len(lines[begin[0] - 1]), finding
        assert end[1] <= len(lines[end[0] - 1]) + 1, finding
