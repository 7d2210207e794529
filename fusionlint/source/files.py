"""Which files to check, and what their modules are called.

In: the paths a user names. Out: the Python files below them, without what .gitignore, the configuration or habit leaves
out, and without tests, benchmarks and pictures. A file named by itself is always checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathspec

_NEVER = frozenset(
    (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "site-packages", "__pycache__", ".eggs", "build",
     "dist", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)  # fmt: skip

# Nobody minds how fast these are: tests, benchmarks, pictures, and what a quicker form is held against. What they do to
# a project's functions is no use of them. They are a third of the code of jax, flax, brax, maxtext and numpyro.
_IDLE_FILE = re.compile(
    r"(^|/)(tests?|test_\w+|testing|benchmark(s|ing)?|plots?|visuali[sz]ations?|visuali[sz]ers?|reference)/"
    r"|(^|/)(test_[^/]*|[^/]*_tests?|[^/]*_bench|bench(mark)?_[^/]*|[^/]*_benchmark(s|ing)?|plot[^/]*|visuali[sz][^/]*|viz(_[^/]*)?|viewer"
    r"|analy[sz]e[^/]*|naive|ref|[^/]*_ref)"
    r"\.py$"
)
# Sphinx-Gallery runs what is called plot_*: examples of everything.
_GALLERY = re.compile(r"(^|/)(examples?|gallery|tutorials?)/(.*/)?plot_[^/]*\.py$")


def python_files(paths: Sequence[Path], exclude: Iterable[str] = (), *, idle: bool = False) -> list[Path]:
    """The Python files at and below `paths`, sorted, each once; tests, benchmarks and pictures too where `idle` ones
    are asked for. FileNotFoundError names a path that is not there."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            below = _below(path, _patterns(exclude))
            found.update((one, None) for one in below if idle or not is_idle_file(path_in_project(one)))
        elif path.exists():
            found[path] = None
        else:
            raise FileNotFoundError(f"{path}: no such file or folder")
    return sorted(found)


@cache
def is_idle_file(inside: str) -> bool:
    """Whether a file, by its path in its project, is a test, a benchmark or a picture."""
    return bool(_IDLE_FILE.search(inside)) and not _GALLERY.search(inside)


def _below(root: Path, excluded: pathspec.GitIgnoreSpec) -> Iterator[Path]:
    ignored = [(folder, spec) for folder in reversed(root.resolve().parents) if (spec := _gitignore(folder))]
    ignored = [] if not _in_git(root) else ignored
    todo: list[tuple[Path, list[tuple[Path, pathspec.GitIgnoreSpec]]]] = [(root, ignored)]
    while todo:
        folder, specs = todo.pop()
        if own := _gitignore(folder):
            specs = [*specs, (folder.resolve(), own)]
        for entry in os.scandir(folder):
            path = folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            wanted = entry.name not in _NEVER if is_folder else entry.name.endswith((".py", ".pyi"))
            if (
                not wanted
                or _is_ignored(path, is_folder, specs)
                or excluded.match_file(_as_text(path, root, is_folder))
            ):
                continue
            if is_folder:
                todo.append((path, specs))
            elif entry.is_file():
                yield path


def _in_git(root: Path) -> bool:
    """Whether .gitignore files above `root` have a say: only inside a repository."""
    return any((folder / ".git").exists() for folder in (root.resolve(), *root.resolve().parents))


def _gitignore(folder: Path) -> pathspec.GitIgnoreSpec | None:
    path = folder / ".gitignore"
    if not path.is_file():
        return None
    return _patterns(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _patterns(lines: Iterable[str]) -> pathspec.GitIgnoreSpec:
    import pathspec  # an editor asks about one file, and waits for it

    return pathspec.GitIgnoreSpec.from_lines(lines)


def _is_ignored(path: Path, is_folder: bool, specs: list[tuple[Path, pathspec.GitIgnoreSpec]]) -> bool:
    here = path.parent.resolve() / path.name
    return any(spec.match_file(_as_text(here, folder, is_folder)) for folder, spec in specs)


def _as_text(path: Path, root: Path, is_folder: bool) -> str:
    return path.relative_to(root).as_posix() + ("/" if is_folder else "")


def path_in_project(path: Path) -> str:
    """The path as its project writes it, "tests/test_env.py": below the nearest .git or pyproject.toml, or from here.

    What lies above a project says nothing about it: /home/me/tests/brax/math.py is no test.
    """
    folder = _real(path.parent)
    root = _project_root(folder)
    if root is None:
        root = Path.cwd() if folder.is_relative_to(Path.cwd()) else package_root(path)
    return (folder / path.name).relative_to(root).as_posix()


def project_folder(path: Path) -> Path:
    """The top of the project that a file or folder is in; this folder, where nothing says where a project begins."""
    return _project_root(_real(path if path.is_dir() else path.parent)) or Path.cwd()


@cache
def _real(folder: Path) -> Path:
    return folder.resolve()


@cache
def _project_root(folder: Path) -> Path | None:
    if not _entries(str(folder)).isdisjoint((".git", "pyproject.toml", "setup.py")):
        return folder
    return None if folder == folder.parent else _project_root(folder.parent)


# What was listed since `look_again`: asked once a folder, which is cheaper than to ask for each file.
_LISTED: dict[str, frozenset[str]] = {}
_ROOT_FILES = (".git", "pyproject.toml", "setup.py")


def look_again() -> None:
    """Forget what folders hold: a run sees them as they are."""
    _LISTED.clear()
    for known in (_real, _project_root, _package_root, _imported_file):
        known.cache_clear()


def listed() -> dict[str, str]:
    """The folders that were looked into since `look_again`, and what of their content decided anything."""
    return {folder: listing(folder) for folder in _LISTED}


def listing(folder: str) -> str:
    """What of a folder's content says which modules there are and where a project begins, as one text."""
    return "/".join(sorted(_entries(folder)))


def _entries(folder: str) -> frozenset[str]:
    if folder not in _LISTED:
        _LISTED[folder] = frozenset(filter(_matters, _names_in(folder)))
    return _LISTED[folder]


def _matters(name: str) -> bool:
    return name.endswith(".py") or name.isidentifier() or name in _ROOT_FILES


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def package_root(path: Path) -> Path:
    """The folder that holds the outermost package `path` is in; a package has a name that can be imported."""
    return _package_root(_real(path.parent))


@cache
def _package_root(folder: Path) -> Path:
    while "__init__.py" in _entries(str(folder)) and folder.name.isidentifier():
        folder = folder.parent
    return folder


def module_name(path: Path) -> str:
    """`brax.envs.ant` for src/brax/envs/ant.py, by the __init__.py files around it."""
    folder = _real(path.parent)
    parts = [*folder.relative_to(_package_root(folder)).parts, path.stem]
    if parts[-1] == "__init__":
        parts = parts[:-1] or [folder.name]
    return ".".join(parts)


def imported_files(path: Path, names: Iterable[str]) -> Iterator[Path]:
    """The files beside `path`'s package that the dotted `names` could come from: for each its longest prefix."""
    root = str(package_root(path))
    for name in names:
        if found := _imported_file(root, name):
            yield found


@cache
def _imported_file(root: str, name: str) -> Path | None:
    found, folder = None, root
    for part in name.split("."):
        entries, inside = _entries(folder), f"{folder}/{part}"
        if f"{part}.py" in entries:
            found = f"{inside}.py"
        elif part in entries and "__init__.py" in _entries(inside):
            found = f"{inside}/__init__.py"
        if part not in entries:
            break
        folder = inside
    return Path(found) if found else None
