"""Which barriers of a program are new, gone or otherwise than they were. A barrier is known by its cause, its file and
the text of its line, so that code which only moved is no change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from fusionlint.diff.side import Standing

Key = Callable[[Standing], Hashable]
Pair = tuple[Standing | None, Standing | None]


@dataclass(frozen=True, slots=True)
class BarrierChange:
    """The barriers of one cause at one line, then and now; None on the side that has none there."""

    before: Standing | None
    after: Standing | None

    @property
    def word(self) -> Literal["appeared", "gone", "changed"]:
        if self.before is None:
            return "appeared"
        return "gone" if self.after is None else "changed"

    @property
    def shown(self) -> Standing:
        """As it is now, else as it was."""
        one = self.after or self.before
        assert one is not None
        return one


def barrier_changes(
    before: Sequence[Standing], after: Sequence[Standing], *, sizes: bool = True
) -> tuple[BarrierChange, ...]:
    """What appeared, then what changed, then what is gone, each dearest first. Bytes alone count as a change with
    `sizes`, which other arguments make pointless."""
    pairs = _paired(before, after)
    changes = [BarrierChange(*pair) for pair in pairs if _differ(*pair, sizes)]
    order = {"appeared": 0, "changed": 1, "gone": 2}
    return tuple(sorted(changes, key=lambda one: (order[one.word], -one.shown.launches, -one.shown.bytes)))


def _paired(before: Sequence[Standing], after: Sequence[Standing]) -> list[Pair]:
    """By the text of the line; where a side does not know it, by its number. What is left at the same line is one
    barrier whose cause is another now."""
    old, new, pairs = [*before], [*after], list[Pair]()
    for key in (_by_text, _by_line, _by_place):
        for one in [*new]:
            match = next((other for other in old if key(one) == key(other) and _may(key, one, other)), None)
            if match is not None:
                pairs.append((match, one))
                old.remove(match)
                new.remove(one)
    return [*pairs, *((None, one) for one in new), *((one, None) for one in old)]


def _by_text(one: Standing) -> Hashable:
    return one.cause, one.path, one.text, one.per_iteration


def _by_line(one: Standing) -> Hashable:
    return one.cause, one.path, one.line, one.per_iteration


def _by_place(one: Standing) -> Hashable:
    return one.path, one.text


def _may(key: Key, one: Standing, other: Standing) -> bool:
    """Numbers of lines tell nothing where both texts are known, texts nothing where they are not."""
    known = one.text is not None and other.text is not None
    if key is _by_place:
        return known and bool(one.path)
    return known if key is _by_text else not known


def _differ(before: Standing | None, after: Standing | None, sizes: bool) -> bool:
    if before is None or after is None:
        return True
    seen = [
        (one.cause, one.per_iteration, one.count, one.launches, {*one.reasons}, one.bytes if sizes else 0)
        for one in (before, after)
    ]
    return seen[0] != seen[1]
