"""The commands: arguments, files, printing, exit code; no logic.

Exit codes: 0 nothing found, 1 findings (or files that could not be checked), 2 could not do it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusionlint import options
from fusionlint.config import ConfigError, read_config
from fusionlint.options import DashesMeanNothing, names, split

if TYPE_CHECKING:
    from fusionlint.checking import Outcome
    from fusionlint.compiling.targets import Target
    from fusionlint.explained import Report
    from fusionlint.recorded import Told
    from fusionlint.recording import Recording
    from fusionlint.report.sarif import RuleText
    from fusionlint.source.fixing import Fixed
    from fusionlint.source.scope import Scope
    from fusionlint.tasks import Failure


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fusionlint")
def main() -> None:
    """A linter that flags fusion-breaking JAX code, with XLA's own reasons at your own lines."""
    # Deep expressions are nested deeper than Python's default allows in libcst.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))


_FORMATS = ["full", "concise", "json", "sarif", "github"]


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@names("Only what harms this target, h100 for one; repeatable.", "--target")
@names("Only these rules.", "--select")
@names("Not these rules.", "--ignore")
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--diff", "show_diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also fixes that may change rounding or ties.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Leave out the findings it lists.")
@click.option("--write-baseline", is_flag=True, help="Write the baseline: list what is found now.")
@click.option(
    "--evidence",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Confirm and refute findings by what `explain --output-format json` wrote; repeatable.",
)
@click.option("--warn-unused-ignores", is_flag=True, help="Also report ignore comments that silence nothing.")
@click.option("--output-format", type=click.Choice(_FORMATS), default="full", show_default=True)
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; the cores by default.")
@click.option("--no-cache", is_flag=True, help="Remember nothing, and use nothing that is remembered.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    envvar="FUSIONLINT_CACHE_DIR",
    help="Remember here what was found, not in .fusionlint_cache at the top of the project.",
)
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    default=Path("stdin.py"),
    metavar="FILE",
    help="Where the text that PATHS `-` reads from stdin belongs.",
)
def check(
    paths: Sequence[Path],
    target: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    fix: bool,
    show_diff: bool,
    unsafe_fixes: bool,
    baseline: Path | None,
    write_baseline: bool,
    evidence: Sequence[Path],
    warn_unused_ignores: bool,
    output_format: str,
    statistics: bool,
    jobs: int,
    no_cache: bool,
    cache_dir: Path | None,
    stdin_filename: Path,
) -> None:
    """Find fusion-breaking code in Python files; PATHS are files or folders, by default this one, or - for stdin."""
    from fusionlint.checking import baseline_of, chosen, evidence_of, outcome, rewritten, scope_of, weighed
    from fusionlint.report import text
    from fusionlint.report.progress import Counter
    from fusionlint.source.cache import FOLDER, Cache
    from fusionlint.source.check import check_files, world_of
    from fusionlint.source.files import project_folder, python_files
    from fusionlint.source.texts import text_of, unsaved

    before = signal.signal(signal.SIGINT, _leave)
    click.get_current_context().call_on_close(lambda: signal.signal(signal.SIGINT, before))
    typed = [*paths] == [Path("-")]
    paths = [stdin_filename] if typed else paths or [Path()]
    if typed:
        click.get_current_context().with_resource(unsaved(stdin_filename, sys.stdin.buffer.read()))
    with _one_line_errors():
        config = read_config(paths[0] if paths[0].is_dir() else paths[0].parent)
        unused = warn_unused_ignores or config.warn_unused_ignores
        scope = scope_of(config, split(select), split(ignore), split(target), unused_ignores=unused)
        known = baseline_of(config, baseline, write=write_baseline)
        reports = evidence_of(evidence)
        files = paths if typed else python_files(paths, config.exclude)
        cache = None if no_cache else Cache(cache_dir or project_folder(paths[0]) / FOLDER)
        with Counter(sys.stderr) as progress:
            found = check_files(files, scope, jobs, cache, progress)
        result = weighed(found, reports, scope)
    noun = "finding" if unused else "hazard"
    fixed: list[Fixed] = []
    if fix or show_diff:
        from fusionlint.source.fixing import diff, fix_files

        choose = chosen(result, None if write_baseline else known)
        world = world_of(files, {finding.location.path for finding in found.findings}, jobs, cache)
        fixed = fix_files(found, scope, world, unsafe=unsafe_fixes, choose=choose)
    if show_diff:
        click.echo("".join(diff(one) for one in fixed), nl=False)
        click.echo(text.fixed_summary("Would fix", fixed, noun), err=True)
        sys.exit(1 if fixed else 0)
    if typed and fix:
        after = fixed[0].after if fixed else text_of(stdin_filename)
        click.echo(after, nl=False)
        click.echo(text.fixed_summary("Fixed", fixed, noun), err=True)
        for problem in found.problems:
            click.echo(f"{problem.path}:{problem.line}: {problem.message}", err=True)
        sys.exit(1 if found.problems else 0)
    with _one_line_errors():
        for one in fixed:
            Path(one.path).write_bytes(one.after)
        if fixed:
            found = check_files(files, scope, jobs, cache)
            result = weighed(found, reports, scope, result, [one.path for one in fixed])
        if known and write_baseline:
            known = rewritten(known, result.result, scope, files)
            known.path.write_bytes(known.text.encode())
    said = outcome(known, result, scope, files)
    _print_findings(said, scope, output_format, statistics, text.fixed_summary("Fixed", fixed, noun) if fixed else "")
    for line in text.notes(said, written=write_baseline):
        click.echo(line, err=True)
    sys.exit(1 if said.findings or said.problems else 0)


def _print_findings(said: Outcome, scope: Scope, output_format: str, statistics: bool, fixed: str) -> None:
    from fusionlint.report.paths import top_folder

    match output_format:
        case "json":
            from fusionlint.report import json

            click.echo(json.findings_json(said))
        case "sarif":
            from importlib.metadata import version

            from fusionlint.report import sarif

            click.echo(sarif.findings_sarif(said, _rule_texts(scope), version("fusionlint"), top_folder(Path())))
        case "github":
            from fusionlint.report import github

            for command in github.commands(said, top_folder(Path())):
                click.echo(command)
        case _:
            from fusionlint.report import text

            for row in text.rows(said.findings, output_format):
                click.echo(row)
            if statistics:
                click.echo(text.statistics(said.findings))
            if fixed:
                click.echo(fixed)
            click.echo(text.summary(said))


def _rule_texts(scope: Scope) -> list[RuleText]:
    """The rules of a run, and what else it may find."""
    from fusionlint.report.sarif import RuleText
    from fusionlint.rule import all_rules
    from fusionlint.source.ignores import UNUSED, UNUSED_MEANS

    rules = [RuleText(r.name, r.harm, r.page.summary, r.page.text) for r in all_rules() if r.name in scope.rules]
    return [*rules, RuleText(UNUSED, "comments", UNUSED_MEANS, UNUSED_MEANS)] if scope.unused_ignores else rules


@main.command()
@click.argument("specs", nargs=-1, required=True, metavar="SPEC...")
@names("Compile for this hardware, present or not: cpu, h100, v5e, ...; repeatable.", "--target")
@click.option("--output-format", type=click.Choice(["full", "json"]), default="full", show_default=True)
@click.option("--all", "everything", is_flag=True, help="All barriers, not the ten dearest alone.")
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
def explain(
    specs: Sequence[str],
    target: Sequence[str],
    output_format: str,
    everything: bool,
    with_stages: bool,
    timeout: float,
    executor: str,
    verbose: bool,
    recorded: Path | None,
    dims: Sequence[str],
) -> None:
    """Compile functions and say what XLA made of them: launches, and where and why values cross memory between kernels.

    SPEC is package.module:function or path/file.py:function, with its arguments by shape:
    "env.py:step(f32[1024,4], key, n=8)"; without any, those of --recorded, of an `example_args` beside the function, or
    of its jaxtyping annotations are taken. What is compiled already is given as a path: an optimized HLO text, or a
    folder of --xla_dump_to; StableHLO and what jax.export serialized are compiled. Exit code 1 means that a rule knows
    a way around one of the barriers.
    """
    from fusionlint.report.explain_json import report_json
    from fusionlint.report.explain_text import report_text
    from fusionlint.tasks import Failure

    reports: list[Report] = []
    errors: list[str] = []
    for result in _explained(specs, split(target), executor, timeout, recorded, dims):
        if isinstance(result, Failure):
            errors.append(result.message)
            click.echo(f"fusionlint: {result.message}", err=True)
            click.echo(result.stderr if verbose else "", err=True, nl=False)
            continue
        if output_format == "full":
            click.echo(("\n" if reports else "") + report_text(result, everything, with_stages), nl=False)
        reports.append(result)
    if output_format == "json":
        click.echo(report_json(reports, errors))
    explained = any(barrier.rule for report in reports for barrier in report.barriers)
    sys.exit(2 if errors else 1 if explained else 0)


def _explained(
    specs: Sequence[str],
    wanted: list[str],
    address: str,
    timeout: float,
    recorded: Path | None,
    dims: Sequence[str],
) -> Iterator[Report | Failure]:
    """Reports and failures as they come, and between them how far it is, where stderr is a terminal."""
    from fusionlint.compiling.entry import EntryError, parse_dims
    from fusionlint.compiling.executing import ExecutorError, executor_at
    from fusionlint.compiling.targets import TargetError
    from fusionlint.recorded import tasks_recorded
    from fusionlint.recording import Recording, RecordingError, read_recording
    from fusionlint.report.progress import Progress
    from fusionlint.rule import all_rules
    from fusionlint.tasks import check_used, explain_all, targets_of

    with ExitStack() as stack:
        with _one_line_errors():
            wanted = wanted or [*read_config(Path()).target]
            try:
                targets = targets_of(specs, wanted, elsewhere=bool(address))
                executor = stack.enter_context(executor_at(address)) if address else None
                recording, sizes = read_recording(recorded) if recorded else Recording(), parse_dims(dims)
                todo = tasks_recorded(specs, targets, recording, sizes)
                check_used(sizes, todo)
            except (TargetError, ExecutorError, RecordingError, EntryError) as error:
                raise ConfigError(str(error)) from None
        progress = Progress(sum(isinstance(task, tuple) for task in todo), sys.stderr)
        progress.show()
        for result in explain_all(todo, all_rules(), timeout, executor, targets if wanted else (), progress.done):
            progress.clear()
            yield result
            progress.show()


@main.command(context_settings={"allow_interspersed_args": False})
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARG]...")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as in `python -m`.")
@names("Explain for this hardware, present or not: cpu, h100, v5e, ...; repeatable.", "--target")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the report there, not to stderr."
)
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="FILE", help="Save what was captured, for `explain`."
)
@click.option(
    "--all", "everything", is_flag=True, help="Everything: libraries' functions, every signature, barrier, line."
)
@options.timeout
def run(
    script: str,
    arguments: Sequence[str],
    module: bool,
    target: Sequence[str],
    output_format: str,
    output: Path | None,
    record: Path | None,
    everything: bool,
    timeout: float,
) -> None:
    """Run a script unchanged, and say what it compiled, why again, and what XLA made of it.

    The script's output, arguments and exit status are its own; the report comes afterwards, on stderr. Options of
    fusionlint stand before SCRIPT.
    """
    from fusionlint.compiling.scripts import run_script
    from fusionlint.recorded import to_save
    from fusionlint.recording import recording_json
    from fusionlint.report.run_json import run_json
    from fusionlint.report.run_text import run_text

    targets = _targets_here(split(target))
    with _one_line_errors():
        for path in filter(None, (output, record)):  # before hours of work are lost for it
            if not path.parent.is_dir():
                raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}")
    # What is saved may be explained for other hardware later.
    platforms = ["cpu", "cuda", "tpu"] if record else sorted({one.platform for one in targets})
    ran = run_script(script, arguments, platforms, module=module, everything=everything)
    if record:
        record.write_text(recording_json(to_save(ran.recording)), encoding="utf-8")
    told = _told(ran.recording, targets, timeout)
    if output_format == "json":
        text = run_json(ran.recording, told, ran.status) + "\n"
    else:
        text = run_text(ran.recording, told, everything)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False, err=True)
    sys.exit(ran.status)


@main.command("diff", cls=DashesMeanNothing)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@names("Compare on this hardware, present or not: cpu, h100, v5e, ...; repeatable.", "--target")
@click.option("--recorded", type=click.Path(path_type=Path), metavar="FILE", help="Take the SPECs of what it recorded.")
@click.option(
    "--tolerance", type=click.FloatRange(0), default=0.0, show_default=True, help="Percent that may be gained."
)
@click.option("--output-format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--all", "everything", is_flag=True, help="Also what did not change, and all barriers.")
@options.timeout
@options.dims
def diff(
    before: str,
    after: str,
    specs: Sequence[str],
    target: Sequence[str],
    recorded: Path | None,
    tolerance: float,
    output_format: str,
    everything: bool,
    timeout: float,
    dims: Sequence[str],
) -> None:
    """Compare what was compiled: which functions gained or lost launches, bytes, microseconds and compilations, and
    which barriers came and went.

    A and B are reports (`explain` or `run` with --output-format json), recordings (`run --record`), or git revisions;
    "." is the working folder as it is. Of revisions the SPECs are compiled, or the functions of a recording. Exit code
    1 means that something got worse by more than the tolerance, 2 that something could not be compared.
    """
    from fusionlint.diff.compare import compare
    from fusionlint.diff.side import DiffError
    from fusionlint.diffing import given, sides, specs_of, targets_of
    from fusionlint.report.diff_json import diff_json
    from fusionlint.report.diff_markdown import diff_markdown
    from fusionlint.report.diff_text import diff_text
    from fusionlint.report.progress import Progress
    from fusionlint.revisions import Asked

    with _one_line_errors():
        try:
            both = [given(before), given(after)]
            wanted, left_out = specs_of(both, specs, recorded)
            compiles = any(one.report is None for one in both)
            targets = _targets_here(targets_of(both, split(target))) if compiles else []
            on = tuple(one.name for one in targets) if compiles else tuple(split(target))
            asked = Asked(wanted, on, timeout, Path.cwd(), tuple(dims))
            progress = Progress(sum(one.is_code for one in both), sys.stderr)
            progress.show()
            found = sides(both, asked, lambda recording: _told(recording, targets, timeout), progress.done)
        except DiffError as error:
            raise ConfigError(str(error)) from None
    said = compare(found[0], found[1], tolerance)
    if output_format == "json":
        click.echo(diff_json(said))
    else:
        click.echo({"text": diff_text, "markdown": diff_markdown}[output_format](said, everything), nl=False)
    for line in left_out:
        click.echo(f"fusionlint: {line}", err=True)
    if said.uncompared:
        click.echo(f"fusionlint: {said.uncompared}", err=True)
    sys.exit(2 if said.lost or not (said.compared or said.is_new) else 1 if said.worse else 0)


def _targets_here(named: list[str]) -> list[Target]:
    """The targets of those names, of the settings, or the default one."""
    from fusionlint.compiling.attached import chosen
    from fusionlint.compiling.targets import TargetError

    with _one_line_errors():
        try:
            return chosen(named or [*read_config(Path()).target])
        except TargetError as error:
            raise ConfigError(str(error)) from None


def _told(recording: Recording, targets: Sequence[Target], timeout: float) -> list[Told]:
    """What XLA makes of the recording, and meanwhile how far it is, where stderr is a terminal."""
    from fusionlint.recorded import explain_recorded
    from fusionlint.report.progress import Progress
    from fusionlint.rule import all_rules

    progress = Progress(len(targets) if recording.functions else 0, sys.stderr)
    progress.show()
    try:
        return explain_recorded(recording, targets, all_rules(), timeout, progress.done)
    finally:
        progress.clear()


@main.command("targets")
def list_targets() -> None:
    """List the hardware to compile for: which compilers are installed, and how to get the others."""
    from fusionlint.compiling.attached import attached, chosen
    from fusionlint.compiling.targets import ATTACHED, TARGETS
    from fusionlint.report.targets_text import targets_text

    here = chosen([]) if attached() else []
    click.echo(targets_text([*TARGETS, *(target for target in here if target.name in ATTACHED)], here), nl=False)


@main.command()
@click.argument("name", required=False)
@click.option("--reasons", is_flag=True, help="XLA's reasons for not fusing, and what they mean.")
def rule(name: str | None, reasons: bool) -> None:
    """Show the page of a rule; without NAME, list the rules."""
    from fusionlint.checking import check_known
    from fusionlint.hlo.reasons import catalogue
    from fusionlint.report.page_text import page_text
    from fusionlint.report.rules_text import rules_text
    from fusionlint.rule import all_rules

    rules = {r.name: r for r in all_rules()}
    with _one_line_errors():
        if reasons and name is not None:
            raise ConfigError("--reasons is a list of its own: leave the rule's name out")
        check_known([name] if name else [], rules, "rule")
    if reasons:
        click.echo(catalogue(), nl=False)
    elif name:
        page, width = rules[name].page.text, min(shutil.get_terminal_size().columns, 100)
        # In a pipe it is the Markdown that it was written in.
        click.echo(page_text(page, width) if sys.stdout.isatty() else page, nl=False)
    else:
        rows = [(r.name, r.harm, r.page.summary) for r in rules.values()]
        click.echo(rules_text(rows, shutil.get_terminal_size().columns), nl=False)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """A user's mistake is one line and exit 2; a mistake of ours stays a traceback."""
    try:
        yield
    except (ConfigError, FileNotFoundError, PermissionError) as error:
        click.echo(f"fusionlint: {error}", err=True)
        sys.exit(2)


def _leave(*_: object) -> None:
    """Ends the run at once. As an exception it could be lost in a callback, or wait for processes half begun."""
    if processes := sys.modules.get("multiprocessing"):
        for process in processes.active_children():
            process.terminate()
    sys.stderr.write("fusionlint: interrupted\n")
    sys.stderr.flush()
    os._exit(130)
