"""What came of fixes of `check` that were compiled in the user's own program: values, which a report holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fusionlint.finding import Finding, Measurement

if TYPE_CHECKING:
    from fusionlint.explained import Totals

Word = Literal["better", "same", "worse", "fails"]
# Less than this share of a time or a number is no difference that a rewrite is for.
_WORTH_A_WORD = 0.01


@dataclass(frozen=True, slots=True)
class Trial:
    """A function on a target with some fixes, beside what it is without: one fix, or several together. `after` is None
    where it does not compile with them, and `error` says why, in one line."""

    target: str
    fixes: tuple[Finding, ...]
    before: Totals
    after: Totals | None
    error: str = ""

    @property
    def word(self) -> Word:
        """By time where the target's is known, else by launches, then by bytes; what is in a loop of unknown length
        counts first."""
        if self.after is None:
            return "fails"
        changes = (_change(*pair) for pair in _amounts(self.before, self.after))
        change = next((one for one in changes if abs(one) > _WORTH_A_WORD), 0.0)
        return "same" if not change else "better" if change < 0 else "worse"

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """What differs of launches, bytes and microseconds, in and out of loops of unknown length."""
        return tuple(
            Measurement(self.target, name + suffix, then, now)
            for name in ("launches", "bytes", "microseconds")
            for suffix in ("", "_per_iteration")
            if (then := getattr(self.before, name + suffix)) is not None
            and (now := getattr(self.after, name + suffix, None)) is not None
            and then != now
        )

    @property
    def gain(self) -> float:
        """Microseconds, or launches where no times are known, that a call takes less; an iteration counts as a call."""
        if self.after is None:
            return 0.0
        timed = self.before.microseconds is not None and self.after.microseconds is not None
        then, now = (
            ((one.microseconds or 0.0) + (one.microseconds_per_iteration or 0.0))
            if timed
            else float(one.launches + one.launches_per_iteration)
            for one in (self.before, self.after)
        )
        return then - now


def _amounts(before: Totals, after: Totals) -> Iterator[tuple[float, float]]:
    if before.microseconds is not None and after.microseconds is not None:
        yield before.microseconds_per_iteration or 0.0, after.microseconds_per_iteration or 0.0
        yield before.microseconds, after.microseconds
        return
    yield before.launches_per_iteration, after.launches_per_iteration
    yield before.launches, after.launches
    yield before.bytes_per_iteration, after.bytes_per_iteration
    yield before.bytes, after.bytes


def _change(before: float, after: float) -> float:
    """Of what was before, or of nothing, the share that came on top."""
    return (after - before) / before if before else float(after > 0)
