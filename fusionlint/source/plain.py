"""Findings and problems as plain values, as the cache keeps them and processes hand them on, and back."""

from __future__ import annotations

from typing import Any

from fusionlint.finding import Edit, Finding, Location, Measurement, Problem, Suggestion


def packed(finding: Finding) -> tuple[Any, ...]:
    """A finding, before any evidence of the code itself, as plain values."""
    suggestion = finding.suggestion
    return (
        finding.rule,
        _place(finding.location),
        finding.message,
        None
        if suggestion is None
        else (suggestion.text, tuple((_place(e.location), e.text) for e in suggestion.edits), suggestion.safe),
        finding.targets,
        tuple((m.target, m.quantity, m.bad, m.good) for m in finding.evidence),
        tuple(map(_place, finding.stack)),
        finding.pair,
        finding.assumed,
        finding.unclaimed,
    )


def unpacked(values: tuple[Any, ...]) -> Finding:
    """The finding that `packed` made `values` of."""
    rule, place, message, suggestion, targets, evidence, stack, pair, assumed, unclaimed = values
    if suggestion is not None:
        text, edits, safe = suggestion
        suggestion = Suggestion(text, tuple(Edit(Location(*where), new) for where, new in edits), safe)
    measured = tuple(Measurement(*one) for one in evidence)
    called_by = tuple(Location(*where) for where in stack)
    where = Location(*place)
    return Finding(
        rule, where, message, suggestion, targets, measured, called_by, pair, assumed=assumed, unclaimed=unclaimed
    )


def _place(location: Location) -> tuple[str, int, int, int, int]:
    return location.path, location.line, location.column, location.end_line, location.end_column


def packed_problem(problem: Problem) -> tuple[str, int, str]:
    """A problem as plain values; `Problem(*values)` is it again."""
    return problem.path, problem.line, problem.message
