"""fusionlint: a linter that flags fusion-breaking JAX code."""

from typing import TYPE_CHECKING, Any

from fusionlint.finding import Edit, Finding, Location, Measurement, Problem, Suggestion

if TYPE_CHECKING:
    from fusionlint.capturing import Capture, capture
    from fusionlint.recording import (
        Argument,
        Compilation,
        EagerLine,
        Place,
        RecordedFunction,
        Recording,
        read_recording,
    )

__all__ = [
    "Argument",
    "Capture",
    "Compilation",
    "EagerLine",
    "Edit",
    "Finding",
    "Location",
    "Measurement",
    "Place",
    "Problem",
    "RecordedFunction",
    "Recording",
    "Suggestion",
    "capture",
    "read_recording",
]

# Imported when asked for: `fusionlint check` shall not wait for them.
_CAPTURING = frozenset({"Capture", "capture"})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("fusionlint.capturing" if name in _CAPTURING else "fusionlint.recording"), name)
