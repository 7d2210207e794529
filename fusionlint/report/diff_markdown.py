"""Diff -> GitHub-flavoured Markdown, fit for a comment on a pull request: a table, and the barriers to unfold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fusionlint.diff.barriers import BarrierChange
from fusionlint.diff.compare import Diff, FunctionChange, ProgramChange
from fusionlint.report.diff_cells import (
    HEADINGS,
    SHOWN,
    Row,
    advice,
    again,
    called,
    cause,
    cost,
    errors,
    moved,
    place,
    reasons,
    rows,
    summary,
    versions,
)

_BOLD = {"worse", "no report after"}


def diff_markdown(diff: Diff, everything: bool = False) -> str:
    """The whole of it, ending in a newline: what changed, or `everything`."""
    blocks = [
        f"### fusionlint: {summary(diff)}",
        "\n".join(_head(diff)),
        "\n".join(_table([*rows(diff, everything)])),
    ]
    for function in diff.functions:
        blocks.append("\n".join(f"- {_code(function.name)} {_plain(line)}" for line in again(function)))
        blocks += [_program(function, program, everything) for program in function.programs]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _head(diff: Diff) -> Iterator[str]:
    over = f" Tolerance: {diff.tolerance:g} %." if diff.tolerance else ""
    said = "".join(f" {line[0].upper()}{line[1:]}." for line in versions(diff))
    yield f"{_code(diff.before.name)} → {_code(diff.after.name)}.{_plain(said)}{over}"
    for line in errors(diff):
        yield f"- {_plain(line)}"


def _table(lines: list[Row]) -> Iterator[str]:
    if not lines:
        return
    used = [number for number in range(len(HEADINGS)) if any(row.cells[number] for row in lines)]
    yield f"| | function | target | {' | '.join(HEADINGS[number] for number in used)} |"
    yield f"|---|---|---|{'---:|' * len(used)}"
    for row in lines:
        word = f"**{row.word}**" if row.word in _BOLD else row.word
        cells = [row.cells[number].replace("->", "→") for number in used]
        yield f"| {word} | {_code(row.name)} | {row.target} | {' | '.join(cells)} |"


def _program(function: FunctionChange, program: ProgramChange, everything: bool) -> str:
    if not program.notes and not program.barriers:
        return ""
    words = [change.word for change in program.barriers]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    said = f"barriers: {counts}" if words else "; ".join(program.notes)
    shown = program.barriers if everything else program.barriers[:SHOWN]
    title = f"<code>{_html(called(function, program))}</code> on {program.target}, {_html(said)}"
    blocks = [f"<details{' open' if program.word == 'worse' else ''}><summary>{title}</summary>"]
    blocks += ["\n".join(f"- {_plain(note)}" for note in program.notes)] if words and program.notes else []
    blocks += ["\n".join(_barrier(change)) for change in shown]
    if len(shown) < len(program.barriers):
        blocks.append(f"… and {len(program.barriers) - len(shown)} more; `--all` shows them")
    return "\n\n".join([*blocks, "</details>"])


def _barrier(change: BarrierChange) -> Iterator[str]:
    standing = change.shown
    where = _code(place(standing)) + moved(change) if standing.path else place(standing)
    yield f"- **{change.word}**: {_plain(cause(change))} at {where}: {cost(change).replace('->', '→')}"
    if standing.path and standing.text:
        fence = _fence(standing.text, 3)
        yield f"  {fence}python"
        yield f"  {standing.text}"
        yield f"  {fence}"
    yield from (f"  - {_plain(line)}" for line in [*reasons(change), advice(change)] if line)


def _code(text: str) -> str:
    """A code span; also inside of a table, where a bar would end the cell."""
    fence = _fence(text, 1)
    room = " " if "`" in text else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", "\\|")


def _fence(text: str, least: int) -> str:
    """Backticks, more of them than stand in a row in `text`."""
    return "`" * max(least, *(len(run) + 1 for run in re.findall("`+", text)), 0)


def _plain(text: str) -> str:
    """Text that is no markup, but for what stands in backticks."""
    parts = re.split(r"(`[^`]*`)", text.replace("->", "→"))
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|#~])", r"\\\1", part) for part in parts)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
