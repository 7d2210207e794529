"""`fusionlint check`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from fusionlint.commands.effects import is_given, without_effect
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import Format, names, split
from fusionlint.commands.outcomes import print_diff, print_findings, print_fixed, print_notes
from fusionlint.commands.paths import files_around, files_of, refuse_what_is_no_file
from fusionlint.config import common_folder, read_config
from fusionlint.finding import MAY_CHANGE

if TYPE_CHECKING:
    from fusionlint.source.cache import Cache
    from fusionlint.source.check import Result
    from fusionlint.source.fixing import Chosen, Fixed
    from fusionlint.source.processes import Progress
    from fusionlint.source.scope import Scope

_FORMATS = ["full", "concise", "json", "sarif", "github"]


class _Check(click.Command):
    """Says of an option that is a key of the configuration alone where it is set."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            key = error.option_name.lstrip("-")
            if key not in ("exclude", "per-file-ignores"):
                raise
            where = f"set `{key}` in [tool.fusionlint] of pyproject.toml"
            raise click.NoSuchOption(error.option_name, f"No such option '--{key}': {where}.", ctx=ctx) from None


@click.command(cls=_Check, short_help="Check source files.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@names("Only what harms this target (h100, v5e, gpu, ...); repeatable.", "--target")
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
    help="Confirm or drop findings by the JSON of `explain` or `run`; repeatable.",
)
@click.option("--warn-unused-ignores", is_flag=True, help="Also report ignore comments that silence nothing.")
@click.option("--only-seen", is_flag=True, help="Leave out findings marked `assumed`.")
@click.option("--output-format", type=Format(_FORMATS), default="full", show_default=True)
@click.option("--statistics", is_flag=True, help="Also count the findings by rule.")
@click.option("--force-exclude", is_flag=True, help="Apply `exclude` to named files too.")
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Number of processes; all cores by default."
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    envvar="FUSIONLINT_CACHE_DIR",
    show_envvar=True,
    help="Cache folder; default .fusionlint_cache at the top of the project.",
)
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    default=Path("stdin.py"),
    metavar="FILE",
    help="The path of the text on stdin (PATHS `-` or none).",
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
    """Find code that breaks fusion. PATHS: files, folders (default: the current one), or - for stdin."""
    context = click.get_current_context()
    context.call_on_close(gc.enable)
    gc.disable()  # there is little garbage before the end, and looking for some is a tenth of the run of one file
    from fusionlint.checking import baseline_of, chosen, evidence_of, outcome, rewritten, scope_of, weighed
    from fusionlint.report.progress import Counter
    from fusionlint.report.text import fixed_summary

    context.with_resource(_ending_at_once())
    typed = [*paths] == [Path("-")] or (not paths and is_given(context, "stdin_filename"))
    paths = [_read_from_stdin(context, stdin_filename)] if typed else paths or [Path()]
    with one_line_errors():
        for line in without_effect(context, typed=typed):
            click.echo(line, err=True)
        refuse_what_is_no_file(paths)
        config = read_config(common_folder(paths))
        unused, seen = warn_unused_ignores or config.warn_unused_ignores, only_seen or config.only_seen
        cache = None if no_cache else _cache(cache_dir, paths)
        scope = scope_of(config, split(select), split(ignore), split(target), unused_ignores=unused, only_seen=seen)
        known = baseline_of(config, baseline, write=write_baseline)
        reports = evidence_of(evidence)
        files = files_of(paths, config, typed=typed, force=force_exclude)
        run = _Run(files, [] if typed else files_around(paths, files, config), scope, jobs, cache)
        with Counter(sys.stderr) as progress:
            found = run.found(progress)
        result = weighed(found, reports, scope)
    noun = "finding" if unused else "hazard"
    fixed: Sequence[Fixed] = ()
    asked = split(target) or config.target
    if fix or show_diff:
        choose = chosen(result, None if write_baseline else known)
        fixed = run.fixed(found, choose, unsafe=unsafe_fixes)
        if show_diff:
            print_diff(fixed, outcome(known, result, scope, files), noun, unsafe=unsafe_fixes)
        if typed:
            print_fixed(stdin_filename, fixed, found, choose, noun)
    with one_line_errors():
        if fixed := _written(fixed):
            result = weighed(run.found(), reports, scope, result, [one.path for one in fixed])
        if known and write_baseline:
            known = rewritten(known, result.result, scope, files)
            known.path.write_bytes(known.text.encode())
    said = outcome(known, result, scope, files, asked)
    done = fixed_summary("Fixed", fixed, noun) if fixed else ""
    print_findings(said, scope, output_format, statistics, done, written=write_baseline)
    print_notes(said, [] if files else paths, written=write_baseline)
    sys.exit(1 if said.findings or said.problems else 0)


class _Run(NamedTuple):
    """The files to check, and those around that have a say; what is looked for, who does it, and what is remembered."""

    files: Sequence[Path]
    around: Sequence[Path]
    scope: Scope
    jobs: int
    cache: Cache | None

    def found(self, progress: Progress | None = None) -> Result:
        """What is found in the files as they are now."""
        from fusionlint.source.check import check_files
        from fusionlint.source.processes import silent

        return check_files(self.files, self.scope, self.jobs, self.cache, progress or silent, self.around)

    def fixed(self, found: Result, choose: Chosen, *, unsafe: bool) -> Sequence[Fixed]:
        """The files that fixes change; why others were left alone is said. Writes nothing."""
        from fusionlint.report import text
        from fusionlint.source.check import world_of
        from fusionlint.source.fixing import fix_files

        paths = {finding.location.path for finding in found.findings}
        world = world_of(self.files, paths, self.jobs, self.cache, self.around)
        made = fix_files(found, self.scope, world, unsafe=unsafe, choose=choose)
        for problem in made.problems:
            click.echo(text.problem(problem), err=True)
        return made.files


def _read_from_stdin(context: click.Context, path: Path) -> Path:
    """The path, at which for the rest of the run stands what stdin holds."""
    from fusionlint.source.texts import unsaved

    context.with_resource(unsaved(path, sys.stdin.buffer.read()))
    return path


def _cache(folder: Path | None, paths: Sequence[Path]) -> Cache:
    """What earlier runs left in the folder, or at the top of the project."""
    from fusionlint.source.briefs import recall
    from fusionlint.source.cache import FOLDER, Cache
    from fusionlint.source.stand import project_folder

    cache = Cache(folder or project_folder(paths[0]) / FOLDER)
    recall(cache)
    return cache


def _written(fixed: Sequence[Fixed]) -> Sequence[Fixed]:
    """Those that could be written; of another it is said why not, and what is found in it stays."""
    from fusionlint.source.texts import file_of

    done = []
    for one in fixed:
        try:
            Path(one.path).write_bytes(file_of(one.path, one.after))
        except OSError as error:
            click.echo(f"{one.path}: cannot be written: {error.strerror}", err=True)
        else:
            done.append(one)
    return done


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
