"""[Finding] -> JSON, version 1. Fields may be added, not renamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fusionlint.finding import Edit, Finding, Location, Problem, Suggestion
from fusionlint.report.cells import message_of, spot
from fusionlint.report.text import said

if TYPE_CHECKING:
    from fusionlint.checking import Outcome


def findings_json(outcome: Outcome) -> str:
    """`{"version": 1, "findings": [...], "errors": [...]}`; columns are 1-based, the end column exclusive.

    In a notebook lines are those of the `cell`; cells are counted from 1, those of text too."""
    document: dict[str, Any] = {
        "version": 1,
        "findings": [_finding(f) for f in outcome.findings],
        "errors": [_problem(problem) for problem in outcome.problems],
        "warnings": [_problem(warning) for warning in outcome.warnings],
    }
    if outcome.baseline:
        document["baseline"] = {"path": outcome.baseline, "known": outcome.known, "gone": outcome.gone}
    if outcome.reports:
        confirmed = sum(bool(finding.confirmed) for finding in outcome.findings)
        document["evidence"] = {"reports": outcome.reports, "confirmed": confirmed, "refuted": outcome.refuted}
    return json.dumps(document, indent=2)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        **_place(finding.location),
        "message": finding.message,
        "details": said(finding)[1:],
        "targets": list(finding.targets),
        "suggestion": _suggestion(finding.suggestion) if finding.suggestion else None,
        "evidence": [m._asdict() for m in finding.evidence],
        "confirmed": [one._asdict() for one in finding.confirmed],
        "refuted": list(finding.refuted),
        "stack": [_place(where) for where in finding.stack],
        "assumed": finding.assumed,
    }


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    return {"text": suggestion.text, "safe": suggestion.safe, "edits": [_edit(e) for e in suggestion.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_place(edit.location), "text": edit.text}


def _place(where: Location) -> dict[str, Any]:
    shown = spot(where.path, where.line)
    if shown.cell is None:
        return where._asdict()
    end_line = where.end_line - where.line + shown.line
    return {**where._asdict(), "cell": shown.cell, "line": shown.line, "end_line": end_line}


def _problem(problem: Problem) -> dict[str, Any]:
    shown = spot(problem.path, problem.line) if problem.line else None
    if shown is None or shown.cell is None:
        return problem._asdict()
    return {**problem._asdict(), "cell": shown.cell, "line": shown.line, "message": message_of(problem)}
