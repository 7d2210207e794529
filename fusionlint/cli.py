"""The command line. Each command is a module of `fusionlint.commands`: arguments, files, printing, exit code; no logic.

Exit codes: 0 nothing found, 1 findings (or files that could not be checked), 2 could not do it, or a mistake of ours.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from fusionlint.commands.errors import exit_2_for_ours

# Each is a function in the module of its name.
_COMMANDS = ("check", "diff", "explain", "rule", "run", "server", "targets")


class _Commands(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        found = getattr(importlib.import_module(f"fusionlint.commands.{cmd_name}"), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{_meant(name)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # click would say "Aborted!" and end with 1, by which a rule or `diff` found something.
            click.echo("fusionlint: interrupted", err=True)
            sys.exit(130)
        except OSError as error:
            if error.errno != errno.ENOSPC or error.filename:
                raise
        # What is left of it goes nowhere: Python writes it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        click.echo("fusionlint: the output cannot be written: no space left on the device", err=True)
        sys.exit(2)


def _meant(name: str) -> str:
    """`; did you mean ...?` for a path, which is for `check`, and for what is nearly a command; else a full stop."""
    from difflib import get_close_matches  # nobody needs it who writes what there is

    is_path = "/" in name or name.endswith(".py") or Path(name).exists()
    near = [f"check {name}"] if is_path else get_close_matches(name, _COMMANDS, 1)
    return f"; did you mean `fusionlint {near[0]}`?" if near else "."


def _is_colored() -> bool | None:
    """What the environment says of colors (no-color.org), None where the terminal decides."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fusionlint")
@click.pass_context
def main(ctx: click.Context) -> None:
    """A linter that flags fusion-breaking JAX code, with XLA's own reasons at your own lines."""
    ctx.color = _is_colored()
    try:
        Path.cwd()
    except FileNotFoundError:
        click.echo("fusionlint: the working folder is not there any more: go to one that is", err=True)
        sys.exit(2)
    # Deep expressions are nested deeper than Python's default allows in libcst.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))


def called() -> None:
    """`main`, as the last thing that a process does."""
    with exit_2_for_ours():
        main()


def program() -> None:
    """The script `fusionlint`. After a check it ends at once, as mypy does: to free all that it knows of a project, one
    object after the other, takes a tenth of a short run. `python -m fusionlint` ends as usual, for profilers."""
    try:
        called()
    except SystemExit as end:
        if "fusionlint.commands.check" in sys.modules and isinstance(end.code, int):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise
