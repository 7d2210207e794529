"""Two Sides -> Diff: which functions are new or gone, which gained or lost what, and what of it is a regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fusionlint.diff.barriers import BarrierChange, barrier_changes
from fusionlint.diff.missing import Missing, why_missing, why_unknown
from fusionlint.diff.names import as_moved, earlier_names, has_moved
from fusionlint.diff.side import PER_ITERATION, QUANTITIES, Function, Program, Side

NAMED = 3  # functions, where nothing could be compared
_ROUNDING = 1e-9

Word = Literal[
    "worse", "within tolerance", "better", "same", "new", "gone", "left out", "no report before", "no report after"
]


# What it is called that a side has no such program.
_BEFORE: Mapping[Missing, Word] = {"gone": "new", "left out": "left out", "no report": "no report before"}
_AFTER: Mapping[Missing, Word] = {"gone": "gone", "left out": "left out", "no report": "no report after"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number then and now. `comparable` is False of a total where on one side alone a loop's length is unknown: what
    is inside counts once there, and every time here."""

    name: str
    before: float
    after: float
    comparable: bool = True

    @property
    def percent(self) -> float | None:
        """How much it rose; None from nothing, or where the two do not compare."""
        return 100 * (self.after / self.before - 1) if self.before and self.comparable else None

    @property
    def rose(self) -> bool:
        return self.comparable and self.after > self.before + _ROUNDING * abs(self.before)

    @property
    def fell(self) -> bool:
        return self.comparable and self.after < self.before - _ROUNDING * abs(self.before)

    def rose_over(self, tolerance: float) -> bool:
        """Whether by more than `tolerance` percent."""
        return self.rose and self.after > self.before * (1 + tolerance / 100 + _ROUNDING)


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """A function on one target, then and now; `word` says it all in one."""

    target: str
    before: Program | None
    after: Program | None
    word: Word
    quantities: tuple[Quantity, ...] = ()
    barriers: tuple[BarrierChange, ...] = ()
    was: str = ""  # the function's name then, where its file has moved

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes the two sides harder to compare."""
        if self.before is None or self.after is None:
            return ()
        notes = [f"it was {self.was}"] if self.was else []
        if not self.before.arguments.same_as(self.after.arguments):
            notes.append(f"its arguments were {self.before.arguments.text}, and are {self.after.arguments.text}")
        if any(not one.comparable for one in self.quantities):
            notes.append("the length of a loop is known on one side only: totals do not compare")
        then, now = self.before.timed_by[:1], self.after.timed_by[:1]  # who says the greater share
        if then and now and then != now:
            notes.append(f"timed by {then[0]} before, by {now[0]} after")
        notes += self._of_the_host(self.before.host_launches, self.after.host_launches)
        return tuple(notes)

    def _of_the_host(self, before: float | None, after: float | None) -> Iterator[str]:
        """What takes the time where kernels are short is how often the host launches: a CUDA graph is one launch."""
        fell = any(one.name == "launches" and one.fell for one in self.quantities)
        if fell and before is not None and after is not None and after > before:
            yield f"the host launches {after:.0f} times instead of {before:.0f}: less goes as a CUDA graph"


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function then and now; None on the side that lacks it. `again` are reasons for compiling again that are new,
    and how often; `programs` are by target and arguments."""

    name: str
    word: Word
    compilations: Quantity | None = None
    again: Mapping[str, int] | None = None
    programs: tuple[ProgramChange, ...] = ()

    @property
    def changed(self) -> bool:
        words = {self.word, *(one.word for one in self.programs)}
        return not words <= {"same", "left out"} or any(one.barriers for one in self.programs)


@dataclass(frozen=True, slots=True)
class Diff:
    """Everything that `fusionlint diff` says. `tolerance` is in percent; the regressions come first."""

    before: Side
    after: Side
    tolerance: float
    functions: tuple[FunctionChange, ...]
    eager: Quantity | None = None

    @property
    def worse(self) -> bool:
        """Whether anything rose by more than the tolerance."""
        return any(one.word == "worse" for one in self.functions) or self.eager_word == "worse"

    @property
    def eager_word(self) -> Word:
        """Of the eager operations."""
        return _word([self.eager] if self.eager else [], self.tolerance)

    @property
    def lost(self) -> tuple[str, ...]:
        """Errors that are new, a run that ended early among them, where a function has no report any more."""
        words = {program.word for function in self.functions for program in function.programs}
        new = [*(Counter(self.after.errors) - Counter(self.before.errors))]
        new += [f"exit status {self.after.status}"] if self.after.ended_early(self.before) else []
        return tuple(new) if "no report after" in words else ()

    @property
    def early(self) -> tuple[Side, ...]:
        """The sides that are of a run which ended early: nothing is told by what it did less often."""
        return _early((self.before, self.after))

    @property
    def compared(self) -> bool:
        """Whether both sides have anything in common."""
        programs = (program for function in self.functions for program in function.programs)
        counted = any(function.compilations for function in self.functions) or self.eager is not None
        return counted or any(program.quantities for program in programs)

    @property
    def is_new(self) -> bool:
        """Whether everything is: the earlier side has nothing that could have got worse."""
        return bool(self.after.targets) and not self.before.targets and not self.compared

    @property
    def is_gone(self) -> bool:
        """Whether everything is: the later side has no code any more that could be worse."""
        words = {function.word for function in self.functions}
        return words == {"gone"} and not self.after.targets and not self.compared

    @property
    def uncompared(self) -> str:
        """Why nothing was compared, in one line; "" where something was."""
        before, after = self.before, self.after
        if self.compared:
            return ""
        if self.is_new:
            return f"nothing to compare with: {before.name} has no report, and what {after.name} has is new"
        if self.is_gone:
            return f"nothing to compare with: what {before.name} has is gone, and {after.name} has no report"
        said = "nothing was compared"
        if empty := [side.name for side in (before, after) if not side.targets]:
            return f"{said}: {' and '.join(empty)} {'has' if len(empty) == 1 else 'have'} no report"
        names = [[one.name for one in side.functions] for side in (before, after)]
        if {*names[0]} & {*names[1]} or earlier_names(*names):
            return f"{said}: {before.name} is of {_listed(before.targets)}, {after.name} of {_listed(after.targets)}"
        return f"{said}: {before.name} has {_listed(names[0])}, {after.name} has {_listed(names[1])}"

    @property
    def versions(self) -> dict[str, tuple[str, str]]:
        """Of jax, jaxlib and plugins: those that both sides have, and that differ."""
        before, after = self.before.versions, self.after.versions
        return {name: (before[name], after[name]) for name in before if before[name] != after.get(name, before[name])}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def compare(before: Side, after: Side, tolerance: float = 0.0) -> Diff:
    """The functions that either side has, by name: what got worse by more than `tolerance` percent first, then in the
    order of the sides. A module's function (`pkg.env:step`) is that of its file (`src/pkg/env.py:step`), and that of a
    file which is elsewhere now is what it was."""
    then, now = ({one.name: one for one in side.functions} for side in (before, after))
    earlier = earlier_names([*then], [*now])
    renamed = {was: name for name, was in earlier.items()}
    changes = [
        _function(name, then.get(earlier.get(name, name)), now.get(name), (before, after), tolerance)
        for name in dict.fromkeys([*(renamed.get(was, was) for was in then), *now])
    ]
    eager = None
    if before.eager is not None and after.eager is not None and not _early((before, after)):
        eager = Quantity("compilations", before.eager, after.eager)
    return Diff(before, after, tolerance, tuple(sorted(changes, key=lambda one: one.word != "worse")), eager)


def _early(sides: tuple[Side, Side]) -> tuple[Side, ...]:
    return tuple(side for side, other in zip(sides, reversed(sides), strict=True) if side.ended_early(other))


def _function(
    name: str, before: Function | None, after: Function | None, sides: tuple[Side, Side], tolerance: float
) -> FunctionChange:
    old, new = (one.programs if one else () for one in (before, after))
    was = before.name if before and has_moved(before.name, name) else ""
    programs: list[ProgramChange] = []
    for then, now in _pairs(old, new):
        if then and now:
            programs.append(_compared(then, now, tolerance, was, name))
        elif now:
            word = _BEFORE[why_missing(name, now, before, *sides)]
            programs.append(ProgramChange(now.hardware, None, now, word))
        elif then:
            word = _AFTER[why_missing(name, then, after, *reversed(sides))]
            programs.append(ProgramChange(then.hardware, then, None, word))
    compilations, again = None, None
    if before and after and before.compilations is not None and after.compilations is not None and not _early(sides):
        compilations = Quantity("compilations", before.compilations, after.compilations)
        again = Counter(after.again) - Counter(before.again) if compilations.rose else None
    words = [program.word for program in programs]
    if before is None or after is None:
        missing = _BEFORE[why_unknown(name, *sides)] if before is None else _AFTER[why_unknown(name, *reversed(sides))]
        return FunctionChange(name, words[0] if words else missing, programs=tuple(programs))
    words.append(_word([compilations] if compilations else [], tolerance))
    order: Sequence[Word] = (
        *("worse", "no report after", "no report before", "within tolerance"),
        *("better", "gone", "new", "same", "left out"),
    )
    return FunctionChange(name, min(words, key=order.index), compilations, again, tuple(programs))


def _pairs(before: Sequence[Program], after: Sequence[Program]) -> Iterator[tuple[Program | None, Program | None]]:
    """By target and number of devices; those of the same arguments first, then those that are most alike."""
    for hardware in dict.fromkeys(one.hardware for one in (*before, *after)):
        old = [one for one in before if one.hardware == hardware]
        new = [one for one in after if one.hardware == hardware]
        yield from (*_same(old, new, to_the_letter=True), *_same(old, new), *_most_alike(old, new))
        yield from ((None, now) for now in new)
        yield from ((then, None) for then in old)


def _same(old: list[Program], new: list[Program], *, to_the_letter: bool = False) -> Iterator[tuple[Program, Program]]:
    """Those of the same arguments, taken out of both lists."""
    for now in [*new]:
        for then in old:
            if then.arguments == now.arguments if to_the_letter else then.arguments.same_as(now.arguments):
                old.remove(then)
                new.remove(now)
                yield then, now
                break


def _most_alike(old: list[Program], new: list[Program]) -> Iterator[tuple[Program, Program]]:
    """Those whose arguments have most in common, taken out of both lists until one is empty."""
    pairs = [(then, now) for now in new for then in old]
    for then, now in sorted(pairs, key=lambda pair: pair[0].arguments.likeness(pair[1].arguments), reverse=True):
        if then in old and now in new:
            old.remove(then)
            new.remove(now)
            yield then, now


def _compared(before: Program, after: Program, tolerance: float, was: str, name: str) -> ProgramChange:
    quantities = tuple(_quantities(before, after))
    sizes = before.arguments.same_as(after.arguments)
    there = {one.path for one in after.barriers}
    moved = [replace(one, path=as_moved(one.path, was, name, there)) for one in before.barriers]
    then = {id(one): before.barriers[number] for number, one in enumerate(moved)}
    barriers = tuple(
        one if one.after else replace(one, before=then[id(one.before)])  # what is gone was where it was
        for one in barrier_changes(moved, after.barriers, sizes=sizes)
    )
    return ProgramChange(before.hardware, before, after, _word(quantities, tolerance), quantities, barriers, was)


def _quantities(before: Program, after: Program) -> Iterator[Quantity]:
    for name in QUANTITIES:
        totals = before.amounts.get(name), after.amounts.get(name)
        again = before.amounts.get(name + PER_ITERATION) or 0, after.amounts.get(name + PER_ITERATION) or 0
        if totals[0] is None or totals[1] is None:
            continue
        yield Quantity(name, totals[0], totals[1], comparable=bool(again[0]) == bool(again[1]))
        if any(again):
            yield Quantity(name + PER_ITERATION, *again)


def _word(quantities: Sequence[Quantity], tolerance: float) -> Word:
    if any(one.rose_over(tolerance) for one in quantities):
        return "worse"
    if any(one.rose for one in quantities):
        return "within tolerance"
    return "better" if any(one.fell for one in quantities) else "same"
