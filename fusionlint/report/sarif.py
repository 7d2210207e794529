"""[Finding] -> SARIF 2.1.0, the format that code hosts and editors read findings of any tool in.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fusionlint.finding import MAY_CHANGE, Edit, Finding, Location, Problem, Suggestion
from fusionlint.report.cells import before, line_in_file, message_of
from fusionlint.report.paths import from_top
from fusionlint.report.text import said
from fusionlint.source.fix import lines_of
from fusionlint.source.texts import is_notebook, text_of

if TYPE_CHECKING:
    from fusionlint.checking import Outcome

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The name by which GitHub knows the folder that relative paths start from.
_BASE = "%SRCROOT%"


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a reader is told of a rule: its name, its kind of harm, one sentence, and the page."""

    name: str
    harm: str
    summary: str
    page: str


def findings_sarif(outcome: Outcome, rules: Sequence[RuleText], version: str, top: Path) -> str:
    """One run of `rules`; `top` is the folder that paths are given from."""
    index = {rule.name: i for i, rule in enumerate(rules)}
    driver = {
        "name": "fusionlint",
        "version": version,
        "rules": [_rule(rule) for rule in rules],
    }
    notes = [_notification(problem, "error", top) for problem in outcome.problems]
    notes += [_notification(warning, "warning", top) for warning in outcome.warnings]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "originalUriBaseIds": {_BASE: {"uri": f"{top.as_uri().rstrip('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(outcome.findings, index, top)),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: RuleText) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": [rule.harm]},
    }


def _results(findings: Iterable[Finding], index: dict[str, int], top: Path) -> Iterator[dict[str, Any]]:
    for path, group in groupby(findings, lambda f: f.location.path):
        lines = lines_of(text_of(path))
        seen: Counter[str] = Counter()
        for finding in group:
            mark = _fingerprint(finding, lines)
            seen[mark] += 1
            yield _result(finding, index, f"{mark}:{seen[mark]}", top)


def _result(finding: Finding, index: dict[str, int], mark: str, top: Path) -> dict[str, Any]:
    suggestion = finding.suggestion
    path, line = finding.location[:2]
    fixes = [_fix(suggestion, top)] if suggestion and suggestion.edits and not is_notebook(path) else []
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": "note" if finding.assumed else "warning",
        "message": _message(before(path, line) + "\n".join(said(finding))),
        "locations": [_location(finding.location, top)],
        "partialFingerprints": {"primaryLocationLineHash": mark},
        "properties": {
            "targets": list(finding.targets),
            "evidence": [m._asdict() for m in finding.evidence],
            "confirmed": [one._asdict() for one in finding.confirmed],
        },
    }
    if finding.stack:
        result["relatedLocations"] = [_location(where, top) for where in finding.stack]
    return result | ({"fixes": fixes} if fixes else {})


def _fingerprint(finding: Finding, lines: Sequence[str]) -> str:
    """The same wherever in the file the line moves, and however it is indented. GitHub adds the file and the rule."""
    code = "".join(lines[finding.location.line - 1].split())
    return hashlib.sha256(f"{finding.rule}\n{code}".encode()).hexdigest()[:16]


def _fix(suggestion: Suggestion, top: Path) -> dict[str, Any]:
    """The edits, a change for each file. A viewer that applies it does not know which fixes are safe: so it is said."""
    warned = "" if suggestion.safe else f" ({MAY_CHANGE}: see the rule's page)"
    edits = sorted(suggestion.edits, key=lambda edit: edit.location)
    changes = [
        {"artifactLocation": _artifact(path, top), "replacements": [_replacement(edit) for edit in group]}
        for path, group in groupby(edits, lambda edit: edit.location.path)
    ]
    return {"description": _message(f"write: {suggestion.text}{warned}"), "artifactChanges": changes}


def _replacement(edit: Edit) -> dict[str, Any]:
    return {"deletedRegion": _region(edit.location), "insertedContent": {"text": edit.text}}


def _notification(problem: Problem, level: str, top: Path) -> dict[str, Any]:
    message = before(problem.path, problem.line) + message_of(problem)
    note: dict[str, Any] = {"level": level, "message": _message(message)}
    if not Path(problem.path).exists():  # it is about a package that brings rules
        return note
    where: dict[str, Any] = {"artifactLocation": _artifact(problem.path, top)}
    if problem.line:
        where["region"] = {"startLine": line_in_file(problem.path, problem.line)}
    return note | {"locations": [{"physicalLocation": where}]}


def _location(where: Location, top: Path) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(where.path, top), "region": _region(where)}}


def _region(where: Location) -> dict[str, int]:
    """Of a notebook the lines of its JSON, whose columns are not those of the cell."""
    if is_notebook(where.path):
        lines = line_in_file(where.path, where.line), line_in_file(where.path, where.end_line)
        return dict(zip(("startLine", "endLine"), lines, strict=True))
    return {
        "startLine": where.line,
        "startColumn": where.column,
        "endLine": where.end_line,
        "endColumn": where.end_column,
    }


def _artifact(path: str, top: Path) -> dict[str, str]:
    inside = from_top(path, top)
    if inside is None:
        return {"uri": Path(path).resolve().as_uri()}
    return {"uri": quote(inside), "uriBaseId": _BASE}


def _message(text: str) -> dict[str, str]:
    """SARIF reads `{0}` as a place for an argument, and `[a](b)` as a link: code means neither."""
    text = text.replace("{", "{{").replace("}", "}}")
    return {"text": re.sub(r"\[(?=[^\[\]]*\]\()", r"\\[", text)}
