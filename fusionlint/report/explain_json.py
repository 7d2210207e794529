"""[Report] -> JSON: what `fusionlint explain --output-format json` prints."""

from __future__ import annotations

import hashlib
import json
import linecache
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fusionlint.explained import ExplainedBarrier, Report
from fusionlint.folders import top_folder
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel, Loop
from fusionlint.hlo.lines import Lines
from fusionlint.trials import Trial

VERSION = 1


def report_json(
    reports: Sequence[Report],
    errors: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """One object of `reports`, `errors` (one line each), the `folder` that relative paths start from, the `top` folder
    of its project, and `more`. Microseconds are null where nothing is known about them. A barrier's `text` is its line:
    as in `sources`, by path, else as in the file, if that is still what was compiled.
    """
    told = [_report(report, sources or {}) for report in reports]
    where = {"folder": str(Path.cwd()), "top": str(top_folder(Path()))}
    return json.dumps({"version": VERSION, **where, "reports": told, "errors": [*errors], **(more or {})}, indent=2)


def _report(report: Report, sources: Mapping[str, str]) -> dict[str, Any]:
    digests = {path: _sha256(path, report.entry) for path in report.lines}
    return {
        "entry": report.entry,
        "target": report.target,
        "devices": report.devices,
        "versions": dict(report.versions),
        "compile_seconds": report.compile_seconds,
        "launches": report.totals.launches,
        "launches_per_iteration": report.totals.launches_per_iteration,
        "bytes": report.totals.bytes,
        "bytes_per_iteration": report.totals.bytes_per_iteration,
        "microseconds": report.totals.microseconds,
        "microseconds_per_iteration": report.totals.microseconds_per_iteration,
        "timed_by": list(report.totals.timed_by),
        "scalar_ops": report.totals.scalar_ops,
        "scalar_ops_per_iteration": report.totals.scalar_ops_per_iteration,
        "host_launches": report.totals.host_launches,
        "host_launches_per_iteration": report.totals.host_launches_per_iteration,
        "notes": list(report.notes),
        "kernels": [_kernel(kernel, report.lines_of_kernels.get(kernel.name, {})) for kernel in report.kernels],
        "loops": [_loop(loop) for loop in report.loops],
        "fixes": None if report.trials is None else [_trial(trial) for trial in report.trials],
        "barriers": [_barrier(one) | {"text": _text(one, sources, digests)} for one in report.barriers],
        "stages": asdict(report.stages),
        "lines": _lines(report.lines),
        "sha256": digests,
    }


def _lines(lines: Lines) -> dict[str, list[list[int]]]:
    return {path: [[first, last] for first, last in stretches] for path, stretches in lines.items()}


def _sha256(source: str, entry: str) -> str | None:
    """The file that was compiled, by its bytes. None where they are not known: it is not on this machine, or it changed
    after the dump or program that `entry` names was written."""
    program = Path(entry.rpartition(" from ")[2])
    try:
        written = program.stat().st_mtime
    except (OSError, ValueError):  # it names a function, and was compiled just now
        written = math.inf
    try:
        if Path(source).stat().st_mtime > written:
            return None
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()
    except OSError:
        return None


def _kernel(kernel: Kernel, lines: Lines) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "opcodes": list(kernel.opcodes),
        "launches": kernel.launches,
        "per_iteration": kernel.per_iteration,
        "bytes": kernel.bytes_read + kernel.bytes_written,
        "microseconds": kernel.microseconds,
        "timed_by": kernel.timed_by or None,
        "graph": kernel.graph,
        "branches": [*kernel.branches],
        "location": _location(kernel.stack[0] if kernel.stack else None),
        "stack": [_location(frame) for frame in kernel.stack],
        "lines": _lines(lines),
        "loop": kernel.loop,
    }


def _loop(loop: Loop) -> dict[str, Any]:
    return {
        "name": loop.name,
        "location": _location(loop.frame),
        "trip_count": loop.trip_count,
        "parent": loop.parent,
        "launches_per_iteration": loop.launches_per_iteration,
        "copies_per_iteration": loop.copies_per_iteration,
    }


def _barrier(explained: ExplainedBarrier) -> dict[str, Any]:
    barrier, verdict = explained.barrier, explained.barrier.verdict
    return {
        "cause": barrier.cause,
        "detail": barrier.detail,
        "of_gradient": barrier.of_gradient,
        "value": barrier.value,
        "opcodes": list(barrier.opcodes),
        "bytes": barrier.bytes,
        "crossings": barrier.crossings,
        "launches": barrier.launches,
        "per_iteration": barrier.per_iteration,
        "branches": [*barrier.branches],
        "location": _location(barrier.stack[0] if barrier.stack else None),
        "stack": [_location(frame) for frame in barrier.stack],
        "writer": barrier.writer,
        "readers": list(barrier.readers),
        "reason": verdict.reason if verdict else None,
        "us_fused": verdict.us_fused if verdict else None,
        "us_unfused": verdict.us_unfused if verdict else None,
        "consumers": list(verdict.consumers) if verdict else [],
        "microseconds": price.moving + price.launching if (price := explained.price) else None,
        "rule": explained.rule or None,
        "advice": explained.advice or None,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "word": trial.word,
        "error": trial.error or None,
        "measured": [cell._asdict() for cell in trial.measured],
        "fixes": [
            {
                "rule": fix.rule,
                **fix.location._asdict(),
                "write": fix.suggestion.text if fix.suggestion else None,
                "safe": bool(fix.suggestion and fix.suggestion.safe),
            }
            for fix in trial.fixes
        ],
    }


def _text(explained: ExplainedBarrier, sources: Mapping[str, str], digests: Mapping[str, str | None]) -> str | None:
    """The line without its indentation; None where it is not known. A file that is there and has no digest was changed
    since it was compiled."""
    if not explained.barrier.stack:
        return None
    frame = explained.barrier.stack[0]
    if frame.path in sources:
        text = "".join(sources[frame.path].split("\n")[frame.line - 1 : frame.line])
    elif digests.get(frame.path) is None and Path(frame.path).exists():
        return None
    else:
        text = linecache.getline(frame.path, frame.line)
    return text.strip() or None


def _location(frame: hlo.Frame | None) -> dict[str, Any] | None:
    return {name: value for name, value in asdict(frame).items() if name != "is_rule"} if frame else None
