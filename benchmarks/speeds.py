"""What benchmarks/check_speed.py says: timed processes -> a table, what was claimed, and JSON. Times nothing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from processes import Run

PARSE = "ast.parse, one process"
CLICK = "python -c 'import click'"
UNCACHED = "check, no cache"
HALF = "check, no cache, every second file"
LARGEST = "check, no cache, the largest folder"
ALONE = "one file alone, no cache"
INSIDE = "one file in its project, no cache"
COLD = "check, cold cache"
WARM = "check, warm"
COMMENT = "a comment more in one file"
FUNCTION = "a function more in one file"
IMPORTED = "a function more in the most imported"
COPIED = "a function copied, median of several files"
SAVED = "stdin, as on disk, warm"
EDITED = "stdin, edited, warm"
RETYPED = "stdin, edited once more, warm"
ASKED_AGAIN = "stdin, the same text again, warm"
# How many times faster than these a cold check has to be.
TIMES_FASTER = {"Fixit": 20.0, "jaxlint": 1.0, "semgrep": 1.0}
# What a version of fusionlint has to know for a row; without --no-cache its plain check is one without.
NEEDS = {
    "--cache-dir": (COLD, WARM, COMMENT, FUNCTION, IMPORTED, COPIED),
    "--stdin-filename": (SAVED, EDITED, RETYPED, ASKED_AGAIN),
}


@dataclass(frozen=True)
class Row:
    """What one thing took in each round, on so many files and lines. `scale` times as many lines are in all files."""

    what: str
    runs: tuple[Run, ...]
    files: int
    lines: int
    scale: float = 1.0
    remark: str = ""

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def parent(self) -> float:
        return max(run.parent for run in self.runs)

    @property
    def child(self) -> float:
        return max(run.child for run in self.runs)


@dataclass(frozen=True)
class Claim:
    """A figure and its limit: at most, or with `least` at least."""

    what: str
    value: float
    limit: float
    unit: str
    least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.least else self.value <= self.limit


def warm(peer: str) -> str:
    return f"{peer}, warm"


def ours(peer: str) -> str:
    """`check` on the files of a peer that does not get all."""
    return f"check, no cache, files of {peer}"


def claims(rows: Mapping[str, Row]) -> Iterator[Claim]:
    """What issue 5 asks for, as far as it was timed. Twice the files may take 5 % more than twice as long: noise."""
    cold, parse = rows.get(COLD, rows[UNCACHED]), rows[PARSE]
    yield Claim("cold, beside ast.parse", cold.seconds / parse.seconds, 2.0, "times")
    if WARM in rows:
        yield Claim("warm", rows[WARM].seconds, 1.0, "s")
    for what in (COMMENT, FUNCTION, IMPORTED, COPIED):
        if what in rows:
            yield Claim(f"{what}, beyond warm", rows[what].seconds - rows[WARM].seconds, 0.5, "s")
    yield Claim(f"{ALONE}, beyond import click", rows[ALONE].seconds - rows[CLICK].seconds, 0.25, "s")
    for what in (SAVED, EDITED, ASKED_AGAIN):
        if what in rows:
            yield Claim(what, rows[what].seconds, 0.2, "s")
    # Asked for is what one project takes, jax; what all take that stand below one folder is in the table.
    yield Claim("memory of the parent, the largest folder", rows[LARGEST].parent, 300, "MB")
    yield Claim("memory of a worker, the largest folder", rows[LARGEST].child, 300, "MB")
    growth = rows[UNCACHED].seconds / rows[HALF].seconds / (rows[UNCACHED].lines / rows[HALF].lines)
    yield Claim("twice the files, beside twice the time", growth, 1.05, "times")
    for peer, least in TIMES_FASTER.items():
        if peer in rows:
            faster = rows[peer].seconds / rows.get(ours(peer), cold).seconds
            yield Claim(f"faster than {peer}, same files", faster, least, "times", least=True)


def unequal(rounds: Iterable[Mapping[str, Run]]) -> int:
    """In how many rounds a cache changed what is printed."""
    return sum(done[what].output != done[UNCACHED].output for done in rounds for what in (COLD, WARM) if what in done)


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown. Ratios are scaled to all lines where a row has fewer, and left out for single files; on a
    machine that does other things as well, look at those of CPU seconds."""
    parse = next(row for row in rows if row.what == PARSE)
    head = "| | files | wall | CPU | memory: parent, largest child | wall / ast.parse | CPU / ast.parse | |"
    return "\n".join([head, "|---" * 8 + "|", *(_line(row, parse) for row in rows)])


def _line(row: Row, parse: Row) -> str:
    ratios = (row.seconds * row.scale / parse.seconds, row.cpu * row.scale / parse.cpu)
    wall, cpu = (f"{ratio:.2f}" if row.files > 1 else "" for ratio in ratios)
    scaled = f"{row.lines} lines, {_seconds(row.seconds * row.scale)} if scaled to all" if row.scale > 1 else ""
    memory = f"{row.parent:.0f} MB" + (f", {row.child:.0f} MB" if row.child else "")
    remark = "; ".join(filter(None, (row.remark, scaled)))
    cells = (row.what, row.files or "", _seconds(row.seconds), _seconds(row.cpu), memory, wall, cpu, remark)
    return f"| {' | '.join(map(str, cells))} |"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def claim_line(claim: Claim) -> str:
    bound = "at least" if claim.least else "at most"
    holds = "holds" if claim.holds else "DOES NOT HOLD"
    return f"{claim.what}: {claim.value:.2f} {claim.unit}, {bound} {claim.limit:g}: {holds}"


def skipped_rows(options: Iterable[str]) -> list[str]:
    """What is not timed because this version of `check` does not know an option."""
    missing = [option for option in NEEDS if option not in options]
    if "--cache-dir" in missing:  # stdin is timed warm
        return [f"{', '.join(row for rows in NEEDS.values() for row in rows)}: this check knows no --cache-dir"]
    return [f"{', '.join(NEEDS[option])}: this check knows no {option}" for option in missing]


def as_json(head: Mapping[str, object], rows: Iterable[Row], held: Iterable[Claim], skipped: Sequence[str]) -> str:
    """All figures of all rounds, without what was printed."""
    data = {
        **head,
        "rows": [
            {
                **{name: getattr(row, name) for name in ("what", "files", "lines", "scale", "remark")},
                "runs": [
                    {name: getattr(run, name) for name in ("seconds", "cpu", "parent", "child")} for run in row.runs
                ],
            }
            for row in rows
        ],
        "claims": [{**asdict(claim), "holds": claim.holds} for claim in held],
        "skipped": list(skipped),
    }
    return json.dumps(data, indent=2) + "\n"
