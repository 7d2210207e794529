"""Findings -> fixed files: applies fixes until none is left, and never writes what does not parse."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.source.check import Result, Scope, World, check_text
from fusionlint.source.fix import apply, fixes

# Fixes can make room for others; more rounds than this would mean that two of them undo each other.
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Fixed:
    """A file's bytes before and after, and how many findings were fixed."""

    path: str
    before: bytes
    after: bytes
    count: int


def fix_files(result: Result, scope: Scope, *, unsafe: bool) -> list[Fixed]:
    """The files that fixes change. Writes nothing."""
    by_path = groupby(result.findings, lambda finding: finding.location.path)
    fixed = [fix_file(path, list(found), scope, result.world, unsafe=unsafe) for path, found in by_path]
    return [one for one in fixed if one.count]


def fix_file(path: str, findings: Sequence[Finding], scope: Scope, world: World, *, unsafe: bool) -> Fixed:
    """Applies what can be applied, checks again, and so on until nothing is left to fix. Writes nothing."""
    before = data = Path(path).read_bytes()
    count = 0
    for _ in range(_ROUNDS):
        chosen = fixes(findings, unsafe=unsafe)
        after = _rewrite(data, [edit for s in chosen for edit in s.edits]) if chosen else None
        if after is None or after == data:
            break
        data, count = after, count + len(chosen)
        findings = check_text(data, path, scope, world)
    return Fixed(path, before, data, count)


def _rewrite(data: bytes, edits: list[Edit]) -> bytes | None:
    """The file with its edits; None when it does not come back byte for byte from libcst, or would not parse after."""
    tree = cst.parse_module(data)
    if tree.bytes != data:
        return None  # a form feed, a lone CR: positions cannot be trusted to the character
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data[len(mark) :].decode(tree.encoding)
    after = mark + apply(text, edits).encode(tree.encoding)
    try:
        cst.parse_module(after)
    except cst.ParserSyntaxError:
        return None
    return after


def diff(fixed: Fixed) -> str:
    """A unified diff of one file, as `patch -p0` reads it."""
    before = fixed.before.decode("utf-8", "replace").splitlines(keepends=True)
    after = fixed.after.decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(difflib.unified_diff(before, after, fixed.path, fixed.path))
