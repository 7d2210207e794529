"""fusionlint: a linter that flags fusion-breaking JAX code."""

from fusionlint.finding import Edit, Finding, Location, Measurement, Problem, Suggestion

__all__ = ["Edit", "Finding", "Location", "Measurement", "Problem", "Suggestion"]
