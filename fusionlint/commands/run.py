"""`fusionlint run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fusionlint.commands import options
from fusionlint.commands.compiled import targets_here, told
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import names, split
from fusionlint.config import ConfigError


@click.command(context_settings={"allow_interspersed_args": False})
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
    "--all", "everything", is_flag=True, help="Everything: libraries' functions, every program, barrier, line."
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

    targets = targets_here(split(target))
    with one_line_errors():
        for path in filter(None, (output, record)):  # before hours of work are lost for it
            if not path.parent.is_dir():
                raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}")
    # What is saved may be explained for other hardware later.
    platforms = ["cpu", "cuda", "tpu"] if record else sorted({one.platform for one in targets})
    ran = run_script(script, arguments, platforms, module=module, everything=everything)
    if record:
        record.write_text(recording_json(to_save(ran.recording)), encoding="utf-8")
    said = told(ran.recording, targets, timeout)
    if output_format == "json":
        text = run_json(ran.recording, said, ran.status) + "\n"
    else:
        text = run_text(ran.recording, said, everything)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False, err=True)
    sys.exit(ran.status)
