"""[Report] -> one HTML page that needs nothing else: the totals, and of each report which line went into which kernel.

The lines of the source stand beside a column for each kernel, and what is said of a barrier below its line. A column is
as high as its kernel takes long. To look at a column, or a barrier, marks the kernels that write and read. What stands
between the tags is well-formed XML.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from fusionlint.explained import Report, Totals
from fusionlint.report.explain_head import head
from fusionlint.report.explain_text import Block, blocks
from fusionlint.report.fusion_map import Column, File, Map, Row, fusion_map
from fusionlint.report.source_lines import characters, short_path
from fusionlint.report.trials_text import trials_block
from fusionlint.report.units import counted, duration, size

# What XML cannot hold: control characters, and bytes of a path that are no UTF-8.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_OPEN = 5  # barriers whose lines are shown unasked
_HEIGHT = 56  # pixels, of the dearest kernel
_DIGITS = 2  # side by side, as wide as a column
_FUSIONS = ("loop", "input", "output", "custom")
_OTHERS = ("library call", "custom call", "copy", "collective", "scalar")


def explain_page(
    reports: Sequence[Report],
    errors: Sequence[str] = (),
    title: str = "",
    text: str = "",
    option: str = "--target",
) -> str:
    """The page of some reports, after a `text` of any length; and what could not be reported on, in a line each.
    `option` is what names a target. It is ASCII, and so the same in whatever encoding it is written."""
    parts = [f"<pre>{escape(text)}</pre>"] if text else []
    parts += [f'<p class="error">{escape(error)}</p>' for error in errors]
    parts += _contents(reports) if len(reports) > 1 else ()
    parts += (part for number, report in enumerate(reports) for part in _section(number, report, option))
    style, script = (files(__package__).joinpath(f"explain_page.{end}").read_text("utf-8") for end in ("css", "js"))
    title = title or " ".join(("fusionlint explain", *dict.fromkeys(report.entry for report in reports)))
    first = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
    first += '<meta name="viewport" content="width=device-width"/>'
    top = f"<title>{escape(title)}</title>\n<style>\n{style}</style></head><body>"
    page = "\n".join((first, top, *parts, f"<script>\n{script}</script></body></html>", ""))
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", page).encode("ascii", "xmlcharrefreplace").decode()


def _contents(reports: Sequence[Report]) -> Iterator[str]:
    """One table of all totals."""
    heads = ("function", "target", "launches", "bytes", "time", "barriers")
    yield f'<table class="totals"><tr>{"".join(f"<th>{name}</th>" for name in heads)}</tr>'
    for number, report in enumerate(reports):
        said = (report.target, *_costs(report.totals), str(len(report.barriers)))
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in said)
        yield f'<tr><td><a href="#r{number}">{escape(report.entry)}</a></td>{cells}</tr>'
    yield "</table>"


def _costs(totals: Totals) -> Iterator[str]:
    """Launches, bytes and time, each with what comes on top per iteration of a loop of unknown length."""
    again = totals.launches_per_iteration
    yield str(totals.launches) + (f" + {again} per iteration" if again else "")
    yield size(totals.bytes) + (f" + {size(totals.bytes_per_iteration)} per iteration" if again else "")
    time, more = totals.microseconds, totals.microseconds_per_iteration
    once = "" if time is None else duration(time)
    yield once + (f" + {duration(more)} per iteration" if again and more is not None else "")


def _section(number: int, report: Report, option: str) -> Iterator[str]:
    first, totals, *lines = head(report, option)
    told, drawn = blocks(report), fusion_map(report)
    yield f'<section id="r{number}"><h1>{escape(first)}</h1><p class="sum">{escape(totals)}</p>'
    yield from (f"<p>{escape(line)}</p>" for line in lines)
    if drawn.columns:
        yield _legend(drawn)
        yield f'<table class="map" style="--columns:{len(drawn.columns)}"><thead>'
        yield from _header(drawn)
        yield "</thead>"
        for file in drawn.files:
            yield from _file(file, drawn.columns, told)
        yield "</table>"
    if report.trials is not None:
        yield f"<pre>{escape(chr(10).join(trials_block(report.trials)))}</pre>"
    nowhere = [block for block in told if block.frame is None]
    yield from (f"<h2>{escape(block.place)}</h2>{_barrier(block)}" for block in nowhere)
    yield "</section>"


def _legend(drawn: Map) -> str:
    more = f", {counted(drawn.left_out, 'cheaper one', 'cheaper ones')} left out" if drawn.left_out else ""
    high = "it takes long" if drawn.timed else "it moves bytes"
    once = " in one iteration of a loop of unknown length" if any(c.kernel.per_iteration for c in drawn.columns) else ""
    said = f"A column is a kernel, as high as {high}{once}; they are launched in this order{more}. "
    said += "Full: work that is written on the line; hollow: work that it calls; red: a value comes out."
    kinds = dict.fromkeys(map(_kind, drawn.columns))
    named = "".join(f' <span><i class="{kind.replace(" ", "-")}"></i> {escape(kind)}</span>' for kind in kinds)
    return f'<p class="legend">{said}{named}</p>'


def _header(drawn: Map) -> Iterator[str]:
    """The loops around the columns, then a bar for each kernel."""
    for depth in sorted({span.depth for span in drawn.spans}):
        yield f'<tr class="loops"><th></th>{_loops_at(depth, drawn)}<th></th></tr>'
    most = max(column.share for column in drawn.columns) or 1.0
    bars = ""
    for column in drawn.columns:
        height = max(2, round(_HEIGHT * column.share / most))
        bar = f'<i class="{_class(column)}" style="height:{height}px"></i><b>{column.number}</b>'
        name = f'data-kernel="{escape(column.kernel.name)}"'
        bars += f'<th {name} title="{escape(_told(column, drawn.timed))}">{bar}</th>'
    yield f'<tr class="bars"><th></th>{bars}<th></th></tr>'


def _loops_at(depth: int, drawn: Map) -> str:
    cells, place = "", 0
    for span in (span for span in drawn.spans if span.depth == depth):
        trips = "?" if span.loop.trip_count is None else str(span.loop.trip_count)
        line = f", line {span.loop.frame.line}" if span.loop.frame else ""
        wide = span.last - span.first + 1
        upright = " upright" if len(trips) >= _DIGITS * wide else ""
        cells += "<th></th>" * (span.first - place)
        told = f'class="turns{upright}" colspan="{wide}" title="{trips} times{line}"'
        cells += f"<th {told}><span>{trips}×</span></th>"
        place = span.last + 1
    return cells + "<th></th>" * (len(drawn.columns) - place)


def _file(file: File, columns: Sequence[Column], told: Sequence[Block]) -> Iterator[str]:
    here: defaultdict[int, list[Block]] = defaultdict(list)
    for block in told:
        if block.frame and block.frame.path == file.path:
            here[block.frame.line].append(block)
    kind = ' class="installed"' if file.installed else ""
    name = short_path(file.path) + ("" if file.there else " (its text is not here)")
    yield f'<tbody{kind}><tr class="file"><th colspan="{len(columns) + 2}">{escape(name)}</th></tr>'
    for number, stretch in enumerate(file.stretches):
        if number:
            yield f'<tr><th class="n">⋯</th>{_cells(columns, {})}<td></td></tr>'
        for row in stretch:
            yield from _row(row, columns, here.get(row.line, ()))
    yield "</tbody>"


def _row(row: Row, columns: Sequence[Column], told: Sequence[Block]) -> Iterator[str]:
    """The line, and below it what is said of its barriers."""
    writers = frozenset[str]().union(*(block.writers for block in told))
    marks: dict[int, str] = {column.number: mark for column, mark in zip(columns, row.marks, strict=True) if mark}
    for column in columns:
        # A copy has no line of its own: it stands where the value is made that it copies.
        if column.kernel.name in writers:
            marks[column.number] = f"{marks.get(column.number, 'called')} out"
    kind = ' class="barrier"' if told else ""
    code = f'<td class="code">{_code(row, told)}</td>'
    yield f'<tr{kind}><th class="n">{row.line}</th>{_cells(columns, marks)}{code}</tr>'
    for block in told:
        yield f'<tr class="said"><th></th>{_cells(columns, {})}<td>{_barrier(block)}</td></tr>'


def _cells(columns: Sequence[Column], marks: Mapping[int, str]) -> str:
    """A cell in each column, marked where `marks` has the column's number. Its place alone says which column it is: a
    page has up to a hundred thousand of them."""
    cells = ""
    for column in columns:
        mark = marks.get(column.number)
        cells += "<td>" + (f'<i class="{mark} {_class(column)}"></i>' if mark else "") + "</td>"
    return cells


def _code(row: Row, told: Sequence[Block]) -> str:
    """The text of the line, what the first barrier is about underlined."""
    found = characters(told[0].frame, row.text) if told and told[0].frame else None
    if found is None:
        return escape(row.text)
    start, end = found
    return f"{escape(row.text[:start])}<u>{escape(row.text[start:end])}</u>{escape(row.text[end:])}"


def _barrier(block: Block) -> str:
    names = " ".join(
        f'data-{word}="{escape(" ".join(sorted(kernels)))}"'
        for word, kernels in (("writers", block.writers), ("readers", block.readers))
    )
    said = "".join(
        f"<p>{escape(line.strip())}</p>"
        for line in filter(None, (block.gradient, block.callers, *block.said, block.advice))
    )
    summary = f"<b>{block.number}. {escape(block.cause)}</b> <span>{escape(block.cost)}</span>"
    opened = ' open=""' if block.number <= _OPEN else ""
    return f"<details{opened} {names}><summary>{summary}</summary>{said}</details>"


def _told(column: Column, timed: bool) -> str:
    """`7. input_concatenate_fusion, input: slice, concatenate; 10 launches, 98 kB and 2 us each; 45 % of the time`."""
    kernel = column.kernel
    often = counted(kernel.launches, "launch", "launches") + (" per iteration" if kernel.per_iteration else "")
    takes = f" and {duration(kernel.microseconds)}" if kernel.microseconds is not None else ""
    each = f"{size(kernel.bytes_read + kernel.bytes_written)}{takes}" + (" each" if kernel.launches > 1 else "")
    what = f"{column.number}. {kernel.name}, {kernel.kind}: {', '.join(kernel.opcodes)}"
    return f"{what}; {often}, {each}; {100 * column.share:.0f} % of the {'time' if timed else 'bytes'}"


def _kind(column: Column) -> str:
    """As the legend says it: there are as many kinds of unfused operations as there are opcodes."""
    kind = column.kernel.kind
    return f"{kind} fusion" if kind in _FUSIONS else kind if kind in _OTHERS else "one operation"


def _class(column: Column) -> str:
    return _kind(column).replace(" ", "-")
