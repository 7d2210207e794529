"""A file -> its Facts, or why it has none."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

from fusionlint.finding import Problem
from fusionlint.source.facts import Facts, Raw
from fusionlint.source.files import module_name, path_in_project
from fusionlint.source.reading import read_raw

# `def f[T](x)`, `class C[T]` and `type X[T] = ...` of Python 3.12, up to brackets in brackets.
_PARAMETERS = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
_GENERIC = re.compile(rf"(\b(?:def|class)\s+\w+)({_PARAMETERS})")
_ALIAS = re.compile(rf"^([ \t]*)type\s+(\w+)({_PARAMETERS})?(\s*=)", re.MULTILINE)


def read_text(data: bytes, path: str) -> Raw | Problem:
    """What is kept of a file's bytes."""
    try:
        return _read(data, path)
    except SyntaxError as error:
        return Problem(path, error.lineno or 0, f"does not parse: {_why_not(error)}")
    except RecursionError:
        return Problem(path, 0, "is nested too deeply to check")
    except (ValueError, MemoryError) as error:
        return Problem(path, 0, f"does not parse: {error or 'it is nested too deeply'}")


def facts_of(raw: Raw, path: str) -> Facts:
    """The facts of the file at `path`, of whose text `raw` was kept."""
    inside, is_package = path_in_project(Path(path)), Path(path).name == "__init__.py"
    return Facts(path, inside, module_name(Path(path)), raw, is_package=is_package)


def read_bytes(data: bytes, path: str) -> Facts:
    """The facts of a text as if it stood at `path`. SyntaxError (ValueError for NUL bytes) when it does not parse."""
    return facts_of(_read(data, path), path)


def _read(data: bytes, path: str) -> Raw:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's invalid escape is not our warning
        try:
            return read_raw(data, path)
        except SyntaxError:
            older = _in_older_syntax(data)
            if older is None:
                raise
            return read_raw(older, path)


def _in_older_syntax(data: bytes) -> str | None:
    """A text without the type parameters of Python 3.12, line by line the same; None where it has none.

    The standard ast reads what the running Python does. libcst reads more, but costs ten times as much, and facts say
    nothing of types.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    older = _ALIAS.sub(lambda m: f"{m[1]}{m[2]}{_line_ends(m[3] or '')}{m[4]}", text)
    older = _GENERIC.sub(lambda m: m[1] + _line_ends(m[2]), older)
    return older if older != text else None


def _line_ends(text: str) -> str:
    # Between a name and what follows a line may only end inside brackets or after a backslash.
    return "\\\n" * text.count("\n")


def _why_not(error: SyntaxError) -> str:
    """What is wrong; where a newer Python may see nothing wrong, that it was this one who looked."""
    text = error.msg
    if sys.version_info < (3, 12) and text.startswith("f-string"):
        text += f" to Python {sys.version_info.major}.{sys.version_info.minor}; a newer one may read it"
    return text
