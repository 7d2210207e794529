"""What `fusionlint run` captured -> JSON: the reports as `explain` writes them, and what was compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fusionlint.explained import Report
from fusionlint.recorded import Told, entry_text, ordered
from fusionlint.recording import Compilation, RecordedFunction, Recording
from fusionlint.report.explain_json import report_json


def run_json(recording: Recording, told: Sequence[Told], status: int) -> str:
    """One object: `reports` and `errors` as of `explain`, and of the run its `command`, exit `status`, `versions`,
    `backend`, `functions` (a compilation's `entry` is that of its reports), `eager` lines and `notes`."""
    results = [result for one in told for result in one.results]
    return report_json(
        [result for result in results if isinstance(result, Report)],
        [result.message for result in results if not isinstance(result, Report)],
        {
            "command": list(recording.command),
            "status": status,
            "versions": dict(recording.versions),
            "backend": recording.backend,
            "functions": [_function(function) for function in ordered(recording)],
            "eager": [{**asdict(line), "programs": line.programs} for line in recording.eager],
            "notes": list(recording.notes),
        },
        recording.sources,
    )


def _function(function: RecordedFunction) -> dict[str, Any]:
    return {
        **asdict(function),
        "seconds": function.seconds,
        "compilations": [_compilation(function, one) for one in function.compilations],
    }


def _compilation(function: RecordedFunction, one: Compilation) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(one).items() if name != "programs"}
    return {"entry": entry_text(function, one), **fields}
