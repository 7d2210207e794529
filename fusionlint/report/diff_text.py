"""Diff -> text for people: the table of what changed, then the barriers that came, changed or went, at their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlint.diff.barriers import BarrierChange
from fusionlint.diff.compare import Diff, FunctionChange, ProgramChange
from fusionlint.report.diff_cells import (
    HEADINGS,
    SHOWN,
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

COST_COLUMN = 78
_SIGNS = {"appeared": "+", "gone": "-", "changed": "~"}


def diff_text(diff: Diff, everything: bool = False) -> str:
    """The whole of it, ending in a newline: what changed, or `everything`."""
    blocks = [
        [*_head(diff)],
        _table([(row.word, _on(row.name, row.target), *row.cells) for row in rows(diff, everything)]),
    ]
    for function in diff.functions:
        blocks.append([f"{function.name}: {line}" for line in again(function)])
        blocks += [[*_program(function, program, everything)] for program in function.programs]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(diff: Diff) -> Iterator[str]:
    over = f" (tolerance {diff.tolerance:g} %)" if diff.tolerance else ""
    yield f"{diff.before.name} -> {diff.after.name}: {summary(diff)}{over}"
    yield from versions(diff)
    yield from errors(diff)


def _table(lines: Sequence[tuple[str, ...]]) -> list[str]:
    if not lines:
        return []
    table = [("", "", *HEADINGS), *lines]
    used = [number for number in range(len(table[0])) if number < 2 or any(line[number] for line in lines)]
    widths = {number: max(len(line[number]) for line in table) for number in used}
    return ["  ".join(line[number].ljust(widths[number]) for number in used).rstrip() for line in table]


def _program(function: FunctionChange, program: ProgramChange, everything: bool) -> Iterator[str]:
    if not program.notes and not program.barriers:
        return
    yield _on(called(function, program), program.target)
    yield from program.notes
    shown = program.barriers if everything else program.barriers[:SHOWN]
    for change in shown:
        yield from _barrier(change)
    if len(shown) < len(program.barriers):
        yield f"… and {len(program.barriers) - len(shown)} more; --all shows them"


def _barrier(change: BarrierChange) -> Iterator[str]:
    standing = change.shown
    left = f"{_SIGNS[change.word]} {cause(change)}  {place(standing)}{moved(change)}"
    yield f"{left.ljust(COST_COLUMN)}  {cost(change)}"
    if standing.path and standing.text:
        yield f"  {standing.line:>4} | {standing.text}"
    yield from (f"  {line}" for line in [*reasons(change), advice(change)] if line)


def _on(name: str, target: str) -> str:
    return f"{name} on {target}" if target else name
