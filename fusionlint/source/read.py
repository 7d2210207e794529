"""A file -> its Facts, or why it has none."""

from __future__ import annotations

import ast
import codecs
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from fusionlint.finding import Problem
from fusionlint.lazily import regex
from fusionlint.source.facts import Facts, Raw
from fusionlint.source.fix import split_lines
from fusionlint.source.quietly import quietly
from fusionlint.source.reading import read_raw
from fusionlint.source.stand import stand

# `def f[T](x)`, `class C[T]` and `type X[T] = ...` of Python 3.12, up to brackets in brackets.
_PARAMETERS = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
_GENERIC = regex(rf"(\b(?:def|class)\s+\w+)({_PARAMETERS})")
_F_STRING = re.compile(rb"""\b[rR]?[fF][rR]?["']""")
# A statement of the file's own level begins here, unless a string or a bracket is open.
_STATEMENT = regex(r"(?!(?:else|elif|except|finally)\b)[^\W\d]|@")
_ALIAS = regex(rf"^([ \t]*)type\s+(\w+)({_PARAMETERS})?(\s*=)", re.MULTILINE)


def read_text(data: bytes, path: str) -> Raw | Problem:
    """What is kept of a file's bytes."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Problem(path, 0, "does not parse: it is in UTF-16, as PowerShell's > writes it; Python reads UTF-8")
    try:
        return _read(data, path)
    except SyntaxError as error:
        return Problem(path, error.lineno or 0, f"does not parse: {why_not(error)}")
    except RecursionError:
        return Problem(path, 0, "is nested too deeply to check")
    except (ValueError, MemoryError) as error:
        return Problem(path, 0, f"does not parse: {error or 'it is nested too deeply'}")


def facts_of(raw: Raw | bytes | Callable[[], bytes], path: str) -> Facts:
    """The facts of the file at `path`, of whose text `raw` was kept, packed or not, or says where to fetch it."""
    where = stand(path)
    return Facts(
        path,
        where.inside,
        where.module,
        raw,
        is_package=where.is_package,
        beside=where.beside,
        is_for_others=where.is_for_others,
    )


def read_bytes(data: bytes, path: str) -> Facts:
    """The facts of a text as if it stood at `path`. SyntaxError (ValueError for NUL bytes) when it does not parse."""
    return facts_of(_read(data, path), path)


def why_not(error: SyntaxError) -> str:
    """What is wrong, and by which grammar: a newer Python may see nothing wrong."""
    return f"{error.msg} (to Python {sys.version_info.major}.{sys.version_info.minor}, which runs fusionlint)"


def _read(data: bytes, path: str) -> Raw:
    with quietly():
        try:
            return read_raw(data, path)
        except SyntaxError as error:
            for older in as_older(data):
                with suppress(SyntaxError):
                    return read_raw(older, path)
            raise error from None


def as_older(data: bytes) -> Iterator[str]:
    """A text of Python 3.12 as an older one reads it, but for its types and strings: line by line the same."""
    for written in (_without_type_parameters, _without_f_strings):
        older = written(data)
        if older is not None:
            yield older


def _without_type_parameters(data: bytes) -> str | None:
    """A text without the type parameters of Python 3.12, line by line the same; None where it has none.

    The standard ast reads what the running Python does. libcst reads more, but costs ten times as much, and facts say
    nothing of types.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    older = _ALIAS.sub(lambda m: f"{m[1]}{m[2]}{_line_ends(m[3] or '')}{m[4]}", text)
    older = _GENERIC.sub(lambda m: m[1] + _line_ends(m[2]), older)
    return older if older != text else None


def _without_f_strings(data: bytes) -> str | None:
    """A text with empty strings for what Python 3.12 lets stand in an f-string, line by line the same; None where
    there is none, or where libcst does not read it either. Facts say nothing of strings."""
    if sys.version_info >= (3, 12) or not _F_STRING.search(data):
        return None
    try:
        lines = split_lines(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    # To find strings in a tree of libcst's takes a hundred times as long as to read a text: only where `ast` fails.
    starts = [number for number, line in enumerate(lines) if _STATEMENT.match(line)]
    texts = ["".join(lines[start:end]) for start, end in itertools.pairwise((0, *starts, len(lines)))]
    parts = [text if _is_read(text) else _blanked(text) for text in texts]
    # A text that is cut where no statement begins, in a string of many lines, is read as a whole.
    text = _blanked("".join(lines)) if None in parts else "".join(filter(None, parts))
    return None if text is None else _without_type_parameters(text.encode()) or text


def _is_read(text: str) -> bool:
    """Whether `ast` reads a part of a file, as far as f-strings go."""
    if not _F_STRING.search(text.encode()):
        return True
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _blanked(text: str) -> str | None:
    """A text with empty strings for its f-strings; None where libcst does not read it."""
    import libcst as cst  # so rare that nothing else here needs it
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        tree = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except cst.ParserSyntaxError:
        return None
    positions = tree.resolve(PositionProvider).items()
    spans = [(at.start, at.end) for node, at in positions if isinstance(node, cst.FormattedString)]
    lines = split_lines(tree.module.code)
    places = [((start.line, start.column), (end.line, end.column)) for start, end in spans]
    for start, end in sorted(places, reverse=True):
        if not any(first < start and end < last for first, last in places):  # else it is gone with the one around it
            _blank(lines, start, end)
    return "".join(lines)


def _blank(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> None:
    """Writes an empty string, over as many lines, between two places; lines are 1-based, columns are not."""
    (first, left), (last, right) = start, end
    before, after = lines[first - 1][:left], lines[last - 1][right:]
    quotes = '"""' if last > first else '"'
    lines[first - 1 : last] = split_lines(before + quotes + "\n" * (last - first) + quotes + after)


def _line_ends(text: str) -> str:
    # Between a name and what follows a line may only end inside brackets or after a backslash.
    return "\\\n" * text.count("\n")
