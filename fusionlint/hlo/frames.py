"""Where an instruction comes from: the source tables at the head of HLO text, and `metadata={...}` of either format.

Up to jax 0.8 each instruction names its innermost frame inline; later texts hold tables of whole stacks at the head
and a `stack_frame_id` in the metadata. Both print columns from 0; a Frame counts them from 1, end exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from fusionlint import pinned

_STRING = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_ROW = re.compile(rf"(\d+) (?:{_STRING}|\{{(.*)\}})\s*$")
_FIELD = re.compile(rf"([\w.\-]+)=(?:{_STRING}|([^\s}}]+))")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
# Who calls a test, or a cell of a notebook, is no caller of the program's.
_RUNS_CODE = re.compile(r"(?:site|dist)-packages[/\\](?:_pytest|pluggy|IPython|ipykernel)[/\\]")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True, slots=True)
class Frame:
    """One user frame of an instruction's source stack; line and column are 1-based, None where HLO has none."""

    path: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""
    is_rule: bool = False  # jax calls it for a step: a hand-written gradient, what a primitive is made of


# The calls on the way to an instruction, innermost first.
Stack = tuple[Frame, ...]
Stacks = Mapping[int, Stack]


def read_tables(lines: Sequence[str], start: int) -> tuple[Stacks, int]:
    """The stack of every frame id, from the tables at `start`; and the number of the line after the tables."""
    tables: dict[str, dict[int, str]] = {title: {} for title in _TABLES}
    title = ""
    for number in range(start, len(lines)):
        line = lines[number]
        if line in tables:
            title = line
        elif row := _ROW.match(line):
            if title:
                tables[title][int(row[1])] = row[3] if row[2] is None else row[2]
        elif line.strip():
            return _stacks(tables), number
    return _stacks(tables), len(lines)


def read_metadata(text: str, stacks: Stacks) -> tuple[str, tuple[Frame, ...]]:
    """`op_name` and source stack of the text of one `metadata={...}`, of either format."""
    fields = _fields(text)
    stack = stacks.get(int(fields.get("stack_frame_id", 0)), ())
    if not stack and "source_file" in fields:
        inline = {key.removeprefix("source_"): value for key, value in fields.items()}
        stack = (_frame(inline["file"], "", inline),)
    return fields.get("op_name", ""), stack


def unescape(text: str) -> str:
    """The C escapes of a printed string, resolved; XLA writes bytes beyond ASCII in octal."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescaped, text.encode()).decode(errors="replace")


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    return _LETTERS.get(code, code)


def _fields(text: str) -> dict[str, str]:
    return {key: unescape(string) or plain for key, string, plain in _FIELD.findall(text)}


def _frame(path: str, function: str, fields: Mapping[str, str]) -> Frame:
    column, end_column = int(fields.get("column", 0)), int(fields.get("end_column", 0))
    # No range at all: Python 3.10 has none. A start at column 0 alone is a real one.
    known = end_column > 0
    return Frame(
        path=path,
        line=int(fields.get("line", 0)),
        column=column + 1 if known else None,
        end_line=int(fields["end_line"]) if known and "end_line" in fields else None,
        end_column=end_column + 1 if known else None,
        function=function,
    )


def _stacks(tables: Mapping[str, Mapping[int, str]]) -> Stacks:
    files, functions = ({key: unescape(row) for key, row in tables[title].items()} for title in _TABLES[:2])
    locations = {}
    for key, row in tables["FileLocations"].items():
        fields = _fields(row)
        path = files.get(int(fields.get("file_name_id", 0)), "")
        function = functions.get(int(fields.get("function_name_id", 0)), "")
        locations[key] = _frame(path, function, fields)
    rows = {key: _fields(row) for key, row in tables["StackFrames"].items()}
    parents = _parents({key: int(row.get("parent_frame_id", 0)) for key, row in rows.items()})
    frames = {key: locations.get(int(row.get("file_location_id", 0))) for key, row in rows.items()}
    return {key: _without_repeats(frames.get(step) for step in _path(key, parents)) for key in rows}


def _without_repeats(frames: Iterable[Frame | None]) -> tuple[Frame, ...]:
    stack = _with_rules(frame for frame in frames if frame is not None)
    return folded(takewhile(lambda frame: not _RUNS_CODE.search(frame.path), stack))


def _with_rules(frames: Iterable[Frame]) -> list[Frame]:
    """The calls inside of a rule, and behind them those of its step: not those by which jax came to the rule. The path
    to one of those, which the tables hold too, begins with the step."""
    stack: list[Frame] = []
    for frame in frames:
        if frame.path == pinned.FILE:
            inside = len(stack) - pinned.callers_at(frame.line)
            stack = [*stack[: inside - 1], replace(stack[inside - 1], is_rule=True)] if inside > 0 else []
        else:
            stack.append(frame)
    return stack


def folded(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """A stack in which what is repeated stands once. A scan is traced and lowered from inside itself: its line, and
    those behind it up to the loop around, stand in the stack three times in a row."""
    stack = [*frames]
    if len({*stack}) == len(stack):
        return tuple(stack)
    for period in range(1, len(stack) // 2 + 1):
        start = 0
        while start + 2 * period <= len(stack):
            if stack[start : start + period] == stack[start + period : start + 2 * period]:
                del stack[start : start + period]
            else:
                start += 1
    return tuple(stack)


def _parents(printed: Mapping[int, int]) -> dict[int, int]:
    # XLA prints a parent one too high (1 for "none"). Once it does not, roots will say 0 or nothing.
    off = 0 if 0 in printed.values() else 1
    return {key: parent - off for key, parent in printed.items()}


def _path(key: int, parents: Mapping[int, int]) -> Iterable[int]:
    seen: dict[int, None] = {}
    while key in parents and key not in seen:
        seen[key] = None
        key = parents[key]
    return seen
