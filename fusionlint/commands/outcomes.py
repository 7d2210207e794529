"""What a run of `check` found or fixed -> stdout and stderr, and how the run ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from fusionlint.checking import Outcome
    from fusionlint.report.sarif import RuleText
    from fusionlint.source.check import Result
    from fusionlint.source.fixing import Chosen, Fixed
    from fusionlint.source.scope import Scope


def print_diff(fixed: Sequence[Fixed], said: Outcome, noun: str, *, unsafe: bool) -> NoReturn:
    """What fixes would change; exit 1 where there is something, or a file could not be checked."""
    from fusionlint.report import text
    from fusionlint.source.fixing import diff

    click.echo("".join(diff(one) for one in fixed), nl=False)
    without = text.no_fixes(said.findings, noun, unsafe=unsafe) if said.findings and not fixed else ""
    click.echo(without or text.fixed_summary("Would fix", fixed, noun), err=True)
    for problem in said.problems:
        click.echo(text.problem(problem), err=True)
    sys.exit(1 if fixed or said.problems else 0)


def print_fixed(path: Path, fixed: Sequence[Fixed], found: Result, choose: Chosen, noun: str) -> NoReturn:
    """The text that was read from stdin, fixed; exit 1 where hazards are left."""
    from fusionlint.report import text
    from fusionlint.source.texts import file_of, text_of

    data = text_of(path)
    after, left = (fixed[0].after, fixed[0].left) if fixed else (data, len(choose(found.findings, data)))
    click.echo(file_of(path, after), nl=False)
    click.echo(text.fixed_summary("Fixed", fixed, noun), err=True)
    for problem in found.problems:
        click.echo(text.problem(problem), err=True)
    sys.exit(1 if found.problems or left else 0)


def print_findings(
    said: Outcome, scope: Scope, output_format: str, statistics: bool, fixed: str, *, written: bool
) -> None:
    """The findings in the format asked for; `fixed` says how many there were more. Where a baseline was `written`,
    a note says how many it lists, and there is no other summary."""
    from fusionlint.report.paths import top_folder

    match output_format:
        case "json":
            from fusionlint.report import json

            click.echo(json.findings_json(said))
        case "sarif":
            from importlib.metadata import version

            from fusionlint.report import sarif

            click.echo(sarif.findings_sarif(said, _rule_texts(scope), version("fusionlint"), top_folder(Path())))
        case "github":
            from fusionlint.report import github

            for command in github.commands(said, top_folder(Path())):
                click.echo(command)
        case _:
            from fusionlint.report import text

            for row in text.rows(said.findings, output_format, _width()):
                click.echo(row)
            if statistics:
                click.echo(text.statistics(said.findings))
            if fixed:
                click.echo(fixed)
            if not written:
                click.echo(text.summary(said))


def _width() -> int | None:
    """The columns of the terminal; None in a pipe."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # brings all that compresses files

    return get_terminal_size().columns


def print_notes(said: Outcome, empty: Sequence[Path], *, written: bool) -> None:
    """What goes to stderr at the end; `empty` are paths at which there was no file to check."""
    from fusionlint.report import text

    for line in text.notes(said, written=written):
        click.echo(line, err=True)
    if _have_notebooks(empty):
        click.echo("notebooks are read where they are named: fusionlint check *.ipynb", err=True)


def _have_notebooks(paths: Sequence[Path]) -> bool:
    """Whether there is a notebook at or below the paths."""
    return any(True for path in paths for _ in path.rglob("*.ipynb"))


def _rule_texts(scope: Scope) -> list[RuleText]:
    """The rules of a run, and what else it may find."""
    from fusionlint.report.sarif import RuleText
    from fusionlint.rule import all_rules
    from fusionlint.source.ignores import UNUSED, UNUSED_MEANS

    rules = [RuleText(r.name, r.harm, r.page.summary, r.page.text) for r in all_rules() if r.name in scope.rules]
    return [*rules, RuleText(UNUSED, "comments", UNUSED_MEANS, UNUSED_MEANS)] if scope.unused_ignores else rules
