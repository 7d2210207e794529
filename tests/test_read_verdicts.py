"""benchmarks/verdicts.py holds what people said of findings against what `check` finds now."""

from __future__ import annotations

import json
from pathlib import Path

import labels


def row(line: int, verdict: str, repo: str = "us/ours") -> dict[str, object]:
    return {"repo": repo, "path": "m.py", "line": line, "rule": "sort-for-max", "verdict": verdict, "why": "."}


def told(tmp_path: Path, *files: list[dict[str, object]]) -> str:
    rounds = {f"round{number}": rows for number, rows in enumerate(files)}
    return labels.told("verdicts.py", tmp_path, rounds, "--page", str(tmp_path / "page.md"))


def test_what_is_found_no_more_counts_as_read_alone(tmp_path: Path) -> None:
    said = told(tmp_path, [row(6, "act"), row(10, "wrong"), row(3, "wrong"), row(6, "act", repo="them/theirs")])
    assert "- read: 1 of 3 right (33%)" in said
    assert "- still found: 1 of 2 right (50%)" in said
    assert "| sort-for-max | 1, 0, 2 | 1, 0, 1 | 50% |" in said
    page = (tmp_path / "page.md").read_text()
    assert all(line in page for line in said.splitlines())


def test_of_a_place_that_was_read_twice_the_last_verdict_counts(tmp_path: Path) -> None:
    said = told(tmp_path, [row(6, "wrong"), row(10, "agree")], [row(6, "agree")])
    assert "- read: 2 of 3 right (67%)" in said
    assert "- still found: 2 of 2 right (100%)" in said
    assert "| round0 | 0, 1, 1 | 50% | |" in said


def test_a_round_counts_as_it_was_read_though_its_projects_are_not_there(tmp_path: Path) -> None:
    said = told(tmp_path, [row(6, "act")], [row(6, "wrong", repo="them/theirs"), row(8, "agree", repo="them/theirs")])
    assert "| round1 | 0, 1, 1 | 50% | |" in said
    assert "| all | 1, 1, 1 | 67% | |" in said
    assert "- read: 1 of 1 right (100%)" in said


def test_what_the_rounds_were_drawn_from_is_told_of_every_round_that_is_kept() -> None:
    folder = Path(__file__).parents[1] / "benchmarks" / "read"
    told_of = json.loads((folder / "rounds.json").read_text(encoding="utf-8"))
    assert sorted(told_of) == sorted(path.stem for path in folder.glob("round*.jsonl"))
