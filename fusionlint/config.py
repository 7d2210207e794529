"""[tool.fusionlint] of pyproject.toml -> Config."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ConfigError(ValueError):
    """What the user wrote cannot be carried out; one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Config:
    """What to check for. Empty `select` is every rule, empty `target` every target; `exclude` reads like .gitignore."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def read_config(start: Path) -> Config:
    """The Config of the nearest pyproject.toml with a [tool.fusionlint] table, from `start` upwards.

    ConfigError for what is not TOML, and for keys or values that are not ours.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and (table := _table(path)) is not None:
            return _config(table, path)
    return Config()


def _table(path: Path) -> Mapping[str, object] | None:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("fusionlint")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.fusionlint has to be a table")
    return table


def _config(table: Mapping[str, object], path: Path) -> Config:
    known = [f.name for f in fields(Config)]
    values: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{path}: [tool.fusionlint] has no key {key!r}{nearest(key, known)}")
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise ConfigError(f"{path}: [tool.fusionlint] {key} has to be a list of strings")
        values[key] = tuple(value)
    return Config(**values)


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the list of what is known."""
    known = list(known)
    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; it knows {', '.join(known)}"
