"""Report -> HTML for a notebook: the lines of the text, each barrier under its heading.

Where a click opens it, the page of the command shows which line went into which kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fusionlint.explained import Report
from fusionlint.report.explain_head import IN_PYTHON, head
from fusionlint.report.explain_page import explain_page
from fusionlint.report.explain_text import barrier_blocks

_OPEN = 3  # barriers whose lines are shown unasked
_MAP = "Which line went into which kernel"


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
    if report.kernels:
        yield f"<details><summary>{_MAP}</summary>{_framed(explain_page([report], option=IN_PYTHON))}</details>"
    yield "</div>"


def _preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def _framed(page: str) -> str:
    """A page inside another one, whose styles and names are its own."""
    style = "width:100%;height:32rem;border:1px solid #ccc;resize:vertical"
    return f'<iframe srcdoc="{escape(page)}" title="{_MAP}" style="{style}"></iframe>'
