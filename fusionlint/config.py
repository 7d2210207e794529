"""[tool.fusionlint] of pyproject.toml -> Config."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# So many names fit in a line.
_FEW = 20


class ConfigError(ValueError):
    """What the user wrote cannot be carried out; one line that says what to do."""


class Config(NamedTuple):
    """What to check for. Empty `select` is every rule, empty `target` every target; `exclude` reads like .gitignore.

    `per_file_ignores` pairs a pattern with the rules that its files are not checked for; `baseline` is "" or a file.
    Both are meant from the folder `root` on, where the pyproject.toml lies.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    baseline: str = ""
    warn_unused_ignores: bool = False
    only_seen: bool = False
    root: Path = Path()

    def where(self, key: str) -> str:
        """What an error about a key begins with."""
        return f"{self.root / 'pyproject.toml'}: [tool.fusionlint] {key}: "


def common_folder(paths: Sequence[Path]) -> Path:
    """The folder that holds all of `paths`, or is the only one of them: whichever is named first says nothing."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    try:
        return Path(os.path.commonpath([folder.resolve() for folder in folders]))
    except ValueError:  # on several drives
        return folders[0]


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
    data = path.read_bytes()
    if b"fusionlint" not in data:
        return None  # of most projects; what is wrong with the rest of their files is for others to say
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tool = tomllib.loads(data.decode()).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    table = tool.get("fusionlint") if isinstance(tool, dict) else None  # others say what else is wrong with it
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.fusionlint has to be a table")
    return table


def _config(table: Mapping[str, object], path: Path) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READ:
            raise ConfigError(f"{path}: [tool.fusionlint] has no key {key!r}{nearest(key, _READ)}")
        try:
            values[key.replace("-", "_")] = _READ[key](value)
        except TypeError as error:
            raise ConfigError(f"{path}: [tool.fusionlint] {key} has to be {error}") from None
    return Config(**values, root=path.parent)


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise TypeError("a list of strings")
    return tuple(value)


def _patterns(value: object) -> tuple[str, ...]:
    """Lines as of a .gitignore."""
    return tuple(map(_pattern, _strings(value)))


def _pattern(line: str) -> str:
    from fusionlint.left_out import is_pattern  # few projects have patterns

    if not is_pattern(line):
        raise TypeError(f"patterns as in a .gitignore, which {line!r} is not")
    return line


def _lists_by_pattern(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise TypeError('a table like {"examples/**" = ["rule-name"]}')
    return tuple((_pattern(line), _strings(names)) for line, names in value.items())


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a string")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


# How the value of each key is read; a TypeError says what it has to be.
_READ: dict[str, Callable[[object], object]] = {
    "select": _strings,
    "ignore": _strings,
    "target": _strings,
    "exclude": _patterns,
    "per-file-ignores": _lists_by_pattern,
    "baseline": _string,
    "warn-unused-ignores": _flag,
    "only-seen": _flag,
}


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the list of what is known, where that is short."""
    import difflib  # nobody needs it who writes what there is

    known = list(known)
    close = difflib.get_close_matches(word.lower(), known, 1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if len(known) <= _FEW else ""
