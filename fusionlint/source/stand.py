"""Where a file stands: in which project, in which package, and which modules it can import by what name.

In: the path of a file. Out: its path and the name of its module as its project writes them, and the files that its
imports could mean. What lies in the folders around it decides, and is looked at once a run (`listings.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fusionlint.source.listings import PACKAGING, ROOT_FILES, entries, until_next_look
from fusionlint.source.modules import LIBRARIES


def path_in_project(path: str | Path) -> str:
    """The path as its project writes it, "tests/test_env.py": below the nearest .git or pyproject.toml, or from here.

    What lies above a project says nothing about it: /home/me/tests/brax/math.py is no test.
    """
    folder, name = os.path.split(path)
    return f"{_folder_in_project(folder)}{name}"


@until_next_look
def _folder_in_project(folder: str) -> str:
    """The folder as its project writes it, with a slash at its end, or nothing."""
    real = _real(Path(folder))
    root = _project_root(real)
    if root is None:
        root = Path.cwd() if real.is_relative_to(Path.cwd()) else _package_root(real)
    return "" if real == root else f"{real.relative_to(root).as_posix()}/"


def project_folder(path: Path) -> Path:
    """The top of the project that a file or folder is in; this folder, where nothing says where a project begins."""
    return project_root(path if path.is_dir() else path.parent) or Path.cwd()


def project_root(folder: Path) -> Path | None:
    """The top of the project that a folder is in, None where nothing says where one begins."""
    return _project_root(_real(folder))


def real_path(path: str) -> str:
    """The path without symbolic links on the way; where the file itself is one, that stays."""
    folder, name = os.path.split(path)
    return f"{_real_name(folder)}/{name}"


@until_next_look
def _real_name(folder: str) -> str:
    return str(_real(Path(folder)))


@until_next_look
def _real(folder: Path) -> Path:
    return folder.resolve()


@until_next_look
def _project_root(folder: Path) -> Path | None:
    if not entries(str(folder)).isdisjoint(ROOT_FILES):
        return folder
    return None if folder == folder.parent else _project_root(folder.parent)


@until_next_look
def _package_root(folder: Path) -> Path:
    """The folder that the files in `folder` are imported from: it holds the outermost package, which has a name to be
    imported by. A folder without an __init__.py is a part of the package around it, or of the project, or its src;
    also one that holds packages of its own, `torax/_src/fvm`."""
    package = folder
    while not _has_init(package):
        if not package.name.isidentifier() or _is_root(package):
            return package if _project_root(folder) else folder
        package = package.parent
    while _has_init(package):
        package = package.parent
    around = _package_around(package)
    return package if around is None else _package_root(around)


def _package_around(folder: Path) -> Path | None:
    """The package that a folder without an __init__.py is a part of, None for one of the project's own."""
    while not _has_init(folder):
        if not folder.name.isidentifier() or _is_root(folder):
            return None
        folder = folder.parent
    return folder


def _has_init(folder: Path) -> bool:
    return "__init__.py" in entries(str(folder)) and folder.name.isidentifier()


def _is_root(folder: Path) -> bool:
    """Whether a project is imported from this folder, as far as its own content says."""
    root = folder.parent if folder.name == "src" else folder
    return not entries(str(root)).isdisjoint(ROOT_FILES)


def beside(path: str) -> Mapping[str, str]:
    """The modules and folders beside a file that lies in no package of its own, and beside the folders around it: a
    script imports them by these names alone. Each with the package that it is in."""
    return _scripts(os.path.split(path)[0])


@until_next_look
def _scripts(folder: str) -> Mapping[str, str]:
    real = _real(Path(folder))
    root, found = _package_root(real), dict[str, str]()
    while real != root and not _has_init(real):
        package = ".".join(real.relative_to(root).parts)
        for name in entries(str(real)):
            if name.endswith(".py") or any(inner.endswith(".py") for inner in entries(str(real / name))):
                found.setdefault(name.removesuffix(".py"), package)
        real = real.parent
    return {name: found[name] for name in found.keys() - sys.stdlib_module_names - LIBRARIES}


class Stand(NamedTuple):
    """Where a file stands: its path as its project writes it; the dotted name of its module, `brax.envs.ant` for
    src/brax/envs/ant.py, by the __init__.py files around it; whether a package is read from it; what is `beside` it;
    whether others can install its project, and import what is in it."""

    inside: str
    module: str
    is_package: bool
    beside: Mapping[str, str]
    is_for_others: bool


def stand(path: str | Path) -> Stand:
    """Where the file at `path` stands."""
    folder, name = os.path.split(path)
    inside, package, near, is_for_others = _of_folder(folder)
    stem = name.rpartition(".")[0] or name
    if stem == "__init__":
        module = package or _real(Path(folder)).name
        return Stand(f"{inside}{name}", module, name == "__init__.py", near, is_for_others)
    return Stand(f"{inside}{name}", f"{package}.{stem}" if package else stem, False, near, is_for_others)


@until_next_look
def _of_folder(folder: str) -> tuple[str, str, Mapping[str, str], bool]:
    """What all files of a folder have in common of where they stand."""
    root = project_root(Path(folder))
    is_for_others = root is not None and not entries(str(root)).isdisjoint(PACKAGING)
    return _folder_in_project(folder), _package_of(folder), _scripts(folder), is_for_others


@until_next_look
def _package_of(folder: str) -> str:
    """The dotted name of the package that the files of a folder are in, "" for scripts."""
    real = _real(Path(folder))
    return ".".join(real.relative_to(_package_root(real)).parts)


def imports_from(path: str) -> str:
    """The folder that a file imports from."""
    return _imported_from(os.path.split(path)[0])


@until_next_look
def _imported_from(folder: str) -> str:
    """The folder that the files of a folder import from, as its own path writes it where that goes through it: what is
    known of a project's files is found again whichever of them are named."""
    real = _real(Path(folder))
    root = _package_root(real)
    above = Path(folder)
    for part in reversed(real.relative_to(root).parts):
        above = above.parent if above.name == part else root
    found = above if _real(above) == root else root
    return "" if found == Path() else str(found)


def imported_file(root: str, name: str) -> str | None:
    """The file below `root` that a dotted `name` could come from: that of its longest prefix."""
    return _imported(root, name)[0]


@until_next_look
def _imported(root: str, name: str) -> tuple[str | None, str | None]:
    """That file, and the folder that what is in `name` lies in, None where there is none."""
    before, _, part = name.rpartition(".")
    found, folder = _imported(root, before) if before else (None, root)
    if folder is None:
        return found, None
    held, inside = entries(folder or "."), f"{folder}/{part}" if folder else part
    if f"{part}.py" in held:
        found = f"{inside}.py"
    elif part in held and "__init__.py" in entries(inside):
        found = f"{inside}/__init__.py"
    elif f"{part}.pyi" in held:
        found = f"{inside}.pyi"
    return found, inside if part in held else None
