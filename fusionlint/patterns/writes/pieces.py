"""The pieces that writes along one axis leave of each other: `.at[:-1].set(a).at[0].set(b)` leaves `[b, a[1:]]`.

In: what stands on one axis of a new array in the index of each write, in the order of the writes. Out: the pieces in
the order of their places, without the ends of a slice that a place is written over later.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, is_about, names_read
from fusionlint.source.tree import Source

# Where something stands along an axis: so far from its start, or from its end, or at what is computed.
_Bound = tuple[str, int]
_START, _END = "start", "end"


class Piece(NamedTuple):
    """What is left of a write, by its number: all of it, or that without its first or its last element."""

    number: int
    without_first: bool = False
    without_last: bool = False

    @property
    def cut(self) -> str:
        """`1:`, what is taken of the value; "" where that is all of it."""
        if not (self.without_first or self.without_last):
            return ""
        return f"{'1' if self.without_first else ''}:{'-1' if self.without_last else ''}"


def pieces(parts: Sequence[Part], source: Source) -> list[Piece] | None:
    """What is left of each, in the order of their places; None where one is seen to lie on another, and not as a place
    at an end of a slice that was written before."""
    spans = [_span(part, source) for part in parts]
    left = [Piece(i) for i in range(len(parts))]
    for later, over in enumerate(spans):
        for earlier, under in enumerate(spans[:later]):
            if not _meet(under, over):
                continue
            if isinstance(parts[later], cst.Slice) or not isinstance(parts[earlier], cst.Slice):
                return None
            if over[0] == under[0]:
                left[earlier] = left[earlier]._replace(without_first=True)
            elif over[1] == under[1]:
                left[earlier] = left[earlier]._replace(without_last=True)
            else:
                return None
    return sorted(left, key=lambda piece: (*_begin(parts[piece.number]), piece.without_first))


def are_all(parts: Sequence[Part], in_order: Sequence[Piece], source: Source) -> bool:
    """Whether the pieces are seen to leave nothing of the axis: each begins where the one before it ends."""
    spans = [_left(_span(parts[piece.number], source), piece) for piece in in_order]
    ends = [(_START, 0), *(end for _, end in spans)]
    return ends == [*(begin for begin, _ in spans), (_END, 0)]


class Join(NamedTuple):
    """What stands between the pieces of an axis, before the first, between each two and behind the last, as slices of
    the array, "" for nothing; and whether that holds for an axis of whatever length."""

    between: Sequence[str]
    is_sure: bool


def join(parts: Sequence[Part], in_order: Sequence[Piece], size: str, source: Source) -> Join | None:
    """How the pieces and what is left of the array go together, of which `size` says how long it is, if anything; None
    where the pieces are not seen to stand in this order."""
    spans = [_left(_span(parts[piece.number], source), piece) for piece in in_order]
    ends = [_text(parts[piece.number], piece, source) for piece in in_order]
    (begins, _), (_, last) = spans[0], spans[-1]
    between = ["" if begins == (_START, 0) else f":{ends[0][0]}"]
    for i, ((_, one), (other, _)) in enumerate(pairwise(spans)):
        if one != other and not _is_seen_ahead(one, other, ends[i][1], parts[in_order[i + 1].number]):
            return None
        between.append("" if one == other else f"{ends[i][1]}:{ends[i + 1][0]}")
    is_whole = last == (_END, 0) or ends[-1][1].replace(" ", "") == size.replace(" ", "")
    between.append("" if is_whole else f"{ends[-1][1]}:")
    is_counted_back = any(bound[0] == _END and bound != (_END, 0) for span in spans for bound in span)
    are_known = all(isinstance(part, cst.Slice) or constant(part) is not None for part in parts)
    is_cut = any(piece.cut for piece in in_order)
    return Join(between, not is_counted_back and not is_cut and are_known and not any(between[1:-1]))


def _is_seen_ahead(one: _Bound, other: _Bound, text: str, behind: Part) -> bool:
    """Whether one bound stands before another, as long as the axis is long enough for both: `k` before the `-k` of
    `-k:` too."""
    if (one[0], other[0]) == (_START, _END) or (one[0] == other[0] and one[1] < other[1]):
        return True
    match behind:
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus()), upper=None):
            return one[0] != _END and not text.startswith("-")
    return False


def _text(part: Part, piece: Piece, source: Source) -> tuple[str, str]:
    """Where a piece begins and what is the first behind it, as code; "" for the ends of the axis."""
    (_, first), (kind, behind) = _span(part, source)
    if isinstance(part, cst.Slice):
        lower = "" if part.lower is None else source.code(part.lower)
        upper = "" if part.upper is None else source.code(part.upper)
        if piece.without_first:
            lower = str(first + 1) if _is_known(part.lower) else f"{lower} + 1"
        if piece.without_last:
            upper = str(behind - 1) if _is_known(part.upper) else f"{upper} - 1"
        return lower, upper
    at = source.code(part)
    if constant(part) is None:
        return at, f"{at} + 1"
    return at, "" if (kind, behind) == (_END, 0) else str(behind)


def _is_known(bound: cst.BaseExpression | None) -> bool:
    return bound is None or constant(bound) is not None


def _left(span: tuple[_Bound, _Bound], piece: Piece) -> tuple[_Bound, _Bound]:
    (begins, first), (ends, behind) = span
    return (begins, first + piece.without_first), (ends, behind - piece.without_last)


def _span(part: Part, source: Source) -> tuple[_Bound, _Bound]:
    """Where a part of an index begins, and what is the first behind it."""
    if isinstance(part, cst.Slice):
        lower = (_START, 0) if part.lower is None else _bound(part.lower, source)
        return lower, (_END, 0) if part.upper is None else _bound(part.upper, source)
    kind, at = _bound(part, source)
    return (kind, at), (kind, at + 1)


def _bound(part: Part, source: Source) -> _Bound:
    at = constant(part)
    if at is None:
        # A name that is written in between is another place.
        meant = (str(id(source.written(name))) for name in names_read(part))
        return " ".join((source.code(part), *meant)), 0
    return (_START if at >= 0 else _END), at


def _meet(one: tuple[_Bound, _Bound], other: tuple[_Bound, _Bound]) -> bool:
    """Whether both are seen to hold an element, as long as neither is empty."""
    if one[0] == other[0] or one[1] == other[1]:
        return True
    return _is_before(one[0], other[1]) and _is_before(other[0], one[1])


def _is_before(one: _Bound, other: _Bound) -> bool:
    """Whether one is seen to stand before the other. What is counted from the start stands before what is counted from
    the end; what is computed stands behind the start and before the end."""
    if one[0] == other[0]:
        return one[1] < other[1]
    return (one[0], other[0]) == (_START, _END) or one == (_START, 0) or other == (_END, 0)


def _begin(part: Part) -> tuple[int, int]:
    """Where along its axis a piece stands, as far as can be seen; what begins at a name stands where it was written."""
    if isinstance(part, cst.Slice):
        if part.lower is None:
            return 0, 0
        at = constant(part.lower)
        unseen = 2 if part.upper is None else 1
    else:
        at, unseen = constant(part), 1
    if at is None:
        return unseen, 0
    return (0, at) if at >= 0 else (3, at)


def read_back(writes: Sequence[Write], source: Source) -> str | None:
    """What the array is called, where a part is made of what was written before it: `m.at[1].set(2 * m[2] - m[3])`."""
    values = [write.value for write in writes if write.value is not None]
    names = {name.value for write in writes if isinstance(name := write.array, cst.Name)}
    read = (name for value in values for name in names_read(value) if not is_about(name, source))
    return next((name.value for name in read if name.value in names), None)
