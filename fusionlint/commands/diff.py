"""`fusionlint diff`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fusionlint.commands import options
from fusionlint.commands.compiled import targets_here, told
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import DashesMeanNothing, names, split
from fusionlint.config import ConfigError


@click.command("diff", cls=DashesMeanNothing, short_help="Compare two compilations.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@names("Compare on this hardware, present or not: cpu, h100, v5e, ...; repeatable.", "--target")
@click.option("--recorded", type=click.Path(path_type=Path), metavar="FILE", help="Take the SPECs of what it recorded.")
@click.option(
    "--tolerance", type=options.Number(0), default=0.0, show_default=True, help="Percent that a number may rise."
)
@click.option("--output-format", type=options.Format(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--all", "everything", is_flag=True, help="Also what did not change, and all barriers.")
@options.timeout
@options.dims
@options.mesh
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
    mesh: Sequence[str],
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

    with one_line_errors():
        try:
            both = [given(before), given(after)]
            wanted, left_out = specs_of(both, specs, recorded)
            compiles = any(one.report is None for one in both)
            targets = targets_here(targets_of(both, split(target))) if compiles else []
            on = tuple(one.name for one in targets) if compiles else tuple(split(target))
            asked = Asked(wanted, on, timeout, Path.cwd(), tuple(dims), ",".join(mesh))
            progress = Progress(sum(one.is_code for one in both), sys.stderr)
            progress.show()
            found = sides(both, asked, lambda recording: told(recording, targets, timeout), progress.done)
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
    sys.exit(2 if said.lost or not (said.compared or said.is_new or said.is_gone) else 1 if said.worse else 0)
