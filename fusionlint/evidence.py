"""What `fusionlint explain` wrote about compiled functions, and what it says of findings in their source.

A finding is judged by the reports that compiled its lines for a target that it speaks for. Where a value crosses memory
at these lines it is confirmed. It is refuted for the target where nothing crosses there and all reports show that XLA
fused the lines away: their work is inside one kernel, among that of other lines or by itself without other kernels that
it exchanges values with. In between nothing is known, and the finding stays what it was.
Where its fix was tried, what came of that decides.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusionlint.branches import Branches, branches_of, dearest
from fusionlint.finding import Confirmation, Finding, Location, Measurement

# Path -> first and last line of every stretch.
Stretches = Mapping[str, tuple[tuple[int, int], ...]]


class EvidenceError(ValueError):
    """A file that holds no reports; the message is one line."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A call on the way to an instruction: where it begins, and where it ends as far as that is known."""

    path: str
    line: int
    end_line: int
    column: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that crosses memory: what a Confirmation tells of it alone, who writes it and in which branches, its
    stack, innermost first."""

    told: Confirmation
    writer: str
    branches: Branches
    stack: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel: its stack, the lines of all work inside, whether other kernels read what it writes or write what it
    reads, and whether it only copies."""

    stack: tuple[Frame, ...]
    lines: Stretches
    exchanges: bool
    copies: bool


@dataclass(frozen=True, slots=True)
class Tried:
    """A fix that was compiled: of which finding, what came of it in a word of `trials`, and how many launches, bytes
    and microseconds a call has without it and with it. `joins`: it is one of those that gain together."""

    rule: str
    path: str
    line: int
    column: int
    word: str
    joins: bool
    measured: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """One report: the lines that were compiled, what the program does in memory, and what came of fixes.

    `entry` is what was compiled, and `target` what for. Paths are resolved; `sha256` is None of a file that is not
    known.
    """

    target: str
    lines: Stretches
    sha256: Mapping[str, str | None]
    crossings: tuple[Crossing, ...]
    kernels: tuple[Launched, ...]
    entry: str = ""
    tried: tuple[Tried, ...] = ()


Word = Literal["confirmed", "refuted", "unknown"]


def read_evidence(path: Path) -> list[Compiled]:
    """The reports in a file that `fusionlint explain --output-format json` wrote. EvidenceError if it holds none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        document = None
    command = "fusionlint explain SPEC --output-format json"
    try:
        reports = document["reports"]
        if document["version"] != 1:
            raise EvidenceError(f"{path} is of version {document['version']}: a newer fusionlint wrote it")
        if any("lines" not in report for report in reports):
            raise EvidenceError(f"{path} is from an older fusionlint; write it again with `{command}`")
        return [_compiled(report) for report in reports]
    except EvidenceError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise EvidenceError(f"{path} is no evidence: it has to be what `{command}` wrote") from None


def judged(
    finding: Finding, path: str, reports: Sequence[Compiled], measured_as: Mapping[str, str], *, fusion: bool
) -> Finding:
    """The finding in the file `path` (resolved) with what confirms it, and without the targets that refute it.

    `measured_as` is the target whose numbers stand in the rules' pages, by that of a report. Of a rule whose harm is
    not `fusion` nothing is refuted, and only what its own sensor recognised confirms it.
    """
    confirmed: list[Confirmation] = []
    words: dict[str, set[Word]] = {}
    for report in reports:
        target = measured_as.get(report.target, "")
        if {target, "any"}.isdisjoint(finding.targets) or not _compiles(report.lines, path, finding.location):
            continue
        found = _confirmation(finding, path, report)
        if tried := _tried(finding, path, report):
            words.setdefault(target, set()).add(_word_of(tried))
            if _word_of(tried) == "confirmed":
                told = found or Confirmation(report.target, report.entry, tried.line, "", "", 0, 0, False, tried.rule)
                confirmed.append(told._replace(measured=tried.measured, joined=tried.joins))
        elif found and (fusion or found.rule == finding.rule):
            confirmed.append(found)
            words.setdefault(target, set()).add("confirmed")
        elif fusion:
            words.setdefault(target, set()).add("refuted" if _fused_away(finding.location, path, report) else "unknown")
    refuted = tuple(target for target in finding.targets if words.get(target) == {"refuted"})
    return finding._replace(
        targets=tuple(target for target in finding.targets if target not in refuted),
        evidence=tuple(cell for cell in finding.evidence if cell.target not in refuted),
        confirmed=tuple(dict.fromkeys(confirmed)),
        refuted=refuted,
        assumed=finding.assumed and not confirmed,  # what was compiled was traced
    )


def stale(path: str, data: bytes, reports: Sequence[Compiled]) -> bool:
    """Whether one of `reports` compiled the file `path`, and not as `data`."""
    digest = hashlib.sha256(data).hexdigest()
    return any(path in report.lines and report.sha256.get(path) != digest for report in reports)


def fresh(path: str, data: bytes, reports: Sequence[Compiled]) -> list[Compiled]:
    """Those of `reports` that compiled the file `path` as `data`."""
    digest = hashlib.sha256(data).hexdigest()
    return [report for report in reports if path in report.lines and report.sha256.get(path) == digest]


def _confirmation(finding: Finding, path: str, report: Compiled) -> Confirmation | None:
    """All that crosses at the finding's lines, in the words of the dearest: of one that its rule explains, if any."""
    found = []
    for crossing in report.crossings:  # the dearest first
        lines = [frame.line for frame in crossing.stack if _begins_in(frame, path, finding.location)]
        if lines:
            found.append((crossing, lines[0]))
    if not found:
        return None
    every = [crossing.told._replace(line=line) for crossing, line in found]
    first = next((told for told in every if told.rule == finding.rule), every[0])
    alike = [crossing for crossing, _ in found if crossing.told.per_iteration == first.per_iteration]
    # A kernel that writes two values is one launch.
    launches = {crossing.writer: (crossing.branches, crossing.told.launches) for crossing in alike}
    moved = ((crossing.branches, crossing.told.bytes) for crossing in alike)
    return first._replace(launches=sum(dearest(launches.values())), bytes=sum(dearest(moved)))


def _tried(finding: Finding, path: str, report: Compiled) -> Tried | None:
    """What came of the finding's fix, where it compiled."""
    where = finding.location
    is_its = (
        one
        for one in report.tried
        if (one.rule, one.path, one.line, one.column) == (finding.rule, path, where.line, where.column)
    )
    return next((one for one in is_its if one.word != "fails"), None)


def _word_of(tried: Tried) -> Word:
    """What is no difference by itself, and one beside others, is one."""
    return "confirmed" if tried.word == "better" or (tried.word == "same" and tried.joins) else "refuted"


def _fused_away(where: Location, path: str, report: Compiled) -> bool:
    """Whether the work of these lines is inside one kernel, and nothing crosses memory there or near."""
    if any(_touches(frame, path, where) for crossing in report.crossings for frame in crossing.stack):
        return False
    # In none: it is gone, or XLA lost the lines, and who knows what became of them. In several: it is done in parts, or
    # again for each. A kernel without any line may be of these: a TPU's compiler loses lines where it rewrites.
    kernels = [one for one in report.kernels if _compiles(one.lines, path, where)]
    if len(kernels) != 1 or any(one.exchanges and not one.lines and not one.copies for one in report.kernels):
        return False
    # Its last step is of these lines: what it exchanges with other kernels may well be.
    is_last = any(_touches(frame, path, where) for one in kernels for frame in one.stack)
    return not (is_last and kernels[0].exchanges)


def _compiles(lines: Stretches, path: str, where: Location) -> bool:
    return any(first <= where.end_line and where.line <= last for first, last in lines.get(path, ()))


def _touches(frame: Frame, path: str, where: Location) -> bool:
    """Whether they share a line."""
    return frame.path == path and frame.line <= where.end_line and where.line <= frame.end_line


def _begins_in(frame: Frame, path: str, where: Location) -> bool:
    """Whether the call begins on the finding's lines, and is no argument of it: `a @ b` in `jnp.stack([a @ b, c])` may
    well cross memory, which is no fault of the stack."""
    if frame.path != path or not where.line <= frame.line <= where.end_line:
        return False
    one_line = where.line == where.end_line == frame.line == frame.end_line
    inside = where.column < frame.column and frame.end_column <= where.end_column
    return not (one_line and frame.column and inside)


def _compiled(report: dict[str, Any]) -> Compiled:
    barriers = report["barriers"]
    exchanging = {name for barrier in barriers for name in (barrier["writer"], *barrier["readers"])}
    return Compiled(
        target=report["target"],
        lines=_stretches(report["lines"]),
        sha256={_resolved(path): digest for path, digest in report["sha256"].items()},
        crossings=tuple(
            Crossing(_told(report, barrier), barrier["writer"], branches_of(barrier), tuple(_frames(barrier["stack"])))
            for barrier in barriers
        ),
        kernels=tuple(
            Launched(
                tuple(_frames(one["stack"])), _stretches(one["lines"]), one["name"] in exchanging, one["kind"] == "copy"
            )
            for one in report["kernels"]
        ),
        entry=report["entry"],
        tried=tuple(_trials(report)),
    )


def _trials(report: dict[str, Any]) -> Iterator[Tried]:
    """A fix that gains with others has the numbers of all of them."""
    trials = report.get("fixes") or []  # not tried, or by an older fusionlint
    alone = [trial for trial in trials if len(trial["fixes"]) == 1]
    joined = [(trial, fix) for trial in trials if len(trial["fixes"]) > 1 for fix in trial["fixes"]]
    for trial in alone:
        (fix,) = trial["fixes"]
        together = next((other for other, one in joined if one == fix), None) if trial["word"] == "same" else None
        measured = tuple(Measurement(**cell) for cell in (together or trial)["measured"])
        path = _resolved(fix["path"])
        yield Tried(fix["rule"], path, fix["line"], fix["column"], trial["word"], together is not None, measured)


def _told(report: dict[str, Any], barrier: dict[str, Any]) -> Confirmation:
    cause, detail = barrier["cause"], barrier["detail"]
    return Confirmation(
        target=report["target"],
        entry=report["entry"],
        line=0,
        cause=f"{cause} ({detail})" if detail else cause,
        reason=barrier["reason"] or "",
        launches=barrier["launches"],
        bytes=barrier["bytes"] * barrier["crossings"],
        per_iteration=barrier["per_iteration"],
        rule=barrier["rule"] or "",
    )


def _frames(stack: Sequence[dict[str, Any]]) -> Iterator[Frame]:
    for frame in stack:
        line = frame["line"]
        columns = frame["column"] or 0, frame["end_column"] or 0
        yield Frame(_resolved(frame["path"]), line, frame["end_line"] or line, *columns)


def _stretches(lines: dict[str, list[list[int]]]) -> Stretches:
    return {_resolved(path): tuple((first, last) for first, last in pairs) for path, pairs in lines.items()}


def _resolved(path: str) -> str:
    return _resolved_from(path, str(Path.cwd()))


@functools.cache
def _resolved_from(path: str, _folder: str) -> str:
    """Kept: a program has few files and very many frames."""
    return str(Path(path).resolve())
