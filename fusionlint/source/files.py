"""Which files to check, and what their modules are called.

In: the paths a user names. Out: the Python files below them, without what .gitignore, the configuration or habit leaves
out, and without tests, benchmarks and pictures. A file named by itself is always checked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fusionlint.lazily import regex
from fusionlint.left_out import Ignored, is_pattern, patterns

# What these call their functions is known, and means the same where their source happens to be among the files.
LIBRARIES = frozenset(("jax", "flax", "equinox", "haiku", "optax", "numpy"))
_NEVER = frozenset(
    (".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "site-packages", "__pycache__", ".eggs", "build",
     "dist", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)  # fmt: skip

# Nobody minds how fast these are: tests, benchmarks, pictures, what a quicker form is held against, what is deprecated,
# what shows a bug or looks for one, what makes the state that a simulation begins with, once. What they do to a
# project's functions is no use of them. They are a third of the code of jax, flax, brax, maxtext and numpyro.
_IDLE_FILE = regex(
    r"(^|/)((unit_?)?tests?|test_\w+|testing|(\w+_)?benchmark(s|ing)?|plots?|plotting|visuali[sz]ations?|visuali[sz]ers?"
    r"|reference|_?deprecated|outdated|obsolete|(\w+_)?old|bugs?(_\w+)?|repros?"
    r"|initiali[sz]ations?|initial_conditions?(_\w+)?)/"
    r"|(^|/)(test_[^/]*|[^/]*_tests?|([^/]*_)?test_(utils?|lib|case|base|data|helpers?)|testing(_utils?)?|conftest"
    r"|[^/]*_bench|bench(mark)?_[^/]*|bench(mark(s|ing)?)?|[^/]*_benchmark(s|ing)?"
    r"|plot[^/]*|[^/]*_plot(s|ting)?|visuali[sz][^/]*|viz(_[^/]*)?|viewer"
    r"|analy[sz]e[^/]*|(diagnose|debug|check|inspect|sanity)(_[^/]*)?|naive|ref(erence)?|[^/]*_ref|[^/]*_old|repro_[^/]*"
    r"|[^/]*_repro|initiali[sz]ations?|initial_conditions?(_\w+)?)"
    r"\.py$"
)
# Sphinx-Gallery runs what is called plot_*: examples of everything.
_GALLERY = regex(r"(^|/)(examples?|gallery|tutorials?)/(.*/)?plot_[^/]*\.py$")


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


@cache
def is_idle_file(inside: str) -> bool:
    """Whether a file, by its path in its project, is a test, a benchmark or a picture."""
    return bool(_IDLE_FILE.search(inside)) and not _GALLERY.search(inside)


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


def path_in_project(path: str | Path) -> str:
    """The path as its project writes it, "tests/test_env.py": below the nearest .git or pyproject.toml, or from here.

    What lies above a project says nothing about it: /home/me/tests/brax/math.py is no test.
    """
    folder, name = os.path.split(path)
    return f"{_folder_in_project(folder)}{name}"


@cache
def _folder_in_project(folder: str) -> str:
    """The folder as its project writes it, with a slash at its end, or nothing."""
    real = _real(Path(folder))
    root = _project_root(real)
    if root is None:
        root = Path.cwd() if real.is_relative_to(Path.cwd()) else _package_root(real)
    return "" if real == root else f"{real.relative_to(root).as_posix()}/"


def project_folder(path: Path) -> Path:
    """The top of the project that a file or folder is in; this folder, where nothing says where a project begins."""
    return _project_root(_real(path if path.is_dir() else path.parent)) or Path.cwd()


def rest_of_project(files: Sequence[Path], exclude: Sequence[str], top: Path) -> list[Path]:
    """The other Python files of the project that the files are in, as a run over all of it would find them; none where
    nothing says where it begins."""
    folder = _project_root(_real(files[0].parent)) if files else None
    if folder is None or folder == Path.home():
        return []
    here = Path(os.path.relpath(folder)) if Path.cwd().is_relative_to(folder) else folder
    named = {real_path(str(file)) for file in files}
    return [path for path in python_files([here], exclude, top=top) if real_path(str(path)) not in named]


def real_path(path: str) -> str:
    """The path without symbolic links on the way; where the file itself is one, that stays."""
    folder, name = os.path.split(path)
    return f"{_real_name(folder)}/{name}"


@cache
def _real_name(folder: str) -> str:
    return str(_real(Path(folder)))


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
    for known in (
        _real,
        _real_name,
        _project_root,
        _folder_in_project,
        _package_root,
        _package_of,
        _scripts,
        _of_folder,
        _imported_from,
        _imported,
    ):
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
    return name.endswith((".py", ".pyi")) or name.isidentifier() or name in _ROOT_FILES


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


@cache
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
    return "__init__.py" in _entries(str(folder)) and folder.name.isidentifier()


def _is_root(folder: Path) -> bool:
    """Whether a project is imported from this folder, as far as its own content says."""
    root = folder.parent if folder.name == "src" else folder
    return not _entries(str(root)).isdisjoint(_ROOT_FILES)


def beside(path: str) -> Mapping[str, str]:
    """The modules and folders beside a file that lies in no package of its own, and beside the folders around it: a
    script imports them by these names alone. Each with the package that it is in."""
    return _scripts(os.path.split(path)[0])


@cache
def _scripts(folder: str) -> Mapping[str, str]:
    real = _real(Path(folder))
    root, found = _package_root(real), dict[str, str]()
    while real != root and not _has_init(real):
        package = ".".join(real.relative_to(root).parts)
        for name in _entries(str(real)):
            if name.endswith(".py") or any(inner.endswith(".py") for inner in _entries(str(real / name))):
                found.setdefault(name.removesuffix(".py"), package)
        real = real.parent
    return {name: found[name] for name in found.keys() - sys.stdlib_module_names - LIBRARIES}


class Stand(NamedTuple):
    """Where a file stands: its path as its project writes it; the dotted name of its module, `brax.envs.ant` for
    src/brax/envs/ant.py, by the __init__.py files around it; whether a package is read from it; what is `beside` it."""

    inside: str
    module: str
    is_package: bool
    beside: Mapping[str, str]


def stand(path: str | Path) -> Stand:
    """Where the file at `path` stands."""
    folder, name = os.path.split(path)
    inside, package, near = _of_folder(folder)
    stem = name.rpartition(".")[0] or name
    if stem == "__init__":
        return Stand(f"{inside}{name}", package or _real(Path(folder)).name, name == "__init__.py", near)
    return Stand(f"{inside}{name}", f"{package}.{stem}" if package else stem, False, near)


@cache
def _of_folder(folder: str) -> tuple[str, str, Mapping[str, str]]:
    """What all files of a folder have in common of where they stand."""
    return _folder_in_project(folder), _package_of(folder), _scripts(folder)


@cache
def _package_of(folder: str) -> str:
    """The dotted name of the package that the files of a folder are in, "" for scripts."""
    real = _real(Path(folder))
    return ".".join(real.relative_to(_package_root(real)).parts)


def imports_from(path: str) -> str:
    """The folder that a file imports from."""
    return _imported_from(os.path.split(path)[0])


@cache
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


@cache
def _imported(root: str, name: str) -> tuple[str | None, str | None]:
    """That file, and the folder that what is in `name` lies in, None where there is none."""
    before, _, part = name.rpartition(".")
    found, folder = _imported(root, before) if before else (None, root)
    if folder is None:
        return found, None
    entries, inside = _entries(folder or "."), f"{folder}/{part}" if folder else part
    if f"{part}.py" in entries:
        found = f"{inside}.py"
    elif part in entries and "__init__.py" in _entries(inside):
        found = f"{inside}/__init__.py"
    elif f"{part}.pyi" in entries:
        found = f"{inside}.pyi"
    return found, inside if part in entries else None
