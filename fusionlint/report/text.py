"""[Finding] -> what a person reads: `full` with the line, a caret, the numbers and the advice, or one line each."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from click import style, unstyle

from fusionlint.finding import Confirmation, Finding, Location, Measurement, Problem, Suggestion
from fusionlint.report.cells import Spot, message_of, spot
from fusionlint.report.units import differences, named
from fusionlint.source.fix import lines_of
from fusionlint.source.ignores import UNUSED
from fusionlint.source.texts import is_notebook, text_of

if TYPE_CHECKING:
    from fusionlint.checking import Outcome
    from fusionlint.source.fixing import Fixed

# What is counted of a call from Python.
_OF_PYTHON = ("compilations", "dispatches", "transfers")
_INDENT = len(" = write: ")
# 1163 launches that become 1162 are not what a rewrite is for.
_WORTH_A_WORD = 1.05
# Launches that are not half are not the point, where an eighth of the bytes is left.
_TWICE, _MANY_TIMES = 2, 8


def rows(findings: Iterable[Finding], output_format: str, width: int | None = None) -> Iterator[str]:
    """Every finding in the format asked for, each file read once; for a terminal of `width` columns what to write is
    wrapped."""
    for path, found in groupby(findings, lambda f: f.location.path):
        if output_format == "concise":
            yield from map(concise, found)
            continue
        lines = lines_of(text_of(path))
        yield from (full(finding, lines, width) for finding in found)


def full(finding: Finding, lines: Sequence[str], width: int | None = None) -> str:
    """The finding with its source line and a caret; `lines` is the file."""
    where = spot(finding.location.path, finding.location.line)
    gutter = " " * len(str(where.line))
    rows = [_headed(finding, where), *_excerpt(finding.location, where.line, lines)]
    rows += [_wrapped(f"{gutter} = {text}", len(gutter) + _INDENT, width) for text in _remarks(finding)]
    return "\n".join(rows)


def _wrapped(row: str, indent: int, width: int | None) -> str:
    """What to write in `width` columns, below where it begins; every other row as it is."""
    if width is None or not row.lstrip().startswith("= write: "):
        return row
    return textwrap.fill(row, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def concise(finding: Finding) -> str:
    """`path:line:column: rule: message`."""
    return _headed(finding, spot(finding.location.path, finding.location.line))


def _headed(finding: Finding, where: Spot) -> str:
    place = style(f"{where}:{finding.location.column}:", bold=True)
    return f"{place} {style(finding.rule, fg='red', bold=True)}: {finding.message}"


def _excerpt(where: Location, number: int, lines: Sequence[str]) -> list[str]:
    """The line that `where` begins on, which is shown as that `number`, and carets below what it spans there. Nothing
    when the file is shorter."""
    if not 1 <= where.line <= len(lines):
        return []
    code = lines[where.line - 1].rstrip()
    end = where.end_column if where.end_line == where.line else len(code) + 1
    gap = "".join("\t" if c == "\t" else " " for c in code[: where.column - 1])
    gutter = " " * len(str(number))
    carets = style("^" * max(end - where.column, 1), fg="red")
    return [f"{gutter} |", f"{number} | {code}", f"{gutter} | {gap}{carets}"]


def said(finding: Finding) -> list[str]:
    """The message, the numbers and the advice, for those who show the code themselves."""
    advice = f"write: {finding.suggestion.text}" if finding.suggestion else ""
    told = map(unstyle, (numbers(finding), *compiled(finding)))
    return [part for part in (finding.message, *told, advice) if part]


def _remarks(finding: Finding) -> Iterator[str]:
    if measured := numbers(finding):
        yield measured
    yield from compiled(finding)
    suggestion = finding.suggestion
    if suggestion is not None:
        first, *more = suggestion.text.splitlines()
        flag = "--fix" if suggestion.safe else "--fix --unsafe-fixes"
        hint = f"    ({flag} does it)" if suggestion.edits else ""
        yield f"write: {first}{hint}"
        yield from (" " * 7 + line for line in more)
    if finding.assumed:
        yield "assumed: nothing shows whether this runs under jit (--only-seen hides such findings)"


def numbers(finding: Finding) -> str:
    """`measured on the rule's page: h100 11 -> 1 launches; v5e 15 -> 2; no gain on cpu`; "" without numbers. Where what
    is written instead costs more: `worse on cpu, 3 -> 31 launches`; of hardware that the pair leaves out, as where the
    clock of a CPU is against it, `no claim for cpu`.

    It says whose numbers these are: the page's example was compiled, not the user's code.
    """
    parts, without, worse, unit = [], [], [], ""
    for target, group in groupby(finding.evidence, lambda m: m.target):
        cells = list(group)
        telling = _telling(cells)
        if target not in finding.targets and (loss := _loss(cells)):
            worse.append(f"worse on {target}, {_cell(loss, with_unit=True)}")
        elif target not in finding.targets:
            without.append(target)
        elif telling:
            name = "" if target == "any" else f"{style(target, bold=True)} "
            again, unit = telling.quantity == unit, telling.quantity
            parts.append(f"{name}{_cell(telling, with_unit=not again)}")
    if not parts:
        return ""
    gainless, unclaimed = " and ".join(without), " and ".join(finding.unclaimed)
    parts += [f"no gain on {gainless}"] if gainless else []
    parts += worse
    parts += [f"no claim for {unclaimed}"] if unclaimed else []
    return f"measured on the rule's page: {'; '.join(parts)}"


def compiled(finding: Finding) -> Iterator[str]:
    """`XLA on h100: concatenate: the consumer is not fusible; 1000 launches, 32.8 MB`: for each target for which the
    code itself was compiled, the compilation that launches most."""
    dearest: dict[str, Confirmation] = {}
    for told in sorted(finding.confirmed, key=lambda told: (-told.launches, -told.bytes)):
        dearest.setdefault(told.target, told)
    yield from map(_confirmation, dearest.values())
    if finding.refuted:
        yield f"XLA on {' and '.join(style(target, bold=True) for target in finding.refuted)}: fused away"


def _confirmation(told: Confirmation) -> str:
    if told.measured:
        others = " with the other fixes" if told.joined else ""
        return f"tried on {style(told.target, bold=True)}{others}: {differences(told.measured)}, in {told.entry}"
    cause = named(told.cause)
    why = f"{cause}: {told.reason.rstrip('.')}" if told.reason else cause
    each = " per iteration" if told.per_iteration else ""
    cost = f"{_count(told.launches, 'launch', 'launches')}, {nbytes(told.bytes)}{each}"
    return f"XLA on {style(told.target, bold=True)}: {why}; {cost}, in {told.entry}"


def _telling(cells: list[Measurement]) -> Measurement | None:
    """The cell that says the most: of what Python does the count that differs most, else the first that differs by
    more than a few in a hundred, or the bytes where they are many times as many and the launches not twice."""
    less = [m for m in cells if m.bad > m.good]
    if of_python := [m for m in less if m.quantity in _OF_PYTHON]:
        return max(of_python, key=_gain)
    first = next((m for m in less if m.bad > _WORTH_A_WORD * m.good), less[0] if less else None)
    most = max(less, key=_gain, default=None)
    return most if first and most and _gain(first) < _TWICE and _gain(most) >= _MANY_TIMES else first


def _gain(cell: Measurement) -> float:
    return cell.bad / (cell.good or 0.5)


def _loss(cells: list[Measurement]) -> Measurement | None:
    """The first count that is clearly higher for what is written instead."""
    return next((m for m in cells if m.good > _WORTH_A_WORD * m.bad), None)


def _cell(cell: Measurement, *, with_unit: bool) -> str:
    if cell.quantity in ("bytes", "memory"):
        of_memory = " of memory" if cell.quantity == "memory" and with_unit else ""
        return f"{nbytes(cell.bad)} -> {nbytes(cell.good)}{of_memory}"
    return f"{cell.bad:g} -> {cell.good:g}{f' {cell.quantity}' if with_unit else ''}"


def nbytes(count: float) -> str:
    """`94.2 kB`: three digits and a decimal unit."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count:g} B"


def statistics(findings: Iterable[Finding]) -> str:
    """One row a rule, the commonest first, with how many of them a fix is known for."""
    findings = list(findings)
    counts = Counter(f.rule for f in findings)
    fixable = Counter(f.rule for f in findings if f.suggestion and f.suggestion.edits)
    marks = {rule: f"  ({fixable[rule]} fixable)" if fixable[rule] else "" for rule in counts}
    return "\n".join(f"{count:5} {rule}{marks[rule]}" for rule, count in counts.most_common())


def summary(outcome: Outcome) -> str:
    """The last line: how much was found, and what to do next."""
    in_files = f"in {_count(outcome.files, 'file')}"
    rest = f" {_unchecked(outcome.problems)} could not be checked." if outcome.problems else ""
    rest += f" {outcome.known} known from the baseline." if outcome.known else ""
    rest += "".join(f" {target} goes by what was counted for {other}." for target, other in outcome.by)
    if outcome.reports:
        confirmed = _count(sum(bool(finding.confirmed) for finding in outcome.findings), "finding")
        rest += f" Evidence from {_count(outcome.reports, 'report')}: {confirmed} confirmed, {outcome.refuted} refuted"
        rest += " (dropped)." if outcome.refuted else "."
    if not outcome.findings:
        if not outcome.files:
            rest += " Tests, benchmarks, plots and what `exclude` or .gitignore names are left out."
        if outcome.idle:
            whose = "Its path says" if outcome.files == 1 else "Their paths say"
            rest += f" {whose} test, plot, benchmark or the like: most rules do not apply."
        return f"No {'new ' if outcome.known else ''}hazards found {in_files}.{rest}"
    rules = Counter(f.rule for f in outcome.findings)
    idle = rules.pop(UNUSED, 0)
    found = " and ".join(
        [_count(rules.total(), "hazard")] * bool(rules) + [_count(idle, "unused ignore comment")] * bool(idle)
    )
    whole = ", ".join([f"Found {found} {in_files}", *_fixable(outcome.findings)])
    more = f" `fusionlint rule {next(iter(rules)) if len(rules) == 1 else 'NAME'}` says more." if rules else ""
    return f"{whole}.{rest}{more}"


def _unchecked(problems: Iterable[Problem]) -> str:
    """`1 file and 2 cells`: of a notebook a line of a cell is to blame."""
    of_cells = Counter(bool(one.line) and is_notebook(one.path) for one in problems)
    counts = [_count(of_cells[kind], noun) for kind, noun in ((False, "file"), (True, "cell")) if of_cells[kind]]
    return " and ".join(counts)


def _fixable(findings: Iterable[Finding]) -> Iterator[str]:
    edited: list[Suggestion] = [f.suggestion for f in findings if f.suggestion and f.suggestion.edits]
    safe = sum(suggestion.safe for suggestion in edited)
    if safe:
        yield f"{safe} of them fixable with --fix"
    if unsafe := len(edited) - safe:
        yield f"{unsafe} {'more' if safe else 'of them fixable'} with --fix --unsafe-fixes"


def notes(outcome: Outcome, *, written: bool) -> Iterator[str]:
    """What goes to stderr, a line each: files that were not checked, comments to look at, and the baseline."""
    yield from map(problem, outcome.problems)
    yield from (problem(one, "warning: ") for one in outcome.warnings if not _is_found(one, outcome.findings))
    if outcome.elsewhere:
        left = (
            f"{_count(outcome.elsewhere, 'finding')} left out, about hardware that the package's __init__.py rules out"
        )
        yield f"{left}: --target NAME shows them"
    if written:
        yield f"Wrote {_count(outcome.listed, 'finding')} to {outcome.baseline}."
    if outcome.gone:
        occurs = "finding that no longer occurs" if outcome.gone == 1 else "findings that no longer occur"
        yield f"{outcome.baseline} lists {outcome.gone} {occurs}: --write-baseline takes them out"


def no_fixes(findings: Sequence[Finding], what: str, *, unsafe: bool) -> str:
    """What `--diff` says of findings none of which it fixes, `unsafe` fixes included or not."""
    others = 0 if unsafe else sum(bool(one.suggestion and one.suggestion.edits) for one in findings)
    more = f"; {others} with --unsafe-fixes" if others else ""
    return f"No fixes to show for {_count(len(findings), what)}{more}. For the advice, run without --diff."


def fixed_summary(done: str, fixed: Sequence[Fixed], what: str = "hazard") -> str:
    """`Fixed 3 hazards in 2 files.`"""
    return f"{done} {_count(sum(one.count for one in fixed), what)} in {_count(len(fixed), 'file')}."


def _count(number: int, noun: str, many: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {many or f'{noun}s'}"


def _is_found(warning: Problem, findings: Iterable[Finding]) -> bool:
    """Whether a finding about the same comment says it too."""
    place, said = (warning.path, warning.line), warning.message.split("`", 2)[-1].lstrip(": ")
    idle = (one for one in findings if one.rule == UNUSED)
    return any((one.location.path, one.location.line) == place and said in one.message for one in idle)


def problem(what: Problem, kind: str = "") -> str:
    """`path:line: does not parse: ...`, after the line of which `kind` it is."""
    where = spot(what.path, what.line) if what.line else what.path
    return f"{where}: {kind}{message_of(what)}"
