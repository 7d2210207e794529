"""The PATHS of `check` -> the files to check, and those that have a say in what is found in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusionlint.config import Config, ConfigError


def refuse_what_is_no_file(paths: Sequence[Path]) -> None:
    """ConfigError for the first pipe, `<(cat f.py)`: it can be read once, and a file is read by whoever asks about
    it."""
    for path in paths:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ConfigError(f"{path}: no file that can be read twice; `fusionlint check -` reads a text from stdin")


def files_of(paths: Sequence[Path], config: Config, *, typed: bool, force: bool) -> list[Path]:
    """The files to check. One whose text is typed need not be there; it is excluded with `force` alone, as any that is
    named."""
    from fusionlint.source.files import is_excluded, python_files

    if not typed:
        return python_files(paths, config.exclude, top=config.root, force=force)
    return [path for path in paths if not (force and is_excluded(path, config.exclude, config.root))]


def files_around(paths: Sequence[Path], files: Sequence[Path], config: Config) -> list[Path]:
    """Of files that are named, the rest of their project: what calls their functions. Of folders nothing else."""
    from fusionlint.source.files import rest_of_project

    named = all(path.is_file() for path in paths)
    return rest_of_project(files, config.exclude, config.root) if named else []
