"""What the user did wrong, as one line, and what we did, as a traceback: exit 2 for both."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from fusionlint.config import ConfigError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A user's mistake is one line and exit 2; a mistake of ours stays an exception."""
    try:
        yield
    except (ConfigError, FileNotFoundError, PermissionError) as error:
        click.echo(f"fusionlint: {_said(error)}", err=True)
        sys.exit(2)


def _said(error: Exception) -> str:
    """Ours are sentences; what the system raises has a number, and its file in quotes."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return str(error)


@contextmanager
def exit_2_for_ours() -> Iterator[None]:
    """A mistake of ours is a traceback and exit 2, as in ruff: by the 1 that Python gives it hazards would be found."""
    try:
        yield
    except Exception:  # noqa: BLE001 - here the program ends
        import traceback

        traceback.print_exc()
        sys.exit(2)
