"""A notebook's code as one Python text, cell behind cell, and back.

In: the bytes of an .ipynb file. Out: Python in which a comment says where each cell begins, and what IPython alone
understands (`%time`, `!ls`, `%%bash`) stands in comments, on lines of its own, as does a cell that does not parse; or
the bytes of the notebook whose cells hold that text. Cells are counted from the top, those of text too, from 1.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from fusionlint.source.quietly import quietly
from fusionlint.source.read import as_older, why_not

_BEGINS = "# %% fusionlint: cell "
_CELL = re.compile(rf"^{_BEGINS}(\d+)\n", re.MULTILINE)
# Cells that begin so hold Python all the same.
_OF_PYTHON = re.compile(r"%%(capture|debug|prun|python3?|time|timeit)\b")
# What IPython understands, by lines: `%time f()`, `!ls`, `?f`, `f?`, `files = !ls`.
_MAGIC = re.compile(r"^(?P<indent>\s*)(?P<name>[\w.,\s]+=\s*)?(?P<magic>[%!].*|\?+[\w.*]+|[\w.*%]+\?+)$")
_KEPT, _NOTHING, _LEFT_OUT = "  # IPython: ", "None", "# IPython: "
# Lines of a cell that does not parse: the others are read without it.
_BROKEN = "# does not parse: "
# A string of JSON, with the colon behind it where it is a key; brackets, commas, and what else there is.
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}\[\],]|[^\s{}\[\]",:]+')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)")
_UNDONE = re.compile(rf"^(\s*)(?:pass|([\w.,\s]+=\s*){_NOTHING}){_KEPT}(.*)$|^(?:{_LEFT_OUT}|{_BROKEN})(.*)$")


@lru_cache(maxsize=4)  # of one notebook it is asked again and again
def code_of(data: bytes) -> bytes:
    """The code of a notebook, "" of one that is in another language. ValueError for what is no notebook."""
    cells = _cells(_read(data))
    return "".join(f"{_BEGINS}{number}\n{_python(_body(cell))}\n" for number, cell in cells).encode()


def with_code(data: bytes, code: bytes) -> bytes:
    """The notebook `data` with the code that `code_of` gave, or what became of it: of cells that are as they were, and
    of all that is no code, no byte changes."""
    notebook, text = _read(data), data.decode()
    _, *parts = _CELL.split(code.decode())
    now = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    spans = _sources(text)
    for number, cell in reversed([*_cells(notebook)]):
        before, after = _source(cell), _as_typed(now[number].removesuffix("\n"))
        after += "\n" * before.endswith("\n")
        if after != before:
            start, end = spans[number]
            text = text[:start] + _as_json(after, text[start:end]) + text[end:]
    return text.encode()


def cells_in(code: bytes) -> list[bytes]:
    """The cells that a notebook's code is made of, each by itself, as IPython compiles them."""
    return [cell.encode() for cell in _CELL.split(code.decode())[2::2]]


def broken_in(code: bytes) -> Iterator[tuple[int, str]]:
    """The line of a notebook's code that is wrong in each cell that does not parse, and why."""
    if _BROKEN.encode() not in code:
        return
    lines = code.decode().split("\n")
    for start, _ in _starts(code.decode()):
        cell = list(itertools.takewhile(lambda line: line.startswith(_BROKEN), lines[start:]))
        python = "\n".join(_lines_of_python([line.removeprefix(_BROKEN) for line in cell]))
        error = _error("\n" * start + python) if cell else None
        if error and error[0]:  # else no comment can hold it either: the notebook as a whole does not parse
            yield error


def cell_at(code: str, line: int) -> tuple[int, int]:
    """The cell of a line of a notebook's code, and the number of the line there."""
    found = _starts(code)
    here = bisect_right(found, (line, 0)) - 1
    start, cell = found[max(here, 0)]
    return cell, max(line - start, 1)


def line_in_file(data: bytes, cell: int, line: int) -> int:
    """The line of the notebook's JSON in which a line of a cell stands, or the first of what it is in."""
    text = data.decode()
    start, end = _sources(text)[cell]
    begun = 0  # how many lines of the cell are over
    for token in _TOKEN.finditer(text, start, end):
        if token[1]:
            begun += json.loads(token[1]).count("\n")
            start = token.start()
            if begun >= line:
                break
    return text.count("\n", 0, start) + 1


@lru_cache(maxsize=4)
def _starts(code: str) -> Sequence[tuple[int, int]]:
    """The lines that say where a cell begins, and which one."""
    lines = code.split("\n")
    found = ((line, text.removeprefix(_BEGINS)) for line, text in enumerate(lines, 1) if text.startswith(_BEGINS))
    return tuple((line, int(cell)) for line, cell in found if cell.isdecimal())


def _read(data: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(data)
    except ValueError as error:  # what is no UTF-8 too
        raise ValueError(f"no notebook: {error}") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("no notebook of version 4: it has no cells")
    return notebook


def _cells(notebook: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cells of Python, and their numbers."""
    about = notebook.get("metadata", {})
    named = [about.get(kind, {}).get(key) for kind, key in (("language_info", "name"), ("kernelspec", "language"))]
    if not {*named} <= {None, "python", "ipython"}:
        return
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("cell_type") == "code":
            yield number, cell


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else source


def _body(cell: dict[str, Any]) -> str:
    """The source of a cell, without the end of its last line, which most cells do not have."""
    return _source(cell).removesuffix("\n")


def _python(source: str) -> str:
    """The code of a cell as Python has it, line for line."""
    if _error(source) is None:
        return source
    lines = source.split("\n")
    if lines[0].startswith("%%") and not _OF_PYTHON.match(lines[0]):
        return "\n".join(f"{_LEFT_OUT}{line}" for line in lines)
    python = "\n".join(_lines_of_python(lines))
    if _error(python) and all(map(_error, as_older(python.encode()))):
        return "\n".join(f"{_BROKEN}{line}" for line in lines)
    return python


def _lines_of_python(lines: Sequence[str]) -> Iterator[str]:
    goes_on = False  # a command of the shell, on the next line
    for line in lines:
        found = _MAGIC.match(line)
        if goes_on:
            yield f"{_LEFT_OUT}{line}"
        elif found is None:
            yield line
        else:
            instead = f"{found['name']}{_NOTHING}" if found["name"] else "pass"
            yield f"{found['indent']}{instead}{_KEPT}{found['magic']}"
        goes_on = (goes_on or found is not None) and line.endswith("\\")


def _as_typed(code: str) -> str:
    """What `_python` made of a cell, as it was."""
    return "\n".join(map(_line_as_typed, code.split("\n")))


def _line_as_typed(line: str) -> str:
    if (found := _UNDONE.match(line)) is None:
        return line
    indent, name, magic, left_out = found.groups(default="")
    return left_out if line.startswith((_LEFT_OUT, _BROKEN)) else f"{indent}{name}{magic}"


def _error(source: str) -> tuple[int, str] | None:
    """The line that does not parse, 0 where none is to blame, and why; None where all do."""
    try:
        with quietly():
            ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 0, why_not(error)
    except ValueError as error:
        return 0, str(error)
    return None


@lru_cache(maxsize=1)
def _sources(text: str) -> dict[int, tuple[int, int]]:
    """Where in a notebook's JSON the source of each cell begins and ends."""
    found: dict[int, tuple[int, int]] = {}
    way: list[int | str] = []  # keys and places of what is open around, the last one of what comes next
    begun = -1
    for token in _TOKEN.finditer(text):
        kind = token[0][0]
        is_key = kind == '"' and token[2] is not None
        if is_key:
            way[-1] = json.loads(token[1])
        elif kind == ",":
            way[-1] = way[-1] + 1 if isinstance(way[-1], int) else ""
        elif kind in "]}":
            way.pop()
        if way[:1] == ["cells"] and way[2:] == ["source"] and not is_key and kind != ",":
            begun = token.start() if begun < 0 else begun
            if kind not in "[":
                found[int(way[1]) + 1], begun = (begun, token.end()), -1
        if kind in "[{":
            way.append(0 if kind == "[" else "")
    return found


def _as_json(source: str, before: str) -> str:
    """The source of a cell as JSON, written as it was before: lines that were there stay as they are."""
    if not before.startswith("["):
        return _escaped(source, before)
    lines = [token[1] for token in _TOKEN.finditer(before) if token[1]]
    if not lines:
        return json.dumps(_split(source))
    known = {json.loads(line): line for line in lines}
    opening, closing = before[: before.index(lines[0])], before[before.rindex(lines[-1]) + len(lines[-1]) :]
    written = [known.get(line) or _escaped(line, before) for line in _split(source)]
    return opening + f",{opening[1:]}".join(written) + closing


def _escaped(text: str, before: str) -> str:
    """A string as JSON, with those characters as numbers that are so in `before`: Colab writes `<` as one."""
    written = json.dumps(text, ensure_ascii=False)
    numbers = {found[0] for found in _ESCAPE.finditer(before) if found[0][1] == "u"}
    known = {json.loads(f'"{number}"'): number for number in numbers}
    return "".join(number if (number := known.get(char)) and char not in '"\\' else char for char in written)


def _split(source: str) -> list[str]:
    """The lines of a cell, each with its end."""
    *lines, last = source.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]
