"""`fusionlint explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from fusionlint.commands import options
from fusionlint.commands.compiled import showing_progress
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import names, split
from fusionlint.config import ConfigError, read_config

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from fusionlint.compiling.artifacts import Job
    from fusionlint.compiling.targets import Target
    from fusionlint.explained import Report
    from fusionlint.tasks import Compilation, Failure, Task


@click.command(short_help="Compile functions and explain them.")
@click.argument("specs", nargs=-1, required=True, metavar="SPEC...")
@names(options.compiled_for("Compile"), "--target")
@click.option("--output-format", type=options.Format(["full", "json", "html"]), default="full", show_default=True)
@click.option("--all", "everything", is_flag=True, help="All barriers, not the ten dearest alone.")
@click.option("--try-fixes", is_flag=True, help="Also compile with each fix of `check` for these lines.")
@click.option("--stages", "with_stages", is_flag=True, help="Also count the operations of each stage of the compiler.")
@options.timeout
@click.option("--executor", default="", metavar="dask://HOST:PORT", help="Compile on a cluster that runs already.")
@click.option("--verbose", is_flag=True, help="Where a compilation fails, all that its process wrote to stderr.")
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the arguments of a SPEC without any from what `run --record` wrote.",
)
@options.dims
@options.mesh
def explain(
    specs: Sequence[str],
    target: Sequence[str],
    output_format: str,
    everything: bool,
    try_fixes: bool,
    with_stages: bool,
    timeout: float,
    executor: str,
    verbose: bool,
    recorded: Path | None,
    dims: Sequence[str],
    mesh: Sequence[str],
) -> None:
    """Compile functions and say what XLA made of them: launches, and where and why values cross memory between kernels.

    SPEC is package.module:function or path/file.py:function, with its arguments by shape:
    "env.py:step(f32[1024,4], key, n=8)"; without any, those of --recorded, of an `example_args` beside the function, or
    of its jaxtyping annotations are taken. What is compiled already is given as a path: an optimized HLO text, or a
    folder of --xla_dump_to; StableHLO and what jax.export serialized are compiled. Exit code 1 means that a rule knows
    a way around one of the barriers.
    """
    from fusionlint.compiling.jobs import end_workers_with_us
    from fusionlint.report.explain_json import report_json
    from fusionlint.report.explain_page import explain_page
    from fusionlint.report.explain_text import report_text
    from fusionlint.tasks import Failure

    end_workers_with_us()
    reports: list[Report] = []
    failures: list[Failure] = []
    for result in _explained(specs, split(target), executor, timeout, recorded, dims, mesh, try_fixes=try_fixes):
        if isinstance(result, Failure):
            if result.message not in (one.message for one in failures):  # as another target's
                click.echo(f"fusionlint: {result.message}", err=True)
            failures.append(result)
            click.echo(result.stderr if verbose else "", err=True, nl=False)
            continue
        if output_format == "full":
            click.echo(("\n" if reports else "") + report_text(result, everything, with_stages), nl=False)
        reports.append(result)
    if output_format == "json":
        click.echo(report_json(reports, *_told(failures)))
    if output_format == "html":
        click.echo(explain_page(reports, [one.message for one in failures]), nl=False)
    explained = any(barrier.rule for report in reports for barrier in report.barriers)
    sys.exit(2 if failures else 1 if explained else 0)


def _told(failures: Sequence[Failure]) -> tuple[list[str], dict[str, Any]]:
    """In a line each, and by what failed of what."""
    names = ("entry", "target", "kind", "message")
    return [one.message for one in failures], {"failures": [{n: getattr(one, n) for n in names} for one in failures]}


def _explained(
    specs: Sequence[str],
    wanted: list[str],
    address: str,
    timeout: float,
    recorded: Path | None,
    dims: Sequence[str],
    mesh: Sequence[str],
    *,
    try_fixes: bool,
) -> Iterator[Report | Failure]:
    """Reports and failures as they come, and between them how far it is, where stderr is a terminal."""
    from fusionlint.compiling.entry import EntryError
    from fusionlint.compiling.executing import ExecutorError, executor_at
    from fusionlint.compiling.sizes import parse_dims, parse_mesh
    from fusionlint.compiling.targets import TargetError
    from fusionlint.explained import Report
    from fusionlint.recorded import tasks_recorded
    from fusionlint.recording import Recording, RecordingError, read_recording
    from fusionlint.report.progress import Progress
    from fusionlint.retrying import untried
    from fusionlint.rule import all_rules
    from fusionlint.tasks import check_used, explain_all, targets_of

    with ExitStack() as stack:
        with one_line_errors():
            wanted = wanted or [*read_config(Path()).target]
            try:
                targets = targets_of(specs, wanted, elsewhere=bool(address))
                executor = stack.enter_context(executor_at(address)) if address else None
                recording, sizes = read_recording(recorded) if recorded else Recording(), parse_dims(dims)
                todo = tasks_recorded(specs, targets, recording, sizes, parse_mesh(",".join(mesh)))
                check_used(sizes, todo)
                _check_can_be_fixed(todo if try_fixes else ())
            except (TargetError, ExecutorError, RecordingError, EntryError) as error:
                raise ConfigError(str(error)) from None
        progress = Progress(sum(isinstance(task, tuple) for task in todo), sys.stderr)
        progress.show()
        results = explain_all(todo, all_rules(), timeout, executor, targets if wanted else (), progress.done)
        for task, result in zip(todo, results, strict=True):
            progress.clear()
            if not try_fixes or not isinstance(result, Report):
                yield result
            elif _is_of_source(task):
                yield _with_trials(result, *task, timeout, executor)
            else:
                yield untried(result)
            progress.show()


def _check_can_be_fixed(todo: Sequence[Task]) -> None:
    """EntryError if fixes are to be tried, and nothing is compiled from its source."""
    from fusionlint.compiling.entry import EntryError
    from fusionlint.retrying import NO_SOURCE
    from fusionlint.tasks import Failure

    if todo and not any(isinstance(task, Failure) or _is_of_source(task) for task in todo):
        raise EntryError(f"--try-fixes is for functions: {NO_SOURCE}")


def _is_of_source(task: Task) -> TypeGuard[Compilation]:
    """Whether a function is compiled, whose source may be another."""
    return isinstance(task, tuple) and task[0].kind == "compile"


def _with_trials(report: Report, job: Job, target: Target, timeout: float, executor: Executor | None) -> Report:
    """The report with what comes of the fixes of `check`; meanwhile how far it is, where stderr is a terminal."""
    from fusionlint.trying import fixable, tried

    with one_line_errors(), showing_progress() as begin:
        trials = tried(fixable(report, target), report, job, target, timeout, executor, begin)
    return replace(report, trials=trials)
