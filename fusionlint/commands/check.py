"""`fusionlint check`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from fusionlint.commands.effects import is_given, without_effect
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import names, split
from fusionlint.config import ConfigError, common_folder, read_config
from fusionlint.finding import MAY_CHANGE

if TYPE_CHECKING:
    from fusionlint.checking import Outcome
    from fusionlint.config import Config
    from fusionlint.report.sarif import RuleText
    from fusionlint.source.check import Result
    from fusionlint.source.fixing import Chosen, Fixed
    from fusionlint.source.scope import Scope

_FORMATS = ["full", "concise", "json", "sarif", "github"]


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@names("Only what harms this target, h100 for one; repeatable.", "--target")
@names("Only these rules.", "--select")
@names("Not these rules.", "--ignore")
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--diff", "show_diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--unsafe-fixes", is_flag=True, help=f"With --fix or --diff: also fixes that {MAY_CHANGE}.")
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
@click.option("--only-seen", is_flag=True, help="Only where the project shows that the code is traced, or is not.")
@click.option("--output-format", type=click.Choice(_FORMATS), default="full", show_default=True)
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
@click.option("--force-exclude", is_flag=True, help="Leave out what `exclude` says of files that are named, too.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; the cores by default.")
@click.option("--no-cache", is_flag=True, help="Remember nothing, and use nothing that is remembered.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    envvar="FUSIONLINT_CACHE_DIR",
    show_envvar=True,
    help="Remember here what was found, not in .fusionlint_cache at the top of the project.",
)
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    default=Path("stdin.py"),
    metavar="FILE",
    help="Where the text belongs that is read from stdin, with PATHS `-` or none.",
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
    only_seen: bool,
    output_format: str,
    statistics: bool,
    force_exclude: bool,
    jobs: int,
    no_cache: bool,
    cache_dir: Path | None,
    stdin_filename: Path,
) -> None:
    """Find fusion-breaking code in Python files; PATHS are files or folders, by default this one, or - for stdin."""
    context = click.get_current_context()
    gc.disable()  # there is little garbage before the end, and looking for some is a tenth of the run of one file
    context.call_on_close(gc.enable)
    from fusionlint.checking import baseline_of, chosen, evidence_of, outcome, rewritten, scope_of, weighed
    from fusionlint.report import text
    from fusionlint.report.progress import Counter
    from fusionlint.source.briefs import recall
    from fusionlint.source.cache import FOLDER, Cache
    from fusionlint.source.check import check_files, world_of
    from fusionlint.source.files import project_folder, rest_of_project
    from fusionlint.source.texts import file_of, unsaved

    context.with_resource(_ending_at_once())
    typed = [*paths] == [Path("-")] or (not paths and is_given(context, "stdin_filename"))
    paths = [stdin_filename] if typed else paths or [Path()]
    if typed:
        context.with_resource(unsaved(stdin_filename, sys.stdin.buffer.read()))
    with one_line_errors():
        for line in without_effect(context, typed=typed):
            click.echo(line, err=True)
        _refuse_what_is_no_file(paths)
        config = read_config(common_folder(paths))
        unused = warn_unused_ignores or config.warn_unused_ignores
        seen = only_seen or config.only_seen
        cache = None if no_cache else Cache(cache_dir or project_folder(paths[0]) / FOLDER)
        recall(cache)
        scope = scope_of(config, split(select), split(ignore), split(target), unused_ignores=unused, only_seen=seen)
        known = baseline_of(config, baseline, write=write_baseline)
        reports = evidence_of(evidence)
        files = _files_of(paths, config, typed=typed, force=force_exclude)
        near = (
            []
            if typed or not all(path.is_file() for path in paths)
            else rest_of_project(files, config.exclude, config.root)
        )
        run = partial(check_files, files, scope, jobs, cache, beside=near)
        with Counter(sys.stderr) as progress:
            found = run(progress)
        result = weighed(found, reports, scope)
    noun = "finding" if unused else "hazard"
    fixed: Sequence[Fixed] = ()
    if fix or show_diff:
        from fusionlint.source.fixing import fix_files

        choose = chosen(result, None if write_baseline else known)
        world = world_of(files, {finding.location.path for finding in found.findings}, jobs, cache, near)
        made = fix_files(found, scope, world, unsafe=unsafe_fixes, choose=choose)
        fixed = made.files
        for problem in made.problems:
            click.echo(text.problem(problem), err=True)
        if show_diff:
            _show_diff(fixed, found, noun)
        if typed:
            _print_fixed(stdin_filename, fixed, found, choose, noun)
    with one_line_errors():
        for one in fixed:
            Path(one.path).write_bytes(file_of(one.path, one.after))
        if fixed:
            result = weighed(run(), reports, scope, result, [one.path for one in fixed])
        if known and write_baseline:
            known = rewritten(known, result.result, scope, files)
            known.path.write_bytes(known.text.encode())
    said = outcome(known, result, scope, files)
    _print_findings(said, scope, output_format, statistics, text.fixed_summary("Fixed", fixed, noun) if fixed else "")
    for line in text.notes(said, written=write_baseline):
        click.echo(line, err=True)
    if not files and _have_notebooks(paths):
        click.echo("notebooks are read where they are named: fusionlint check *.ipynb", err=True)
    sys.exit(1 if said.findings or said.problems else 0)


def _refuse_what_is_no_file(paths: Sequence[Path]) -> None:
    """ConfigError for the first pipe, `<(cat f.py)`: it can be read once, and a file is read by whoever asks about
    it."""
    for path in paths:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ConfigError(f"{path}: no file that can be read twice; `fusionlint check -` reads a text from stdin")


def _have_notebooks(paths: Sequence[Path]) -> bool:
    """Whether there is a notebook at or below the paths."""
    return any(True for path in paths for _ in path.rglob("*.ipynb"))


def _files_of(paths: Sequence[Path], config: Config, *, typed: bool, force: bool) -> list[Path]:
    """The files to check. One whose text is typed need not be there; it is excluded with `force` alone, as any that is
    named."""
    from fusionlint.source.files import is_excluded, python_files

    if not typed:
        return python_files(paths, config.exclude, top=config.root, force=force)
    return [path for path in paths if not (force and is_excluded(path, config.exclude, config.root))]


def _show_diff(fixed: Sequence[Fixed], found: Result, noun: str) -> NoReturn:
    """What fixes would change; exit 1 where there is something, or a file could not be checked."""
    from fusionlint.report import text
    from fusionlint.source.fixing import diff

    click.echo("".join(diff(one) for one in fixed), nl=False)
    click.echo(text.fixed_summary("Would fix", fixed, noun), err=True)
    for problem in found.problems:
        click.echo(text.problem(problem), err=True)
    sys.exit(1 if fixed or found.problems else 0)


def _print_fixed(path: Path, fixed: Sequence[Fixed], found: Result, choose: Chosen, noun: str) -> NoReturn:
    """The text that was read from stdin, fixed; exit 1 where hazards are left."""
    from fusionlint.report import text
    from fusionlint.source.texts import file_of, text_of

    data = text_of(path)
    after, left = (fixed[0].after, fixed[0].left) if fixed else (data, len(choose(found.findings, data)))
    click.echo(file_of(path, after), nl=False)
    click.echo(text.fixed_summary("Fixed", fixed, noun), err=True)
    for problem in found.problems:
        click.echo(text.problem(problem), err=True)
    sys.exit(1 if found.problems or left else 0)


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


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Inside, an interrupt ends the run."""
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(*_: object) -> None:
    """Ends the run at once. As an exception it could be lost in a callback, or wait for processes half begun."""
    if processes := sys.modules.get("multiprocessing"):
        for process in processes.active_children():
            process.terminate()
    sys.stderr.write("fusionlint: interrupted\n")
    sys.stderr.flush()
    os._exit(130)
