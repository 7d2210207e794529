"""`fusionlint rule`."""

from __future__ import annotations

import os
import shutil
import sys

import click

from fusionlint.commands.errors import one_line_errors
from fusionlint.config import ConfigError


@click.command(short_help="List rules, or show one.")
@click.argument("name", required=False)
@click.option("--reasons", is_flag=True, help="XLA's reasons for not fusing, and what they mean.")
def rule(name: str | None, reasons: bool) -> None:
    """Show the page of a rule; without NAME, list the rules."""
    from fusionlint.checking import check_known
    from fusionlint.hlo.reasons import catalogue
    from fusionlint.report.page_text import page_text
    from fusionlint.report.rules_text import rules_text, wrapped
    from fusionlint.rule import all_rules

    rules = {r.name: r for r in all_rules()}
    with one_line_errors():
        if reasons and name is not None:
            raise ConfigError("--reasons is a list of its own: leave the rule's name out")
        check_known([name] if name else [], rules, "rule")
    # A pipe is as wide as a row, where nobody says otherwise.
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if has_width else None
    if reasons:
        click.echo(wrapped(catalogue(), width) if width else catalogue(), nl=False)
    elif name:
        page = rules[name].page.text
        if sys.stdout.isatty():  # in a pipe it is the Markdown that it was written in
            page = page_text(page, min(shutil.get_terminal_size().columns, 100))
        click.echo(page, nl=False)
    else:
        rows = [(r.name, r.harm, r.page.summary) for r in rules.values()]
        click.echo(rules_text(rows, width), nl=False)
