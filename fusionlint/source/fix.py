"""Text and Edits -> text. Every character outside the edits stays as it is."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from fusionlint.finding import Edit, Finding, Suggestion
from fusionlint.source.edited import overlap


def split_lines(text: str) -> list[str]:
    """The lines of a file with their ends, as Python counts them: form feeds and U+2028 end no line."""
    return [*io.StringIO(text, newline="")] or [""]


def lines_of(data: bytes) -> list[str]:
    """The lines of a file to show: a mark at its start is left out, and what is not UTF-8 replaced."""
    return split_lines(data.decode("utf-8-sig", "replace"))


def fixes(findings: Iterable[Finding], *, unsafe: bool) -> list[Suggestion]:
    """The suggestions to apply together: those with edits that no earlier one overlaps, safe ones unless `unsafe`."""
    chosen: list[Suggestion] = []
    for finding in findings:
        suggestion = finding.suggestion
        if suggestion is None or not suggestion.edits or not (suggestion.safe or unsafe):
            continue
        if not any(overlap(a, b) for other in chosen for a in other.edits for b in suggestion.edits):
            chosen.append(suggestion)
    return chosen


def apply(text: str, edits: Sequence[Edit]) -> str:
    """`text` with `edits` made, which must not overlap. Positions are those of `text`."""
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda e: e.location, reverse=True):
        where = edit.location
        start = starts[where.line - 1] + where.column - 1
        end = starts[where.end_line - 1] + where.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text
