"""What the user did wrong, as one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from fusionlint.config import ConfigError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A user's mistake is one line and exit 2; a mistake of ours stays a traceback."""
    try:
        yield
    except (ConfigError, FileNotFoundError, PermissionError) as error:
        click.echo(f"fusionlint: {error}", err=True)
        sys.exit(2)
