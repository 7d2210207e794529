"""Python files to time linters on: folders -> a copy of what `fusionlint check` would look at, whole and thinned.

Each pyproject.toml of the originals is an empty file in the copy, and nothing else is taken along: it says where a
project begins, and configures no linter.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fusionlint.source.files import python_files

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?[ \t]*(\w+)|import[ \t]+([\w.]+))", re.MULTILINE
)
_IMPORTS_JAX = re.compile(rb"^(?:import|from)[ \t]+jax\b", re.MULTILINE)


@dataclass(frozen=True)
class Corpus:
    """A folder of Python files; `files` are relative to it."""

    folder: Path
    files: tuple[Path, ...]

    @cached_property
    def lines(self) -> int:
        return sum(lines_of(self.folder / file) for file in self.files)

    @cached_property
    def bytes(self) -> int:
        return sum((self.folder / file).stat().st_size for file in self.files)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def copied(folders: Sequence[Path], home: Path) -> Corpus:
    """A copy in `home` of the Python files of `folders`, each in a folder of its name."""
    files: list[Path] = []
    for folder in folders:
        below = home / folder.resolve().name
        if below.exists():
            raise FileExistsError(f"two folders are called {below.name}")
        files += [
            _copy(path, below / path.relative_to(folder)).relative_to(home)
            for path in python_files([folder], idle=True)
        ]
        for root in {folder / "pyproject.toml", *folder.rglob("pyproject.toml")}:
            marker = below / root.relative_to(folder)
            if marker.parent.is_dir():
                marker.touch()
    return Corpus(home, tuple(sorted(files)))


def thinned(whole: Corpus, home: Path, every: int, can_read: Callable[[Path], bool] | None = None) -> Corpus:
    """A copy in `home` of every so many files of `whole`, by their paths, of those that `can_read` takes."""
    taken = [file for file in whole.files if can_read is None or can_read(whole.folder / file)][::every]
    for file in taken:
        _copy(whole.folder / file, home / file)
    for marker in whole.folder.rglob("pyproject.toml"):
        if (beside := home / marker.relative_to(whole.folder)).parent.is_dir():
            beside.touch()
    return Corpus(home, tuple(taken))


def largest(whole: Corpus) -> Corpus:
    """The files below that folder of `whole` that holds the most bytes."""
    sizes: Counter[str] = Counter()
    for file in whole.files:
        sizes[file.parts[0]] += (whole.folder / file).stat().st_size
    name = max(sizes, key=lambda name: (sizes[name], name))
    return Corpus(whole.folder / name, tuple(file.relative_to(name) for file in whole.files if file.parts[0] == name))


def _copy(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(path, to))


def nearest(corpus: Corpus, lines: int) -> Path:
    """The file of about so many lines that imports jax and is no test; any file, where there is none."""
    jax = [
        file
        for file in corpus.files
        if "test" not in file.as_posix() and _IMPORTS_JAX.search((corpus.folder / file).read_bytes())
    ]
    return min(jax or corpus.files, key=lambda file: (abs(lines_of(corpus.folder / file) - lines), file))


def most_imported(corpus: Corpus) -> Path:
    """The file that most others import, as far as names tell; a name in the middle of a list of names is not seen."""
    counts: Counter[str] = Counter()
    for file in corpus.files:
        counts.update(set(imported_names((corpus.folder / file).read_bytes())))
    named = {dotted: file for file in corpus.files for dotted in _dotted(file)}
    return named[max(named, key=lambda dotted: (counts[dotted], dotted))]


def functions(corpus: Corpus, count: int) -> list[tuple[Path, str]]:
    """Up to so many files, spread over all that import jax and have functions at their own level, each with the
    longest of these, renamed."""
    found = []
    for file in corpus.files:
        text = (corpus.folder / file).read_bytes()
        if _IMPORTS_JAX.search(text) and (function := _longest_function(text)):
            found.append((file, function))
    return found[len(found) // (2 * count) :: max(1, len(found) // count)][:count]


def _longest_function(text: bytes) -> str | None:
    try:
        found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError):
        return None
    if not found:
        return None
    longest = max(found, key=lambda node: (node.end_lineno or 0) - node.lineno)
    longest.name += "_copied"
    return ast.unparse(longest)


def imported_names(text: bytes) -> Iterable[str]:
    """The dotted names that could be modules: `a.b` and `a.b.c` of `from a.b import c`."""
    for source, name, module in _IMPORT.findall(text):
        yield (source or module).decode()
        if name:
            yield f"{source.decode()}.{name.decode()}"


def _dotted(file: Path) -> Iterable[str]:
    """What a file may be imported as, with at least one dot: its path may begin with folders that are no packages."""
    parts = file.with_suffix("").parts
    return (".".join(parts[start:]) for start in range(len(parts) - 1))


def holds_no_gap(path: Path) -> bool:
    """Whether no list in the file's syntax tree has a gap, as `{**a}` and `def f(*, a)` do: jaxlint 0.1.0a1 ends there
    with a traceback, whatever else it was to read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False
    return all(
        None not in value for node in ast.walk(tree) for _, value in ast.iter_fields(node) if isinstance(value, list)
    )
