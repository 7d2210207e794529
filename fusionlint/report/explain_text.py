"""Report -> text for people: the totals in one breath, then the barriers, dearest first, at the user's own lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fusionlint.branches import dearest
from fusionlint.explained import ExplainedBarrier, Report, Totals
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier
from fusionlint.hlo.causes import PRODUCT, TWO_STEPS
from fusionlint.hlo.exchanges import told
from fusionlint.hlo.reasons import plain_words, rewrite
from fusionlint.hlo.verdicts import Verdict
from fusionlint.report.explain_head import head
from fusionlint.report.source_lines import caller, excerpt, in_function, own_call, where
from fusionlint.report.stages_text import stages_table
from fusionlint.report.trials_text import trials_block
from fusionlint.report.units import counted, duration, listed, named, size

SHOWN = 10  # barriers, unless all are asked for
COST_COLUMN = 78
_CALLERS = 3  # of a line that is reached in many ways, named
_INSTEAD = "instead: "


@dataclass(frozen=True, slots=True)
class _Group:
    """Barriers of one cause at one line, or of any that one rule explains there, dearest first. Of a conditional's
    branches the dearest counts, as in the totals."""

    members: tuple[ExplainedBarrier, ...]

    @property
    def explained(self) -> ExplainedBarrier:
        """The dearest that a rule explains, else the dearest."""
        return next((member for member in self.members if member.advice), self.members[0])

    @property
    def bytes(self) -> int:
        moved = ((member.barrier.branches, member.barrier.bytes * member.barrier.crossings) for member in self.members)
        return sum(dearest(moved))

    @property
    def launches(self) -> int:
        """Each writer once: a kernel that writes two values is one launch."""
        writers = {member.barrier.writer: member.barrier for member in self.members}
        return sum(dearest((writer.branches, writer.launches) for writer in writers.values()))

    @property
    def microseconds(self) -> float:
        """What would be gone with all of them, at most; 0 where nothing is known about it."""
        priced = [(member.barrier, member.price) for member in self.members if member.price]
        launching = {barrier.writer: (barrier.branches, price.launching) for barrier, price in priced}
        moving = ((barrier.branches, price.moving) for barrier, price in priced)
        return math.fsum(dearest((*launching.values(), *moving)))


def report_text(
    report: Report,
    everything: bool = False,
    with_stages: bool = False,
    *,
    limit: int = SHOWN,
    option: str = "--target",
) -> str:
    """The report, ending in a newline: the `limit` dearest barriers or `everything`, and a table of stages if asked
    for. Paths are relative to the working directory where they lie below it; `option` is what names a target there."""
    found = ([*head(report, option)], *barrier_blocks(report, everything=everything, limit=limit))
    blocks = ["\n".join(block) for block in found]
    if report.trials is not None:
        blocks.append("\n".join(trials_block(report.trials)))
    if with_stages:
        blocks.append("\n".join(stages_table(report.stages)))
    return "\n\n".join(blocks) + "\n"


def barrier_blocks(report: Report, *, everything: bool = False, limit: int = SHOWN) -> Iterator[list[str]]:
    """The lines of each barrier, its heading first, and of what is said instead of those that are left out."""
    groups = _grouped(report.barriers)
    shown = groups if everything else groups[:limit]
    told: dict[str, int] = {}
    for number, group in enumerate(shown, 1):
        yield [*_lines_of(_block(number, group, report.totals), told)]
    if len(shown) < len(groups):
        yield [f"… and {len(groups) - len(shown)} more; --all shows them"]


class Block(NamedTuple):
    """What is said of the barriers of one group at one line; `number` counts them, dearest first. `frame` is None where
    no line is known, `excerpt` empty where the file is not there; `gradient`, which `place` says too, is "" where all
    is work of the line itself, `callers` where nobody is known. Writers and readers are names of kernels."""

    number: int
    cause: str
    place: str
    gradient: str
    callers: str
    cost: str
    frame: hlo.Frame | None
    excerpt: tuple[str, ...]
    said: tuple[str, ...]
    advice: str
    writers: frozenset[str]
    readers: frozenset[str]


def blocks(report: Report) -> list[Block]:
    """All that is said of the report's barriers, dearest first."""
    return [_block(number, group, report.totals) for number, group in enumerate(_grouped(report.barriers), 1)]


def _grouped(barriers: Sequence[ExplainedBarrier]) -> list[_Group]:
    explained_by: dict[object, object] = {}
    for explained in barriers:
        if explained.advice:
            explained_by.setdefault(_work(explained.barrier), (explained.rule, explained.advice))
    groups: dict[object, list[ExplainedBarrier]] = {}
    for explained in barriers:
        barrier = explained.barrier
        frame = barrier.stack[0] if barrier.stack else None
        place = (frame.path, frame.line) if frame else barrier.value
        own = (explained.rule, explained.advice) if explained.advice else None
        key = place, barrier.per_iteration, own or explained_by.get(_work(barrier), (barrier.cause,))
        groups.setdefault(key, []).append(explained)
    return sorted((_Group(tuple(members)) for members in groups.values()), key=_dearest_first)


def _work(barrier: Barrier) -> object:
    """What barriers have in common of which a rule explains one, and so all: the cause, the very call, and who called
    that."""
    start = [(frame.path, frame.line, frame.column) for frame in barrier.stack[:1]] or barrier.value
    return barrier.cause, barrier.per_iteration, *start, *barrier.stack[1:]


def _dearest_first(group: _Group) -> tuple[float, int, int]:
    return -group.microseconds, -group.bytes, -group.launches


def _block(number: int, group: _Group, totals: Totals) -> Block:
    explained, members = group.explained, [member.barrier for member in group.members]
    stack = members[0].stack
    of_gradient = {barrier.of_gradient for barrier in members}
    return Block(
        number,
        _cause(group),
        where(members),
        in_function(stack[0], of_gradient).strip() if stack and any(of_gradient) else "",
        _callers_of(group),
        _cost(group, totals),
        stack[0] if stack else None,
        tuple(excerpt([barrier.stack[0] for barrier in members])) if stack else (),
        (*_sent(members), *_reasons(members, explained.rule)),
        f"{explained.rule}: {explained.advice}" if explained.advice else "",
        frozenset(barrier.writer for barrier in members),
        frozenset(reader for barrier in members for reader in barrier.readers),
    )


def _sent(members: Sequence[Barrier]) -> Iterator[str]:
    """What the collectives do, each said once."""
    details = (barrier.detail for barrier in members if barrier.cause == "collective")
    for lines in dict.fromkeys(tuple(told(detail)) for detail in details):
        yield from lines


def _lines_of(block: Block, told: dict[str, int]) -> Iterator[str]:
    """What was advised before, by the number in `told`, is not said again."""
    place = ", ".join(filter(None, (block.place, block.callers)))
    yield f"{block.number}. {block.cause}  {place}".ljust(COST_COLUMN) + f"  {block.cost}"
    yield from (f"   {line}" for line in (*block.excerpt, *block.said))
    first = told.setdefault(block.advice, block.number)
    if block.advice:
        rule, _, _ = block.advice.partition(": ")
        yield f"   {block.advice if first == block.number else f'{rule}: as in {first}'}"


def _cause(group: _Group) -> str:
    """`library call (cublas) and copy (x3)`."""
    details: dict[str, dict[str, None]] = {}
    for member in group.members:
        details.setdefault(named(member.barrier.cause), {})[member.barrier.detail] = None
    known = {cause: [detail for detail in found if detail] for cause, found in details.items()}
    said = listed([cause + (f" ({', '.join(found)})" if found else "") for cause, found in known.items()])
    return said + (f" (x{len(group.members)})" if len(group.members) > 1 else "")


def _callers_of(group: _Group) -> str:
    """`from rollout:120, called at train.py:31`: those of the dearest first."""
    stacks = [member.barrier.stack for member in group.members]
    callers = [*dict.fromkeys(filter(None, map(caller, stacks)))]
    own = [*dict.fromkeys(filter(None, map(own_call, stacks)))]
    told = (("from", callers), ("called at", own))
    return ", ".join(f"{words} {_some(names)}" for words, names in told if names)


def _some(names: list[str]) -> str:
    """`rollout:7, rollout:9, rollout:12 and 8 more`."""
    return listed(names if len(names) <= _CALLERS + 1 else [*names[:_CALLERS], f"{len(names) - _CALLERS} more"])


def barrier_line(explained: ExplainedBarrier) -> str:
    """`concatenate, env.py:4:11 in step: 1000 launches, 64.0 MB`."""
    barrier, group = explained.barrier, _Group((explained,))
    cost = f"{counted(group.launches, 'launch', 'launches')}, {size(group.bytes)}"
    return f"{barrier.cause}, {where([barrier])}: {cost}"


def _cost(group: _Group, totals: Totals) -> str:
    """`1000 launches, 64 MB, 1.1 ms of 9.0 ms`: what would be gone with the barrier, at most."""
    again = group.members[0].barrier.per_iteration
    whole = totals.microseconds_per_iteration if again else totals.microseconds
    cost = f"{counted(group.launches, 'launch', 'launches')}, {size(group.bytes)}"
    # By bandwidth the values alone may take longer than by XLA's model all does.
    cost += f", {duration(min(group.microseconds, whole))} of {duration(whole)}" if whole is not None else ""
    return cost + (" per iteration" if again else "")


def _reasons(members: Sequence[Barrier], rule: str) -> Iterator[str]:
    """XLA's words, each said once, what they mean, and the catalogue's rewrite, unless a rule has a better one, or
    nobody wrote what is to be written in another way. Of all that was weighed the dearest is told."""
    told: dict[str, dict[str, None]] = {}
    weighed: dict[str, None] = {}
    for barrier in members:
        if barrier.verdict is None:
            continue
        if not barrier.verdict.reason:
            weighed[_weighed(barrier.verdict)] = None
            continue
        # Behind that is the text of an instruction.
        words = barrier.verdict.reason.partition(" for HLO %")[0]
        said = "; ".join(filter(None, (words, _weighed(barrier.verdict))))
        told.setdefault(said, {}).update(dict.fromkeys(_meaning(barrier, barrier.verdict, rule)))
    for said, lines in told.items():
        yield f"XLA: {said}"
        yield from (f"     {line}" for line in sorted(lines, key=lambda line: line.startswith(_INSTEAD)))
    if weighed:
        first, *others = weighed
        yield f"XLA: {first}" + (f", and so of {len(others)} more" if others else "")


def _meaning(barrier: Barrier, verdict: Verdict, rule: str) -> Iterator[str]:
    if barrier.detail == TWO_STEPS:
        yield "that is: a large reduction (a sum, a maximum) is made in two steps, of parts and of what is left of them"
        return
    if words := plain_words(verdict.reason, verdict.consumers):
        yield f"that is: {words}"
    is_written = not barrier.of_gradient and barrier.detail != PRODUCT
    instead = rewrite(verdict.reason) if is_written and not rule else ""
    if instead:
        yield f"{_INSTEAD}{instead}"


def _weighed(verdict: Verdict) -> str:
    """`cost model, fused 4.2 us, apart 4.1 us`, to as many places as tell the two apart; "" where XLA did not weigh."""
    if verdict.us_fused is None or verdict.us_unfused is None:
        return ""
    costs = [(f"{verdict.us_fused:.{places}f}", f"{verdict.us_unfused:.{places}f}") for places in (1, 2, 3)]
    fused, apart = next((cost for cost in costs if cost[0] != cost[1]), costs[0])
    return f"cost model, fused {fused} us, apart {apart} us"
