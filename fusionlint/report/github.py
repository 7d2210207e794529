"""[Finding] -> workflow commands, which GitHub shows as annotations at the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fusionlint.finding import Finding, Problem
from fusionlint.report.cells import before, line_in_file, message_of
from fusionlint.report.paths import from_top
from fusionlint.report.text import said
from fusionlint.source.ignores import UNUSED
from fusionlint.source.texts import is_notebook

if TYPE_CHECKING:
    from fusionlint.checking import Outcome


def commands(outcome: Outcome, top: Path) -> Iterator[str]:
    """An annotation for every finding, and for files that could not be checked or have a comment to look at."""
    told = {(f.location.path, f.location.line) for f in outcome.findings if f.rule == UNUSED}
    warnings = [warning for warning in outcome.warnings if (warning.path, warning.line) not in told]
    yield from (finding_command(finding, top) for finding in outcome.findings)
    yield from problem_commands(outcome.problems, "error", top)
    yield from problem_commands(warnings, "warning", top)


def finding_command(finding: Finding, top: Path) -> str:
    """`::warning file=...,line=...::message`, a notice where it is assumed how the code runs; `top` is the
    repository's folder, which GitHub's paths start from.

    GitHub takes columns only where they are of one line; those of a cell are not those of its line of JSON.
    """
    where = finding.location
    lines = {"line": line_in_file(where.path, where.line), "endLine": line_in_file(where.path, where.end_line)}
    place: dict[str, object] = {"file": from_top(where.path, top) or where.path, **lines}
    if where.line == where.end_line and not is_notebook(where.path):
        place |= {"col": where.column, "endColumn": where.end_column}
    level = "notice" if finding.assumed else "warning"
    message = before(where.path, where.line) + "\n".join(said(finding))
    return _command(level, {**place, "title": finding.rule}, message)


def problem_commands(problems: Iterable[Problem], level: str, top: Path) -> Iterator[str]:
    """An annotation for each file that could not be checked, or was and needs a word."""
    for problem in problems:
        place: dict[str, object] = {"title": "fusionlint"}
        if Path(problem.path).exists():  # else it is about a package that brings rules
            line = line_in_file(problem.path, problem.line) if problem.line else 1
            place = {"file": from_top(problem.path, top) or problem.path, "line": line, **place}
        yield _command(level, place, before(problem.path, problem.line) + message_of(problem))


def _command(name: str, properties: Mapping[str, object], message: str) -> str:
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
