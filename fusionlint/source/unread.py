"""Imports that a fix leaves without a reader: `from jax import lax`, of which only what it writes anew was read.

In: the lines of a file, and the edits of a fix. Out: the names, each with the edit that takes its import away. Imports
of jax and of Python's own only, and none that has a comment, or stands in a block: an import may be there for what it
does. What other files take from this one its project says.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache

from fusionlint.finding import Edit, Location
from fusionlint.lazily import regex
from fusionlint.source.answers import of_project
from fusionlint.source.asked import EVERYWHERE, IMPORTS
from fusionlint.source.facts import Binding
from fusionlint.source.fix import apply, split_lines
from fusionlint.source.project import Project
from fusionlint.source.quietly import quietly
from fusionlint.source.texts import is_notebook

_PACKAGES = frozenset(("jax", "numpy", "functools", "itertools", "math", "operator"))
_NAME = regex(r"(?<![\w.])[A-Za-z_]\w*")
# What reads no name, as far as that is seen at a glance.
_NO_READER = regex(r"(?m)^(from|import)\s[^\n(]*(\([^)]*\))?|#.*|(?s:\"{3}.*?\"{3})")


@of_project
def _taken(project: Project) -> frozenset[str]:
    """What the files of a project import, `utils.lax`, of a module whose names they all have `utils.*`."""
    project.log.asked.add((EVERYWHERE, IMPORTS))
    return frozenset(
        f"{facts.absolute(target)}{'.*' if name.startswith('*') else ''}"
        for facts in project.files.values()
        for names in facts.raw.bindings.values()
        for name, (kind, target, _) in names.items()
        if kind == "import"
    )


def imports_left(path: str, text: str, edits: Sequence[Edit], project: Project) -> Iterator[Edit]:
    """The edits that take away the imports that `edits` leave without a reader in the file at `path`."""
    facts = project.files[path]
    if facts.is_package or is_notebook(path):
        return  # what a package imports is there for others; of the cells of a notebook any may be run again
    gone = {name for name in _less_read(text, edits) if _is_of_packages(facts.bound("", name))}
    if not gone or (tree := _tree(text)) is None or (left := _tree(apply(text, edits))) is None:
        return
    gone = (gone & _read(tree)) - _read(left)
    gone -= _taken_of(facts.module, gone, project) if gone else set()
    lines = split_lines(text)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from _without(gone, statement, path, lines)


def _less_read(text: str, edits: Sequence[Edit]) -> set[str]:
    """The names of which `edits`, at a glance, leave none in the code. Counted: some files have many fixes."""
    lines, count = _counted(text)
    less: Counter[str] = Counter()
    for edit in edits:
        where = edit.location
        piece = lines[where.line - 1 : where.end_line]
        if piece:  # else it is added at the end
            piece[-1] = piece[-1][: where.end_column - 1]
            piece[0] = piece[0][where.column - 1 :]
        less.update(_NAME.findall("".join(piece)))
        less.subtract(_NAME.findall(edit.text))
    return {name for name, gone in less.items() if gone > 0 and count[name] <= gone}


@lru_cache(maxsize=1)
def _counted(text: str) -> tuple[list[str], Counter[str]]:
    """The lines of a file, and how often its code has each name."""
    return split_lines(text), Counter(_NAME.findall(_NO_READER.sub("", text)))


def _is_of_packages(binding: Binding | None) -> bool:
    return binding is not None and binding.kind == "import" and binding.target.partition(".")[0] in _PACKAGES


def _taken_of(module: str, names: Iterable[str], project: Project) -> set[str]:
    """Those of the names that other files have from the module."""
    taken = _taken(project)
    return {name for name in names if f"{module}.*" in taken or f"{module}.{name}" in taken}


def _tree(text: str) -> ast.Module | None:
    try:
        with quietly():
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _read(tree: ast.Module) -> set[str]:
    """The names that code reads, or a string holds that is more than said: an annotation, what is in `__all__`."""
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in said)
    words = {word for node in texts if isinstance(node.value, str) for word in _NAME.findall(node.value)}
    return words.union(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _without(names: Set[str], statement: ast.Import | ast.ImportFrom, path: str, lines: Sequence[str]) -> list[Edit]:
    """The edits by which a statement does not import those names: all of its lines, or what it says of each."""
    written = lines[statement.lineno - 1 : statement.end_lineno]
    several = statement.names
    gone = [(one.asname or one.name) in names and one.asname != one.name for one in several]  # x as x: for others
    if not any(gone) or not _is_plain(written):
        return []
    if all(gone):
        begin, behind = statement.lineno, statement.lineno + len(written)
        # Of the blank lines before and behind it one is left.
        behind += behind <= len(lines) and begin > 1 and not lines[behind - 1].strip() and not lines[begin - 2].strip()
        return [Edit(Location(path, begin, 1, behind, 1), "")]
    if all(_has_a_line(one, lines) for one, is_gone in zip(several, gone, strict=True) if is_gone):
        numbers = [one.lineno for one, is_gone in zip(several, gone, strict=True) if is_gone]
        return [Edit(Location(path, number, 1, number + 1, 1), "") for number in numbers]
    kept = [ast.unparse(one) for one, is_gone in zip(several, gone, strict=True) if not is_gone]
    first, last = several[0], several[-1]
    end = (last.end_lineno or last.lineno, (last.end_col_offset or 0) + 1)
    return [Edit(Location(path, first.lineno, first.col_offset + 1, *end), ", ".join(kept))]


def _has_a_line(one: ast.alias, lines: Sequence[str]) -> bool:
    return lines[one.lineno - 1].strip().rstrip(",") == ast.unparse(one)


def _is_plain(written: Sequence[str]) -> bool:
    """Whether nothing else stands in the lines of an import, which a new line ends."""
    text = "".join(written)
    return text.isascii() and text.endswith("\n") and not any(mark in text for mark in ("#", ";", "\\"))
