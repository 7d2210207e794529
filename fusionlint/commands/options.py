"""Options that several commands have, and how they are read. No logic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A number of at least so much. What Python reads as one, and nothing exceeds ("nan", "inf"), is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Format(click.Choice):  # type: ignore[type-arg]  # click 8.1 has no parameter for it
    """A format by name; `text` and `full` are the same everywhere."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        for one, other in (("text", "full"), ("full", "text")):
            if value == one and one not in self.choices:
                value = other
        return str(super().convert(value, param, ctx))


timeout = click.option("--timeout", type=Number(1), default=600, show_default=True, help="Seconds for a compilation.")
dims = click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME=SIZE",
    help="The size of a dim in jaxtyping annotations, for a SPEC without arguments; repeatable.",
)

mesh = click.option(
    "--mesh",
    multiple=True,
    metavar="AXIS=SIZE[,AXIS=SIZE]",
    help="The devices that a SPEC's function runs on at once, by the axes of their mesh: data=4,model=2.",
)


def compiled_for(what: str) -> str:
    """The help of a `--target` that has a default."""
    default = "`target` of pyproject.toml, else the device here, else h100 if its compiler is installed, else cpu"
    return f"{what} for this hardware, present or not: cpu, h100, v5e, ...; repeatable. Default: {default}."


def names(help_text: str, *flags: str) -> Callable[[Command], Command]:
    """An option that takes names, with commas between them, or several times."""
    return click.option(*flags, multiple=True, metavar="NAME[,NAME]", help=help_text)


def split(given: Sequence[str]) -> list[str]:
    """The names that such an option was given."""
    return [part.strip() for name in given for part in name.split(",") if part.strip()]


class DashesMeanNothing(click.Command):
    """`diff main HEAD -- SPEC --target h100`: as of git, and options may follow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [arg for arg in args if arg != "--"])
