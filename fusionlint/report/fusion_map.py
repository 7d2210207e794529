"""Report -> which line of the source went into which kernel: a column for each kernel, a row for each line.

What stands side by side in one column was fused; a value that goes from one column to another crosses memory.
"""

from __future__ import annotations

import linecache
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from fusionlint.explained import Report
from fusionlint.hlo.kernels import Kernel, Loop, loops_around
from fusionlint.hlo.lines import Lines
from fusionlint.report.source_lines import is_installed

MOST = 60  # columns: of more kernels the dearest are shown
_AROUND = 2  # lines before and after those that went into a kernel

Mark = Literal["", "called", "written"]


class Column(NamedTuple):
    """A kernel, its number among all in schedule order, and its part of the time of all, from 0 to 1: of the bytes,
    where nothing is known about the time."""

    number: int
    kernel: Kernel
    share: float


class Span(NamedTuple):
    """The columns `first` to `last` of what a loop holds; `depth` 0 is outermost."""

    first: int
    last: int
    depth: int
    loop: Loop


class Row(NamedTuple):
    """A line of a file, and for each column whether work of that kernel is written there, or only called."""

    line: int
    text: str
    marks: tuple[Mark, ...]


class File(NamedTuple):
    """The stretches of a file's lines that went into kernels, with those around them. `installed` is a library's;
    the text of one that is not `there` is empty."""

    path: str
    installed: bool
    there: bool
    stretches: tuple[tuple[Row, ...], ...]


class Map(NamedTuple):
    """`left_out` counts the kernels that have no column; shares are of the time where they are `timed`."""

    columns: tuple[Column, ...]
    spans: tuple[Span, ...]
    files: tuple[File, ...]
    left_out: int
    timed: bool


def fusion_map(report: Report, most: int = MOST) -> Map:
    """The map of a report. A file's text is read from where it lies; of one that is not there the lines are empty."""
    timed = any(kernel.microseconds for kernel in report.kernels)
    weights = [_weight(kernel, timed) for kernel in report.kernels]
    dearest = sorted(range(len(weights)), key=lambda i: -weights[i])[:most]
    whole = math.fsum(weights) or 1.0
    columns = tuple(Column(i + 1, report.kernels[i], weights[i] / whole) for i in sorted(dearest))
    spans, files = tuple(_spans(columns, report.loops)), _files(report, columns)
    return Map(columns, spans, files, len(weights) - len(columns), timed)


def _weight(kernel: Kernel, timed: bool) -> float:
    each = (kernel.microseconds or 0.0) if timed else float(kernel.bytes_read + kernel.bytes_written)
    return kernel.launches * each


def _spans(columns: Sequence[Column], loops: Iterable[Loop]) -> Iterator[Span]:
    """The loops that the columns stand in, outer ones first."""
    by_name = {loop.name: loop for loop in loops}
    inside: dict[tuple[str, int], list[int]] = {}
    for place, column in enumerate(columns):
        for depth, loop in enumerate(reversed([*loops_around(column.kernel, by_name)])):
            inside.setdefault((loop.name, depth), []).append(place)
    for (name, depth), places in inside.items():
        yield Span(places[0], places[-1], depth, by_name[name])


def _files(report: Report, columns: Sequence[Column]) -> tuple[File, ...]:
    """Those of the user's own first, and first of these the one that most kernels have work of."""
    written = [report.written_in.get(column.kernel.name, {}) for column in columns]
    called = [report.lines_of_kernels.get(column.kernel.name, {}) for column in columns]
    barriers = _lines_of_barriers(report)
    paths = dict.fromkeys(path for lines in (*written, *called, barriers) for path in lines)
    files = (_file(path, written, called, barriers) for path in paths)
    kernels = Counter(path for lines in written for path in lines)
    return tuple(sorted(files, key=lambda file: (file.installed, -kernels[file.path])))


def _lines_of_barriers(report: Report) -> Lines:
    """A barrier's line may be that of work which lost its own on the way into a kernel."""
    frames = (one.barrier.stack[0] for one in report.barriers if one.barrier.stack)
    found: dict[str, list[tuple[int, int]]] = {}
    for frame in frames:
        found.setdefault(frame.path, []).append((frame.line, frame.line))
    return {path: tuple(stretches) for path, stretches in found.items()}


def _file(path: str, written: Sequence[Lines], called: Sequence[Lines], barriers: Lines) -> File:
    work, calls = [_numbers(lines, path) for lines in written], [_numbers(lines, path) for lines in called]
    said = _numbers(barriers, path)
    told = sorted(said.union(*work, *calls))
    last = len(linecache.getlines(path))
    stretches = (
        tuple(_row(path, line, work, calls) for line in stretch) for stretch in _stretches(told, last or told[-1])
    )
    return File(path, is_installed(path), bool(last), tuple(_without_blank_ends(rows, said) for rows in stretches))


def _numbers(lines: Lines, path: str) -> set[int]:
    return {line for first, last in lines.get(path, ()) for line in range(first, last + 1)}


def _stretches(told: Sequence[int], last: int) -> Iterator[range]:
    """What is shown of a file of `last` lines: those that are told of, with some around them."""
    begin, end = 1, 0
    for line in told:
        if line - _AROUND > end + 1:
            if end:
                yield range(begin, end + 1)
            begin = max(1, line - _AROUND)
        end = max(line, min(last, line + _AROUND))
    yield range(begin, end + 1)


def _without_blank_ends(rows: tuple[Row, ...], said: Container[int]) -> tuple[Row, ...]:
    """Of a file that is not there every line is blank: those that are told of stay, and where something is `said`."""
    kept = [i for i, row in enumerate(rows) if row.text.strip() or any(row.marks) or row.line in said]
    return rows[kept[0] : kept[-1] + 1] if kept else rows


def _row(path: str, line: int, written: Sequence[set[int]], called: Sequence[set[int]]) -> Row:
    marks: tuple[Mark, ...] = tuple(
        "written" if line in work else "called" if line in calls else ""
        for work, calls in zip(written, called, strict=True)
    )
    return Row(line, linecache.getline(path, line).rstrip(), marks)
