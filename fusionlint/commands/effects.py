"""Options of `check` that do nothing beside others. In: what the command line says. Out: a line for each, or an error
where something would be lost."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.core import ParameterSource

from fusionlint.config import ConfigError

_OF_TEXT = ("full", "concise")


def without_effect(context: click.Context, *, typed: bool) -> Iterator[str]:
    """A line for every option that was given and does nothing; `typed` where the text comes from stdin. ConfigError for
    a baseline that would not be written."""
    given, form = context.params, context.params["output_format"]
    only = "with --diff" if given["show_diff"] else "with --fix of a text from stdin" if typed and given["fix"] else ""
    if only and given["write_baseline"]:
        raise ConfigError(f"--write-baseline writes nothing {only}: leave one of them out")
    idle = {
        "unsafe_fixes": "" if given["fix"] or given["show_diff"] else "without --fix or --diff",
        "output_format": only,
        "statistics": only or ("" if form in _OF_TEXT else f"with --output-format {form}"),
        "cache_dir": "with --no-cache" if given["no_cache"] else "",
        "stdin_filename": "" if typed else "with PATHS: `check -` reads a text from stdin",
    }
    if given["show_diff"] and given["fix"]:
        yield "fusionlint: --diff only shows the fixes: nothing is written"
    for name, why in idle.items():
        if why and is_given(context, name):
            yield f"fusionlint: --{name.replace('_', '-')} has no effect {why}"


def is_given(context: click.Context, name: str) -> bool:
    """Whether the command line itself says it, and not the environment."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE
