"""Diff -> JSON: what `fusionlint diff --output-format json` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from fusionlint.diff.barriers import BarrierChange
from fusionlint.diff.compare import Diff, FunctionChange, ProgramChange, Quantity
from fusionlint.diff.side import Side

VERSION = 1


def diff_json(diff: Diff) -> str:
    """One object: `worse`, the sides `before` and `after`, `tolerance` in percent, and all `functions`, changed or not.
    A quantity is `{"before", "after", "percent", "comparable", "worse"}`, its bytes and microseconds of one call."""
    document = {
        "version": VERSION,
        "worse": diff.worse,
        "tolerance": diff.tolerance,
        "before": _side(diff.before),
        "after": _side(diff.after),
        "versions_differ": {name: list(pair) for name, pair in diff.versions.items()},
        "functions": [_function(one, diff.tolerance) for one in diff.functions],
        "eager": _quantity(diff.eager, diff.tolerance) if diff.eager else None,
    }
    return json.dumps(document, indent=2)


def _side(side: Side) -> dict[str, Any]:
    return {"name": side.name, "versions": dict(side.versions), "status": side.status, "errors": list(side.errors)}


def _function(function: FunctionChange, tolerance: float) -> dict[str, Any]:
    compilations = function.compilations
    return {
        "name": function.name,
        "word": function.word,
        "compilations": _quantity(compilations, tolerance) if compilations else None,
        "again": dict(function.again or {}),
        "programs": [_program(one, tolerance) for one in function.programs],
    }


def _program(program: ProgramChange, tolerance: float) -> dict[str, Any]:
    return {
        "target": program.target,
        "word": program.word,
        "before": _side_of(program, "before"),
        "after": _side_of(program, "after"),
        "quantities": {one.name: _quantity(one, tolerance) for one in program.quantities},
        "barriers": [_barrier(one) for one in program.barriers],
        "notes": list(program.notes),
    }


def _side_of(program: ProgramChange, name: str) -> dict[str, Any] | None:
    one = program.before if name == "before" else program.after
    return {"arguments": one.arguments.text, **one.amounts} if one else None


def _quantity(quantity: Quantity, tolerance: float) -> dict[str, Any]:
    return {
        "before": quantity.before,
        "after": quantity.after,
        "percent": quantity.percent,
        "comparable": quantity.comparable,
        "worse": quantity.rose_over(tolerance),
    }


def _barrier(change: BarrierChange) -> dict[str, Any]:
    sides = {name: asdict(one) if one else None for name, one in (("before", change.before), ("after", change.after))}
    return {"word": change.word, **sides}
