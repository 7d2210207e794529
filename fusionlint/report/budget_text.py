"""What went beyond its budget -> text: the numbers, and then the barriers at their lines."""

from __future__ import annotations

from collections.abc import Iterator

from fusionlint.explained import Report
from fusionlint.recording import RecordedFunction
from fusionlint.report.explain_head import IN_PYTEST, brief
from fusionlint.report.explain_text import barrier_blocks, report_text
from fusionlint.report.run_text import function_lines
from fusionlint.report.units import counted

_BARRIERS = 5
_HEADINGS = 3  # pytest cuts the explanation of an assertion after eight lines


def launched_text(report: Report, most: int) -> str:
    """The report of a function that has more than `most` launches."""
    launches = counted(report.launches, "launch", "launches")
    if report.launches_per_iteration:
        launches += f" and {report.launches_per_iteration} per iteration of a loop of unknown length"
    said = report_text(report, limit=_BARRIERS, option=IN_PYTEST)
    return f"{launches} on {report.target}, {most} allowed\n\n{said}".rstrip()


def compiled_text(function: RecordedFunction, most: int) -> str:
    """Where a function was compiled more than `most` times, and why again."""
    times = counted(len(function.compilations), "time", "times")
    lines = "\n".join(function_lines("", function, everything=True))
    return f"{function.name.replace('<locals>.', '')} was compiled {times}, {most} allowed\n\n{lines}"


def compared_lines(left: object, operator: str, right: object, report: Report) -> Iterator[str]:
    """What pytest says of a failed assertion on a number of `report`: the dearest barriers, a line each."""
    yield f"{left} {operator} {right}"
    yield brief(report)
    for heading, *_ in barrier_blocks(report, limit=_HEADINGS):
        yield " ".join(heading.replace("; --all shows them", "").split())
