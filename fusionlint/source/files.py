"""Which files to check.

In: the paths a user names. Out: the Python files below them, without what .gitignore, the configuration or habit leaves
out, and without tests, benchmarks and pictures. A file named by itself is always checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fusionlint.left_out import Ignored, is_pattern, patterns
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.stand import path_in_project, project_root, real_path

_NEVER = frozenset(
    (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "site-packages", "__pycache__", ".eggs", "build",
     "dist", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)  # fmt: skip


def python_files(
    paths: Sequence[Path],
    exclude: Iterable[str] = (),
    *,
    top: Path | None = None,
    force: bool = False,
    idle: bool = False,
) -> list[Path]:
    """The Python files at and below `paths`, sorted, each once; tests, benchmarks and pictures too where `idle` ones
    are asked for. What is to be excluded is written as seen from the folder `top`, from each of `paths` without one;
    a file that is named is excluded with `force` alone. FileNotFoundError names a path that is not there."""
    found: dict[str, Path] = {}
    excluded = patterns(exclude) if exclude else None
    top = top.resolve() if top and excluded else None
    for path in paths:
        if path.is_dir():
            below = _below(path, excluded, top)
            for one in below if idle else (one for one in below if not is_idle_file(path_in_project(one))):
                found.setdefault(_real_of(one, paths), one)
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        elif not (force and _is_excluded(path, excluded, top)):
            found.setdefault(_real_of(path, paths), path)
    return sorted(found.values())


def is_excluded(path: Path, exclude: Sequence[str], top: Path) -> bool:
    """Whether a file, which need not be there, is left out by what is written as seen from the folder `top`."""
    return _is_excluded(path, patterns(exclude) if exclude else None, top.resolve())


def _is_excluded(path: Path, excluded: Ignored | None, top: Path | None) -> bool:
    return excluded is not None and excluded.holds(_seen_from(top, path.resolve()))


def _real_of(file: Path, paths: Sequence[Path]) -> str:
    """What tells a file from others: of one folder alone its name does."""
    return str(file) if len(paths) == 1 else os.path.realpath(file)


def _seen_from(top: Path | None, real: Path) -> str:
    """The real path of a file or folder as `top`, one as well, writes it; "" of itself, and of what is not below."""
    return real.relative_to(top).as_posix() if top and top in real.parents else ""


def _below(root: Path, excluded: Ignored | None, top: Path | None) -> Iterator[Path]:
    """The Python files below `root`. Of each .gitignore that has a say goes along how its folder calls the one that is
    looked into; of `excluded` how `top` does. A folder that nobody may look into is given back as it is."""
    real = root.resolve()
    seen = _seen_from(top, real)
    if excluded and seen and excluded.holds(f"{seen}/"):
        return
    parents = [*reversed(real.parents)] if _in_git(real) else []
    above = [(top, excluded), *((folder, _gitignore(folder)) for folder in parents)]
    specs = [(f"{seen}/" if (seen := _seen_from(folder, real)) else "", spec) for folder, spec in above if spec]
    todo = [(root, specs)]
    while todo:
        folder, specs = todo.pop()
        if own := _gitignore(folder):
            specs = [*specs, ("", own)]
        try:
            entries = [*os.scandir(folder)]
        except PermissionError:
            yield folder  # to be told as what cannot be read
            continue
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            wanted = entry.name not in _NEVER if is_folder else entry.name.endswith((".py", ".pyi"))
            name = f"{entry.name}/" if is_folder else entry.name
            if not wanted or any(spec.holds(f"{before}{name}") for before, spec in specs):
                continue
            if is_folder:
                todo.append((folder / entry.name, [(f"{before}{name}", spec) for before, spec in specs]))
            elif _is_file(entry):
                yield folder / entry.name


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether this is a file, or a link to one: links may go round."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _in_git(root: Path) -> bool:
    """Whether .gitignore files above `root` have a say: only inside a repository."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _gitignore(folder: Path) -> Ignored | None:
    try:
        lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # there is none, or none that we may read
        return None
    try:
        return patterns(lines)
    except (ValueError, re.error):  # git passes over a line that is no pattern: one that ends in a backslash
        return patterns(filter(is_pattern, lines))


def rest_of_project(files: Sequence[Path], exclude: Sequence[str], top: Path) -> list[Path]:
    """The other Python files of the project that the files are in, as a run over all of it would find them; none where
    nothing says where it begins."""
    folder = project_root(files[0].parent) if files else None
    if folder is None or folder == Path.home():
        return []
    here = Path(os.path.relpath(folder)) if Path.cwd().is_relative_to(folder) else folder
    named = {real_path(str(file)) for file in files}
    return [path for path in python_files([here], exclude, top=top) if real_path(str(path)) not in named]
