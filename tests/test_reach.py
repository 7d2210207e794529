"""benchmarks/reach.py holds what people labelled before any run against what `check` finds now."""

from __future__ import annotations

from pathlib import Path

import labels


def site(line: int, verdict: str, severity: str = "high", pattern: str = "sort-topk") -> dict[str, object]:
    where = {"repo": "us/ours", "commit": "1", "path": "m.py", "line": line, "end_line": line}
    return {**where, "pattern": pattern, "verdict": verdict, "severity": severity, "why": f"line {line}"}


def told(tmp_path: Path, sites: list[dict[str, object]], *options: str) -> str:
    return labels.told("reach.py", tmp_path, {"sites0": sites}, *options, other=3)


def test_found_are_hazards_and_lookalikes_that_a_finding_overlaps(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    sites = [
        site(6, "hazard"),
        site(5, "hazard", "low"),  # one line of slack
        site(10, "hazard", "medium"),
        site(10, "benign-lookalike", "low"),
        {**site(6, "hazard"), "repo": "them/theirs"},
    ]
    said = told(tmp_path, sites, "--page", str(page))
    assert "| sites0 | 1 | 1 of 1 | 0 of 1 | 1 of 1 | 0 of 1 |" in said
    assert said.strip() in page.read_text()


def test_what_no_pattern_shows_does_not_count(tmp_path: Path) -> None:
    said = told(tmp_path, [site(10, "hazard", pattern="dtype-upcast"), site(6, "hazard")])
    assert "| sites0 | 1 | 1 of 1 | 0 of 0 | 0 of 0 | 0 of 0 |" in said


def test_missed_hazards_and_false_alarms_are_listed(tmp_path: Path) -> None:
    sites = [site(6, "benign-lookalike"), site(10, "hazard")]
    assert "us/ours/m.py:10 [sort-topk] line 10" in told(tmp_path / "a", sites, "--show", "missed")
    assert "us/ours/m.py:6 [sort-topk] line 6" in told(tmp_path / "b", sites, "--show", "alarms")
