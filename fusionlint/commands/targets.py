"""`fusionlint targets`."""

from __future__ import annotations

import click


@click.command(short_help="List hardware and compilers.")
def targets() -> None:
    """List the hardware to compile for: which compilers are installed, and how to get the others."""
    from fusionlint.compiling.attached import attached, chosen
    from fusionlint.compiling.targets import ATTACHED, TARGETS
    from fusionlint.report.targets_text import targets_text

    here = chosen([]) if attached() else []
    click.echo(targets_text([*TARGETS, *(target for target in here if target.name in ATTACHED)], here), nl=False)
