"""Findings -> fixed files: applies fixes until none is left, and never writes what does not parse."""

from __future__ import annotations

import ast
import codecs
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import libcst as cst

from fusionlint.finding import Finding, Problem, Suggestion
from fusionlint.source.check import Result
from fusionlint.source.deep import refuse_what_is_too_deep
from fusionlint.source.fix import apply, fixes, lines_of, split_lines
from fusionlint.source.judging import check_text
from fusionlint.source.quietly import quietly
from fusionlint.source.read import as_older
from fusionlint.source.scope import Scope
from fusionlint.source.texts import is_notebook, text_of
from fusionlint.source.unread import imports_left
from fusionlint.source.world import World

# Which of the findings in a file's text are to be fixed.
Chosen = Callable[[Sequence[Finding], bytes], Sequence[Finding]]

# Fixes can make room for others; more rounds than this would mean that two of them undo each other.
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Fixed:
    """A file's bytes before and after, how many findings were fixed, and how many there are now."""

    path: str
    before: bytes
    after: bytes
    count: int
    left: int = 0


@dataclass(frozen=True, slots=True)
class AllFixed:
    """The files that fixes change, and why others were left alone."""

    files: tuple[Fixed, ...] = ()
    problems: tuple[Problem, ...] = ()


def fix_files(
    result: Result,
    scope: Scope,
    world: World,
    *,
    unsafe: bool,
    choose: Chosen | None = None,
) -> AllFixed:
    """The files that fixes change, of all findings or of those that are chosen; `world` is what all files of the run
    say. Writes nothing."""
    fixed: list[Fixed] = []
    problems: list[Problem] = []
    for path, found in groupby(result.findings, lambda finding: finding.location.path):
        try:
            fixed.append(fix_text(path, text_of(path), list(found), scope, world, unsafe=unsafe, choose=choose))
        except (RecursionError, MemoryError):  # to look into parts of a file takes less depth than to write it whole
            problems.append(Problem(path, 0, "is nested too deeply to fix"))
    return AllFixed(tuple(one for one in fixed if one.count), tuple(problems))


def fix_text(
    path: str,
    data: bytes,
    findings: Sequence[Finding],
    scope: Scope,
    world: World,
    *,
    unsafe: bool,
    choose: Chosen | None = None,
) -> Fixed:
    """Applies what can be applied to the text `data` of a file, checks again, until nothing is left to fix."""
    before, count = data, 0
    for _ in range(_ROUNDS):
        chosen = fixes(choose(findings, data) if choose else findings, unsafe=unsafe)
        if not chosen:
            break
        after = rewritten(path, data, [*chosen, _of_all(path, data, chosen, world)])
        if after is None:  # one of them breaks the file: the others are good without it
            chosen = [one for one in chosen if rewritten(path, data, [one]) is not None]
            after = rewritten(path, data, chosen)
        if after is None or after == data:
            break
        data, count = after, count + len(chosen)
        findings = check_text(data, path, scope, world)
    return Fixed(path, before, data, count, len(choose(findings, data) if choose else findings))


def _of_all(path: str, data: bytes, chosen: Sequence[Suggestion], world: World) -> Suggestion:
    """What several fixes together leave without a reader, and none of them by itself."""
    edits = [edit for one in chosen for edit in one.edits]
    is_known = len(chosen) > 1 and path in world.project.files
    left = imports_left(path, "".join(lines_of(data)), edits, world.project) if is_known else ()
    return Suggestion("", tuple(edit for edit in left if edit not in edits))


def rewritten(path: str, data: bytes, chosen: Sequence[Suggestion]) -> bytes | None:
    """The file with its edits; None when it does not come back byte for byte from libcst, or would not parse after."""
    refuse_what_is_too_deep(data)
    tree = cst.parse_module(data)
    if tree.bytes != data:
        return None  # a form feed, a lone CR: positions cannot be trusted to the character
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if mark else tree.encoding  # libcst may say utf-8-sig, which writes a mark of its own
    text = data[len(mark) :].decode(encoding)
    after = mark + apply(text, [edit for one in chosen for edit in one.edits]).encode(encoding)
    return after if _still_compiles(path, data, after) and _is_read_by_libcst(after) else None


def _still_compiles(path: str, before: bytes, after: bytes) -> bool:
    """Whether the file compiles, of a notebook each cell, as it did before: by itself or, where it is of a newer Python
    than this one, as its facts were read."""
    if not is_notebook(path):
        return _compiles_as(before, after)
    from fusionlint.source.notebooks import cells_in

    cells = zip(cells_in(before), cells_in(after), strict=True)
    return all(_compiles_as(*cell, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT) for cell in cells)


def _compiles_as(before: bytes, after: bytes, flags: int = 0) -> bool:
    return _compiles(after, flags) or (
        not _compiles(before, flags) and any(_compiles(older, flags) for older in as_older(after))
    )


def _compiles(text: bytes | str, flags: int) -> bool:
    """Not ast.parse, which takes `f(a=1, a=1)`."""
    try:
        with quietly():
            compile(text, "fixed", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _is_read_by_libcst(data: bytes) -> bool:
    try:
        cst.parse_module(data)
    except (ValueError, cst.ParserSyntaxError):
        return False
    return True


def diff(fixed: Fixed) -> str:
    """A unified diff of one file, as `patch -p0` reads it; of a notebook it is one of its code, cell behind cell, for
    people to read: no file holds that text."""
    before, after = (split_lines(data.decode("utf-8", "replace")) for data in (fixed.before, fixed.after))
    name = f"{fixed.path} (its code)" if is_notebook(fixed.path) else fixed.path
    lines = difflib.unified_diff(before, after, name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
