"""Diff -> the words and numbers that text and Markdown share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fusionlint.diff.barriers import BarrierChange
from fusionlint.diff.compare import Diff, FunctionChange, ProgramChange, Quantity
from fusionlint.diff.side import PER_ITERATION, QUANTITIES, Program, Side, Standing
from fusionlint.report.units import counted, duration, named, size

SHOWN = 10  # barriers of a function on a target, unless all are asked for
HEADINGS = ("launches", "bytes", "time", "compilations")

_SHOWN: dict[str, Callable[[float], str]] = {
    "launches": lambda number: f"{number:.0f}",
    "bytes": size,
    "microseconds": duration,
    "compilations": lambda number: f"{number:.0f}",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a function on a target, with a cell for each of HEADINGS."""

    word: str
    name: str
    target: str
    cells: tuple[str, ...]


def rows(diff: Diff, everything: bool = False) -> Iterator[Row]:
    """Of what changed, or of `everything`. A function's compilations stand in the first of its lines."""
    for function in diff.functions:
        if function.changed or everything:
            yield from _rows(function)
    if diff.eager and (diff.eager_word != "same" or everything):
        yield Row(diff.eager_word, "eager operations", "", ("", "", "", cell(diff.eager)))


def called(function: FunctionChange, program: ProgramChange) -> str:
    """The function's name; with its arguments where it has several programs on one target."""
    several = sum(one.target == program.target for one in function.programs) > 1
    one = program.after or program.before
    return f"{function.name}{one.arguments.text}" if several and one else function.name


def cell(quantity: Quantity) -> str:
    """`4 -> 6 (+50 %)`, or the number alone where both are the same."""
    shown = _SHOWN[quantity.name.removesuffix(PER_ITERATION)]
    before, after = shown(quantity.before), shown(quantity.after)
    if not quantity.rose and not quantity.fell and before == after:
        return after
    return f"{before} -> {after}" + (f" ({percent(quantity.percent)})" if quantity.percent is not None else "")


def percent(number: float) -> str:
    """`+5 %`, `-0.3 %`: with the digit that counts."""
    return f"{number:+.0f} %" if abs(number) >= 10 else f"{number:+.2g} %"


def summary(diff: Diff) -> str:
    """`2 functions worse, 1 new, 3 the same`."""
    counts: dict[str, int] = {}
    for function in diff.functions:
        word: str = function.word
        if word == "same":
            word = "with other barriers" if function.changed else "unchanged"
        counts[word] = counts.get(word, 0) + 1
    listed = [f"{number} {word}" for word, number in counts.items()]
    listed += [f"eager operations {diff.eager_word}"] if diff.eager and diff.eager_word != "same" else []
    return ", ".join(_first_counted(listed, diff)) or "no functions"


def _first_counted(listed: Sequence[str], diff: Diff) -> list[str]:
    if not listed or not diff.functions:
        return [*listed]
    number, _, word = listed[0].partition(" ")
    return [f"{counted(int(number), 'function', 'functions')} {word}", *listed[1:]]


def versions(diff: Diff) -> list[str]:
    """What both were compiled by, or what differs, which is a reason of its own for a change."""
    return [*_compiled_by(diff), *(line for side in (diff.before, diff.after) for line in _recorded_with(side))]


def _compiled_by(diff: Diff) -> Iterator[str]:
    sides = [side for side in (diff.before, diff.after) if side.versions]
    if diff.versions:
        listed = ", ".join(f"{name} {before} -> {after}" for name, (before, after) in diff.versions.items())
        changed = any(function.changed for function in diff.functions)
        yield f"compiled by different versions: {listed}" + ("; a change may be theirs" if changed else "")
    elif sides:
        versions = {name: version for side in sides for name, version in side.versions.items()}
        who = "both" if len(sides) == 2 else sides[0].name
        yield f"{who} compiled by {', '.join(f'{name} {version}' for name, version in versions.items())}"


def _recorded_with(side: Side) -> Iterator[str]:
    """Of a recording that came from elsewhere: its compilations were counted there, its programs compiled here."""
    differing = {
        name: version for name, version in side.ran_with.items() if version != side.versions.get(name, version)
    }
    if differing:
        listed = ", ".join(f"{name} {version}" for name, version in differing.items())
        yield f"{side.name} was recorded with {listed}"


def errors(diff: Diff) -> list[str]:
    """Of either side, each named, and what several functions fail of once; those of both sides at the end. A run that
    ended early is none of them, and is said first."""
    before, after = Counter(diff.before.errors), Counter(diff.after.errors)
    sides = ((diff.before.name, before - after), (diff.after.name, after - before), ("both", before & after))
    early = [
        f"{side.name} is of a run that ended with exit status {side.status}: what it did not come to is not compared, "
        "and compilations and eager operations are not counted"
        for side in diff.early
    ]
    return early + [
        f"{name}: {error}" + (f" ({count} times)" if count > 1 else "")
        for name, found in sides
        for error, count in found.items()
    ]


def cause(change: BarrierChange) -> str:
    """`concatenate (x2)`, `cost model -> concatenate`."""
    before, after = change.before, change.after
    if before and after and before.cause != after.cause:
        return f"{_cause(before)} -> {_cause(after)}"
    return _cause(change.shown)


def place(standing: Standing) -> str:
    """`env.py:15 in step`."""
    if not standing.path:
        return "no source line known"
    return f"{standing.path}:{standing.line}" + (f" in {standing.function}" if standing.function else "")


def moved(change: BarrierChange) -> str:
    """Where the line was, if it is another now."""
    before, after = change.before, change.after
    if not (before and after and before.path) or (before.path, before.line) == (after.path, after.line):
        return ""
    return f" (was line {before.line})"


def cost(change: BarrierChange) -> str:
    """`1000 launches, 32.8 MB`, or both of then and now."""
    costs = [_cost(one) for one in (change.before, change.after) if one]
    return " -> ".join(dict.fromkeys(costs))


def reasons(change: BarrierChange) -> list[str]:
    """XLA's words, each with the time of which they are, where they are not those of both."""
    before, after = change.before, change.after
    if before and after:
        if {*before.reasons} == {*after.reasons}:
            return [f"XLA: {reason}" for reason in after.reasons]
        then = [f"XLA then: {reason}" for reason in before.reasons or ("gave no reason",)]
        return [*then, *(f"XLA now: {reason}" for reason in after.reasons or ("gives no reason",))]
    return [f"XLA {'now' if after else 'then'}: {reason}" for reason in change.shown.reasons]


def advice(change: BarrierChange) -> str:
    """Of the rule that knows a way around what is there now; "" without one."""
    after = change.after
    return f"{after.rule}: {after.advice}" if after and after.rule else ""


def again(function: FunctionChange) -> list[str]:
    """Why it is compiled again, as it was not before."""
    listed = (function.again or {}).items()
    return [f"compiled again{f' {count} times' if count > 1 else ''}: {why}" for why, count in listed]


def _rows(function: FunctionChange) -> Iterator[Row]:
    compilations = cell(function.compilations) if function.compilations else ""
    if not function.programs:
        yield Row(function.word, function.name, "", ("", "", "", compilations))
    for number, program in enumerate(function.programs):
        # What only the compilations got worse by is said in the first line, where they stand.
        by_compilations = number == 0 and program.word == "same" and function.word not in ("new", "gone")
        word = function.word if by_compilations else program.word
        yield Row(
            word, called(function, program), program.target, (*_cells(program), compilations if number == 0 else "")
        )


def _cells(program: ProgramChange) -> Iterator[str]:
    one = program.after or program.before
    by_name = {quantity.name: quantity for quantity in program.quantities}
    for name in QUANTITIES:
        if program.before and program.after:
            parts = [
                f"{cell(by_name[key])}{' per iteration' if key != name else ''}"
                for key in (name, name + PER_ITERATION)
                if key in by_name
            ]
        else:
            parts = [*_alone(one, name)] if one else []
        yield " and ".join(parts)


def _alone(program: Program, name: str) -> Iterator[str]:
    """The numbers of a program that has none to be compared with."""
    for key, suffix in ((name, ""), (name + PER_ITERATION, " per iteration")):
        number = program.amounts.get(key)
        if number or (number is not None and not suffix):
            yield f"{_SHOWN[name](number)}{suffix}"


def _cause(standing: Standing) -> str:
    details = f" ({', '.join(standing.details)})" if standing.details else ""
    return f"{named(standing.cause)}{details}" + (f" (x{standing.count})" if standing.count > 1 else "")


def _cost(standing: Standing) -> str:
    again = " per iteration" if standing.per_iteration else ""
    return f"{counted(standing.launches, 'launch', 'launches')}, {size(standing.bytes)}{again}"
