"""What was recorded and explained -> the same with what the fixes of `check` do to it: each function is compiled again,
from its source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.entry import EntryError, parse_spec
from fusionlint.compiling.targets import Target
from fusionlint.config import ConfigError
from fusionlint.explained import Report
from fusionlint.finding import Finding
from fusionlint.recorded import Result, Told, shown_path
from fusionlint.recording import Compilation, RecordedFunction, sha256_of
from fusionlint.tasks import explain_all
from fusionlint.trials import Trial
from fusionlint.trying import fixable, tried

NO_SOURCE = "what is compiled or lowered already has no source to fix"
OnStart = Callable[[int], Callable[[], None]]


class _UntriedError(Exception):
    """Fixes that cannot be tried; the message is one line."""


def with_trials(
    told: Told, targets: Sequence[Target], timeout: float, on_start: OnStart = lambda _: lambda: None
) -> Told:
    """The reports of a program, one for each of `targets`, with what comes of the fixes for its lines, as `tried` has
    it; of those that cannot be tried a note says why."""
    results = (_with_trials(told, *pair, timeout, on_start) for pair in zip(told.results, targets, strict=True))
    return replace(told, results=tuple(results))


def _with_trials(told: Told, result: Result, target: Target, timeout: float, on_start: OnStart) -> Result:
    if not isinstance(result, Report):
        return result
    try:
        found = fixable(result, target)
        trials = _trials(found, told, result, target, timeout, on_start) if found else ()
    except (_UntriedError, ConfigError) as error:
        return untried(result, str(error))
    return replace(result, trials=trials)


def untried(report: Report, why: str = NO_SOURCE) -> Report:
    """The report with a note that says why there are no trials."""
    note = f"the fixes of `fusionlint check` for these lines were not tried: {why}"
    return replace(report, notes=(*report.notes, note))


def _trials(
    found: Sequence[Finding], told: Told, report: Report, target: Target, timeout: float, on_start: OnStart
) -> tuple[Trial, ...]:
    """Raises _UntriedError."""
    if report.devices > 1:
        raise _UntriedError("it runs on several devices at once")
    job = _from_source(told.function, told.compilation)
    (again,) = explain_all([(job, target)], (), timeout, on_done=on_start(1))
    if not isinstance(again, Report):
        raise _UntriedError(again.message)
    if _counts(again) != _counts(report):
        raise _UntriedError(
            f"compiled by itself it is another program, of {again.launches} launches and {again.bytes} bytes, not of "
            f"{report.launches} and {report.bytes}"
        )
    return tried(found, report, job, target, timeout, on_start=on_start)


def _from_source(function: RecordedFunction, compilation: Compilation) -> Job:
    """What compiles the function as it was compiled, in a process that imports its file. Raises _UntriedError."""
    path = function.defined.path if function.defined else ""
    if not path.endswith(".py") or not Path(path).is_file():
        raise _UntriedError("its source is in no file")
    if function.sha256 not in (None, sha256_of(path)):
        raise _UntriedError(f"{shown_path(path)} was changed after it ran")
    if not function.plain:
        raise _UntriedError("no name at the top of a module leads to it: it is made as the program runs")
    spec = f"{shown_path(path)}:{function.name}"
    if compilation.spec is None:
        raise _UntriedError(
            f"a SPEC cannot say its arguments, or how it is jitted; put `example_args` beside it, and ask "
            f"`fusionlint explain {spec} --try-fixes`"
        )
    if compilation.module_line and not _is_for_scripts(path, compilation.module_line):
        raise _UntriedError(
            f"who imports {shown_path(path)} runs it; let what line {compilation.module_line} does stand below "
            '`if __name__ == "__main__":`'
        )
    try:
        return Job(parse_spec(f"{spec}{compilation.spec}"), x64=compilation.x64)
    except EntryError as error:
        raise _UntriedError(str(error)) from None


def _is_for_scripts(path: str, line: int) -> bool:
    """Whether a line stands below `if __name__ == "__main__":`, where an import does not get."""
    guards = (node for node in ast.parse(Path(path).read_bytes()).body if isinstance(node, ast.If))
    return any(
        "__name__" in ast.unparse(node.test) and node.lineno <= line <= (node.end_lineno or 0) for node in guards
    )


def _counts(report: Report) -> tuple[int, ...]:
    totals = report.totals
    return totals.launches, totals.launches_per_iteration, totals.bytes, totals.bytes_per_iteration
