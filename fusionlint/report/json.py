"""[Finding] -> JSON, version 1. Fields may be added, not renamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fusionlint.finding import Edit, Finding, Suggestion

if TYPE_CHECKING:
    from fusionlint.checking import Outcome


def findings_json(outcome: Outcome) -> str:
    """`{"version": 1, "findings": [...], "errors": [...]}`; columns are 1-based, the end column exclusive."""
    document: dict[str, Any] = {
        "version": 1,
        "findings": [_finding(f) for f in outcome.findings],
        "errors": [p._asdict() for p in outcome.problems],
        "warnings": [w._asdict() for w in outcome.warnings],
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
        **finding.location._asdict(),
        "message": finding.message,
        "targets": list(finding.targets),
        "suggestion": _suggestion(finding.suggestion) if finding.suggestion else None,
        "evidence": [m._asdict() for m in finding.evidence],
        "confirmed": [one._asdict() for one in finding.confirmed],
        "refuted": list(finding.refuted),
        "stack": [where._asdict() for where in finding.stack],
        "assumed": finding.assumed,
    }


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    return {"text": suggestion.text, "safe": suggestion.safe, "edits": [_edit(e) for e in suggestion.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {**edit.location._asdict(), "text": edit.text}
