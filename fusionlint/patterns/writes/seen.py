"""What is seen of writes that follow one another: what each form of advice rests on, named in one place.

In: writes of a Source. Out: a frozen value. Nothing is assumed that is not seen here: where no form's obligations are
met, the words that hold for any writes are said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, constant, is_fresh, is_static, is_whole
from fusionlint.patterns.values.lengths import are_a_step_apart
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.line import cuts_of, is_known
from fusionlint.patterns.writes.pieces import pieces
from fusionlint.patterns.writes.stands import Stands, stands
from fusionlint.source.tree import Source

# Writes that come to the same in any order, whatever lies on what.
_SUMS = frozenset(("add", "subtract"))


class Seen(NamedTuple):
    """What is seen of writes, first to last. `placed` says of each what stands on which axis, behind `...` counted from
    the end, but for those that it takes whole; `apart` are the axes that tell one write from another."""

    placed: tuple[Mapping[int, Part], ...]
    stand: frozenset[Stands]
    apart: frozenset[int]
    methods: frozenset[str]
    is_new: bool
    # Whether Python is seen to know where everything is, and whether no two parts on an axis are seen to overlap.
    is_known: bool
    are_cut_apart: bool
    is_written_out: bool

    @property
    def axes(self) -> frozenset[int] | None:
        """The axes that every write has a place on; None where one takes whole what another does not."""
        axes = {frozenset(places) for places in self.placed}
        return axes.pop() if len(axes) == 1 and Stands.INDEX not in self.stand else None

    @property
    def are_elements(self) -> bool:
        """Whether each takes one place on each of the same axes, as far as is seen: no slice, no array of places."""
        return self.axes is not None and self.stand <= {Stands.NUMBER, Stands.UNSEEN}

    @property
    def are_numbers(self) -> bool:
        """Whether every place is seen to be one number."""
        return self.stand == {Stands.NUMBER}

    @property
    def are_many(self) -> bool:
        """Whether places on the same axes are arrays, some of them seen to be: one write can take them joined."""
        return self.axes is not None and Stands.MANY in self.stand and Stands.SLICE not in self.stand

    @property
    def lie_side_by_side(self) -> bool:
        """Whether all lie along one axis, in one part of the others, at places that Python knows."""
        return self.axes is not None and len(self.apart) == 1 and self.is_known and self.are_cut_apart

    @property
    def are_a_table(self) -> bool:
        """Whether they are told apart along two axes, and lie along either side by side: blocks of rows and columns."""
        is_even = self.axes is not None and len(self.axes) == len(self.apart) == 2
        return is_even and self.is_known and self.are_cut_apart and Stands.SLICE in self.stand

    @property
    def are_a_matrix(self) -> bool:
        """Whether the axes of such a table are those that `jnp.block` joins along, as far as the index says."""
        return self.are_a_table and self.axes in (frozenset((0, 1)), frozenset((-2, -1)))

    @property
    def plane_axis(self) -> int | None:
        """The axis on which a number that is written out tells each write from the others, where they differ in what
        they take of the other axes: planes, and single places in some."""
        if self.axes is not None or not self.stand <= {Stands.NUMBER, Stands.UNSEEN}:
            return None
        for axis in frozenset.intersection(*map(frozenset, self.placed)):
            numbers = [constant(places[axis]) for places in self.placed]
            if None not in numbers and len({*numbers}) == len(numbers):
                return axis
        return None

    @property
    def are_sums(self) -> bool:
        """Whether nothing is lost where two meet: parts are added."""
        return self.methods <= _SUMS


def see(writes: Sequence[Write], source: Source) -> Seen:
    """What is seen of `writes`."""
    placed = tuple(_placed(write.index) for write in writes)
    parts = [part for places in placed for part in places.values()]
    common = sorted(frozenset.intersection(*map(frozenset, placed)))
    along = {axis: _different([places[axis] for places in placed], source) for axis in common}
    apart = frozenset(axis for axis, several in along.items() if len(several) > 1)
    told_apart = [part for axis in apart for part in along[axis]]
    cuts = cuts_of(told_apart)
    return Seen(
        placed,
        frozenset(stands(part, source) for part in parts),
        apart,
        frozenset(write.method for write in writes),
        is_fresh(root(writes[0]), source),
        all(is_known(part, cuts) for part in told_apart),
        all(_are_cut_apart(along[axis], source) for axis in apart),
        all(map(is_static, parts)),
    )


def _placed(index: Sequence[Part]) -> dict[int, Part]:
    is_open = False
    found: dict[int, Part] = {}
    for i, part in enumerate(index):
        is_open |= isinstance(part, cst.Ellipsis)
        if not is_whole(part):
            found[i - len(index) if is_open else i] = part
    return found


def _different(parts: Sequence[Part], source: Source) -> list[Part]:
    return [*{source.code(part): part for part in parts}.values()]


def _are_cut_apart(parts: Sequence[Part], source: Source) -> bool:
    """Whether no part is seen to lie on another: not `:3` and `0`, nor both ends in steps."""
    if any(isinstance(part, cst.Slice) and part.step is not None for part in parts):
        return False
    in_order = pieces(parts, source)
    return in_order is not None and not any(piece.cut for piece in in_order)


def are_apart(one: Sequence[Part], other: Sequence[Part]) -> bool:
    """Whether two places are different on an axis where both are written out, and count from the same end."""
    pairs = [(constant(a), constant(b)) for a, b in zip(one, other, strict=False)]
    return any(a is not None and b is not None and a != b and (a < 0) == (b < 0) for a, b in pairs)


def never_meet(writes: Sequence[Write], source: Source) -> bool:
    """Whether no two of the writes are seen to be at one place, as long as the array has two there."""
    for one, other in combinations(writes, 2):
        pairs = zip(one.index, other.index, strict=False)
        if not are_apart(one.index, other.index) and not any(_are_a_step_apart(a, b, source) for a, b in pairs):
            return False
    return True


def _are_a_step_apart(one: Part, other: Part, source: Source) -> bool:
    if not isinstance(one, cst.BaseExpression) or not isinstance(other, cst.BaseExpression):
        return False
    return are_a_step_apart(one, other, source)
