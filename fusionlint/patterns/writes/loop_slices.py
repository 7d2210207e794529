"""What to write instead of slices that a Python loop writes, one in each turn.

In: the writes of a loop of a Source. Out: what joins the pieces: along one axis a concatenate does, along several masks
say where each is.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, is_cut, is_static, is_whole, names_read
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.writes.chain import is_added
from fusionlint.patterns.writes.loop import are_windows_apart, counted_by
from fusionlint.patterns.writes.places import is_fresh_before
from fusionlint.patterns.writes.stands import Stands, holds_slices, stands
from fusionlint.source.tree import Source


def of_slices(write: Write, pieces: Sequence[Write], array: str, loop: cst.For, source: Source) -> str | None:
    """Of pieces that are slices, whichever joins them: along one axis a concatenate, along several nothing."""
    jnp = source.jnp
    if any(_is_window_of_a_row(piece, loop) for piece in pieces):
        along = "with arrays of indices along each axis that broadcast"
        return f"all the values first, then one `{array}.at[rows, columns].{write.method}(values)`, {along}"
    if are_rectangles(pieces, source):
        if all(_is_on_a_diagonal(piece, source) for piece in pieces):
            mapped = ", under jax.vmap for the axes before," if any(len(piece.index) > 2 for piece in pieces) else ","
            whole = f"jax.scipy.linalg.block_diag(*blocks){mapped} brought to the size of all by {jnp}.pad"
            if is_fresh_before(write, loop, source) and write.method == "set":
                return f"a list of the blocks, and one {whole}, after the loop"
            if write.method == "add" or all(is_added(piece, source) for piece in pieces):
                return f"a list of the blocks that are added, and `{array} + ` one {whole}, after the loop"
        masks = f"one {jnp}.where with a mask for each piece: compare {jnp}.arange along each axis with its bounds"
        return f"{masks}; a block is brought to its place by {jnp}.pad"
    if write.method != "set" and not are_windows_apart(write, loop, source) and _are_cut(pieces, source):
        if all(piece.method in ("add", "subtract") for piece in pieces):
            minus = ", what is subtracted with a minus" if any(piece.method != "add" for piece in pieces) else ""
            return f"{array}, and to it one sum of the pieces, each brought to its place by {jnp}.pad{minus}"
        return None
    moved = [part for piece in pieces for part in piece.index if not is_the_same_each_turn(part, loop)]
    if any(_is_a_slice_by_name(part, source) for part in moved):
        along = f"one {jnp}.concatenate where they lie along one axis"
        return f"a list of the pieces, and {along}, else {jnp}.where of masks, each brought to its place by {jnp}.pad"
    if any(_is_cut_to_size(_sliced(part, source)) for part in moved):
        return f"a list of the pieces and of what stands between them, and one {jnp}.concatenate of it"
    return None


def _are_cut(pieces: Sequence[Write], source: Source) -> bool:
    """Whether a piece is a slice, which may lie on others."""
    return any(isinstance(_sliced(part, source), cst.Slice) and not is_whole(part) for p in pieces for part in p.index)


def are_rectangles(pieces: Sequence[Write], source: Source) -> bool:
    """Whether slices are written along two axes or more, which nothing joins."""
    return any(len(_cut(piece, source)) > 1 for piece in pieces)


def _is_on_a_diagonal(write: Write, source: Source) -> bool:
    """`[i:j, i:j]`."""
    return len({source.code(part) for part in _cut(write, source)}) == 1


def _cut(write: Write, source: Source) -> list[Part]:
    return [part for part in write.index if stands(part, source) is Stands.SLICE and not is_static(part)]


def _is_window_of_a_row(write: Write, loop: cst.For) -> bool:
    """`[2 * i, 3 * i : 3 * i + 3]`: each turn writes another window of another row."""
    counted = counted_by(loop)
    moved = [part for part in write.index if any(name.value in counted for name in names_read(part))]
    return any(map(_is_cut_to_size, moved)) and any(not isinstance(part, cst.Slice) for part in moved)


def _sliced(part: Part, source: Source) -> Part:
    """`a:b` for a name of `slice(a, b)`; another part as it is."""
    match source.value(part) if isinstance(part, cst.Name) else None:
        case cst.Call(func=cst.Name("slice"), args=[cst.Arg(value=lower), cst.Arg(value=upper)]):
            return cst.Slice(lower=lower, upper=upper)
    return part


def _is_a_slice_by_name(part: Part, source: Source) -> bool:
    """Whether a part is called as slices are, and may be one or several, or is made of several: `block_slice`,
    `tuple(window)`."""
    if isinstance(_sliced(part, source), cst.Slice):
        return False
    return stands(part, source) is Stands.SLICE or holds_slices(part, source)


def is_the_same_each_turn(part: cst.CSTNode, loop: cst.For) -> bool:
    """Whether nothing that the loop counts or writes says what this is: `1:-1`, `self.inner`."""
    return not Carry(loop).varies(part)


def _is_cut_to_size(part: Part) -> bool:
    """`at : at + size`."""
    return is_cut(part) and not is_static(part)


def over_one_block(write: Write, pieces: Sequence[Write], loop: cst.For, source: Source) -> str | None:
    """The index of one write, `places, *block`, where each turn takes another number on one axis and the same slices of
    the others: a field of some components, of which a part is written."""
    moved = [not is_the_same_each_turn(part, loop) for part in write.index]
    first, *rest = write.index
    if len(pieces) > 1 or moved != [True, *(False for _ in rest)] or not _is_one_number(first, loop, source):
        return None
    if not all(stands(part, source) in (Stands.SLICE, Stands.WHOLE) for part in rest) or all(map(is_whole, rest)):
        return None
    return ", ".join((_all_of(loop, source), *(_starred(part, source) for part in rest)))


def _all_of(loop: cst.For, source: Source) -> str:
    """The places of all turns: of a TPU a slice asks far less than an array of them."""
    match loop.iter:
        case cst.Call(args=[cst.Arg(keyword=None, star="", value=end)]) if source.calls(loop.iter, "range"):
            return f":{source.code(end)}"
    return "places"


def _starred(part: Part, source: Source) -> str:
    """A part of an index as it is written, `*self.inner` with its star."""
    above = source.parent(part)
    is_starred = isinstance(above, cst.StarredElement) or (isinstance(above, cst.Index) and above.star == "*")
    return f"*{source.code(part)}" if is_starred else source.code(part)


def _is_one_number(part: Part, loop: cst.For, source: Source) -> bool:
    """Whether each turn has one number there: `i`, and `axis` of `for axis in (0, a, b)`."""
    is_listed = isinstance(loop.iter, cst.Tuple | cst.List) and isinstance(loop.target, cst.Name)
    return stands(part, source) is Stands.NUMBER or (is_listed and source.code(part) == source.code(loop.target))
