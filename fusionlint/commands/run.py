"""`fusionlint run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fusionlint.commands import options
from fusionlint.commands.compiled import targets_here, told
from fusionlint.commands.errors import one_line_errors
from fusionlint.commands.options import names, split
from fusionlint.config import ConfigError


@click.command(context_settings={"allow_interspersed_args": False}, short_help="Run a script and explain it.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARG]...")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as in `python -m`.")
@names(options.compiled_for("Explain"), "--target")
@click.option("--output-format", type=options.Format(["text", "json", "html"]), default="text", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the report there, not to stderr."
)
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="FILE", help="Save what was captured, for `explain`."
)
@click.option(
    "--all", "everything", is_flag=True, help="Everything: libraries' functions, every program, barrier, line."
)
@click.option("--try-fixes", is_flag=True, help="Also compile with each fix of `check` for what was compiled.")
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
    try_fixes: bool,
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
    from fusionlint.report.run_page import run_page
    from fusionlint.report.run_text import run_text

    targets = targets_here(split(target))
    with one_line_errors():
        _check_files(output, record)  # before hours of work are lost for it
        if not module and script != "-" and not Path(script).exists():
            raise ConfigError(f"{script}: no such file")
    # What is saved may be explained for other hardware later.
    platforms = ["cpu", "cuda", "tpu"] if record else sorted({one.platform for one in targets})
    ran = run_script(script, arguments, platforms, module=module, everything=everything)
    if record:
        _written(record, recording_json(to_save(ran.recording)))
    said = told(ran.recording, targets, timeout, try_fixes=try_fixes)
    if output_format == "json":
        text = run_json(ran.recording, said, ran.status) + "\n"
    elif output_format == "html":
        text = run_page(ran.recording, said, everything)
    else:
        text = run_text(ran.recording, said, everything)
    if not output or not _written(output, text):
        click.echo(text, nl=False, err=True)
    if ran.status and not ran.recording.functions and (ours := _ours(arguments)):
        click.echo(f"fusionlint: `{ours}` went to the script: options of fusionlint stand before SCRIPT", err=True)
    sys.exit(ran.status)


def _ours(arguments: Sequence[str]) -> str:
    """The first argument of the script that is called as an option of `run`, "" for none."""
    flags = {flag for one in click.get_current_context().command.params for flag in one.opts if flag.startswith("--")}
    return next((name for one in arguments if (name := one.partition("=")[0]) in flags), "")


def _check_files(output: Path | None, record: Path | None) -> None:
    """Raises ConfigError if one of them cannot be written, or is the other."""
    for path in filter(None, (output, record)):
        if why := _unwritable(path):
            raise ConfigError(f"{path} cannot be written: {why}")
    if output and record and output.resolve() == record.resolve():
        raise ConfigError(f"--output and --record are one file, {output}: name two")


def _unwritable(path: Path) -> str:
    """Why, as far as can be told without writing; "" if it can be."""
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    may_be = os.access(path if path.exists() else path.parent, os.W_OK)
    return "" if may_be else "permission denied"


def _written(path: Path, text: str) -> bool:
    """Whether it could be: a full disk, or what the script did to the folder, costs neither the report nor the script's
    own exit status."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        click.echo(f"fusionlint: {path} cannot be written: {error.strerror}", err=True)
        return False
    return True
