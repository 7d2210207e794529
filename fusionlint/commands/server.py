"""`fusionlint server`."""

from __future__ import annotations

from importlib.util import find_spec

import click

from fusionlint.commands.errors import one_line_errors
from fusionlint.config import ConfigError


@click.command(short_help="Serve an editor (LSP).")
def server() -> None:
    """Speak the language server protocol on stdin and stdout: findings, fixes and pages in an editor."""
    with one_line_errors():
        if find_spec("pygls") is None:
            raise ConfigError("the server needs pygls: pip install 'fusionlint[server]'")
    from fusionlint.serving.server import server as made

    made().start_io()
