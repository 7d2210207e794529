"""Report -> HTML for a notebook: the lines of the text, each barrier under its heading."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fusionlint.explained import Report
from fusionlint.report.explain_head import IN_PYTHON, head
from fusionlint.report.explain_text import barrier_blocks

_OPEN = 3  # barriers whose lines are shown unasked


def report_html(report: Report) -> str:
    """The report, with all barriers: the dearest are open, a click opens the others."""
    return "\n".join(_parts(report))


def _parts(report: Report) -> Iterator[str]:
    first, *lines = head(report, IN_PYTHON)
    yield '<div class="fusionlint">'
    yield f"<strong>{escape(first)}</strong>"
    yield _preformatted(lines)
    for number, (heading, *rest) in enumerate(barrier_blocks(report, everything=True)):
        is_open = " open" if number < _OPEN else ""
        yield f"<details{is_open}><summary><code>{escape(heading)}</code></summary>{_preformatted(rest)}</details>"
    yield "</div>"


def _preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""
