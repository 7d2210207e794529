"""fusionlint: a linter that flags fusion-breaking JAX code."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusionlint.capturing import Capture, capture
    from fusionlint.explained import Count, ExplainedBarrier, Report, Totals
    from fusionlint.explaining import ExplainError, explain
    from fusionlint.finding import Edit, Finding, Location, Measurement, Problem, Suggestion
    from fusionlint.hlo.barriers import Barrier
    from fusionlint.hlo.kernels import Kernel, Loop
    from fusionlint.hlo.times import Price
    from fusionlint.hlo.verdicts import Verdict
    from fusionlint.recorded import Told
    from fusionlint.recording import (
        Argument,
        Compilation,
        EagerLine,
        Place,
        RecordedFunction,
        Recording,
        read_recording,
    )
    from fusionlint.tasks import Failure

__all__ = [
    "Argument",
    "Barrier",
    "Capture",
    "Compilation",
    "Count",
    "EagerLine",
    "Edit",
    "ExplainError",
    "ExplainedBarrier",
    "Failure",
    "Finding",
    "Kernel",
    "Location",
    "Loop",
    "Measurement",
    "Place",
    "Price",
    "Problem",
    "RecordedFunction",
    "Recording",
    "Report",
    "Suggestion",
    "Told",
    "Totals",
    "Verdict",
    "capture",
    "explain",
    "read_recording",
]

# Imported when asked for: neither `fusionlint check` nor pytest, which loads the plugin, shall wait for them.
# What stands in none of these is of `recording`.
_MODULES = {
    **dict.fromkeys(("Capture", "capture"), "capturing"),
    **dict.fromkeys(("Count", "ExplainedBarrier", "Report", "Totals"), "explained"),
    **dict.fromkeys(("ExplainError", "explain"), "explaining"),
    **dict.fromkeys(("Edit", "Finding", "Location", "Measurement", "Problem", "Suggestion"), "finding"),
    "Barrier": "hlo.barriers",
    **dict.fromkeys(("Kernel", "Loop"), "hlo.kernels"),
    "Price": "hlo.times",
    "Verdict": "hlo.verdicts",
    "Told": "recorded",
    "Failure": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fusionlint.{_MODULES.get(name, 'recording')}"), name)
